package signature_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/signature"
)

func TestVerify(t *testing.T) {
	key, body, now := []byte("a key of the merchant"), []byte(`{"orderNo":"A1"}`), time.Unix(1_700_000_000, 0)
	good := signature.Sign(key, body, now)

	for _, c := range []struct {
		name, header, body string
		now                time.Time
		want               error
	}{
		{"too old", good, string(body), now.Add(5*time.Minute + time.Second), signature.ErrStale},
		{"from the future", good, string(body), now.Add(-6 * time.Minute), signature.ErrStale},
		{"none", "", string(body), now, signature.ErrMissing},
		{"nonsense", "nonsense", string(body), now, signature.ErrMalformed},
		{"not hex", "t=1700000000,v1=zz", string(body), now, signature.ErrMalformed},
		{"other body", good, `{"orderNo":"A2"}`, now, signature.ErrInvalid},
		{"other time", strings.Replace(good, "t=1700000000", "t=1700000001", 1), string(body), now, signature.ErrInvalid},
		{"cut short", good[:len(good)-2], string(body), now, signature.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorIs(t, signature.Verify(key, []byte(c.body), c.header, c.now, 5*time.Minute), c.want)
		})
	}
	for _, age := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute} {
		require.NoError(t, signature.Verify(key, body, good, now.Add(age), 5*time.Minute))
	}
	require.ErrorIs(t, signature.Verify([]byte("another key"), body, good, now, time.Minute), signature.ErrInvalid)
}

func TestStaleSaysHowFar(t *testing.T) {
	key, now := []byte("a key of the merchant"), time.Unix(1_700_000_000, 0)
	good := signature.Sign(key, nil, now)
	for _, c := range []struct {
		now  time.Time
		want string
	}{
		{now.Add(7 * time.Minute), "its time is 7m0s ago; at most 5m0s is taken"},
		{now.Add(-time.Hour), "its time is 1h0m0s ahead of the clock here; at most 5m0s is taken"},
	} {
		require.ErrorContains(t, signature.Verify(key, nil, good, c.now, 5*time.Minute), c.want)
	}
}

// Of a signature that isn't ours the message says the same whatever is wrong with it.
func TestInvalidHelpsNoForger(t *testing.T) {
	key, body, now := []byte("a key of the merchant"), []byte(`{}`), time.Unix(1_700_000_000, 0)
	for _, header := range []string{
		signature.Sign([]byte("another key"), body, now),
		signature.Sign(key, []byte("another body"), now),
		"t=1,v1=" + strings.Repeat("00", 32),
		"t=yesterday,v1=00",
	} {
		err := signature.Verify(key, body, header, now, time.Minute)
		require.Equal(t, signature.ErrInvalid.Message, err.Error(), header)
	}
}
