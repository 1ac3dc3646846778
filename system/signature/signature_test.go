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
		{"good", good, string(body), now, nil},
		{"as old as allowed", good, string(body), now.Add(5 * time.Minute), nil},
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
			require.Equal(t, c.want, signature.Verify(key, []byte(c.body), c.header, c.now, 5*time.Minute))
		})
	}
	require.Equal(t, signature.ErrInvalid, signature.Verify([]byte("another key"), body, good, now, time.Minute))
}
