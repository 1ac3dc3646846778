package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another instance with other settings is refused while one lives, however it ends; then the settings may change.
func TestInstancesAgreeOnTheirSettings(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	one := serveOn(t, data)
	two := serveOn(t, data, "--scan-every", "1s", "--close-by", "expiry,scan,message") // says nothing else
	key := "a key of sixteen bytes or more"
	for _, c := range []struct{ flag, value, want string }{
		{"--merchant", "M2", `--merchant (TILL_MERCHANT) is "M1" there, not "M2"`},
		{"--signing-key", key, "--signing-key (TILL_SIGNING_KEY) is another one there"},
		{"--channel", "alipay-like", `--channel (TILL_CHANNEL) is "mock" there, not "alipay-like"`},
		{"--pay-window", "1m", `--pay-window (TILL_PAY_WINDOW) is "15m0s" there, not "1m0s"`},
	} {
		_, errors, code := output(t, "serve", "--addr", "127.0.0.1:0", "--data", data, c.flag, c.value)
		require.Equal(t, 2, code)
		require.Contains(t, errors, "is served with other settings; start with the same, or end the others first:\n  "+c.want+"\n")
	}
	require.Zero(t, one.end(syscall.SIGTERM))
	_, _, code := output(t, "serve", "--addr", "127.0.0.1:0", "--data", data, "--merchant", "M2")
	require.Equal(t, 2, code, "the other still lives")
	require.Equal(t, -1, two.end(syscall.SIGKILL))

	rotated := serveOn(t, data, "--signing-key", key)
	require.Contains(t, rotated.began, `"the settings are others than before","changed":["signing-key"]`)
	_, _, code = output(t, "serve", "--addr", "127.0.0.1:0", "--data", data)
	require.Equal(t, 2, code)
	require.Zero(t, rotated.end(syscall.SIGTERM))

	_, errors, code := output(t, "reconcile", "--data", data) // never changes them, even alone
	require.Equal(t, 2, code)
	require.Contains(t, errors, "was last served with other settings:\n  --signing-key (TILL_SIGNING_KEY) is another one there\n")
	out, errors, code := output(t, "reconcile", "--data", data, "--signing-key", key)
	require.Zero(t, code, out+errors)
	file, err := os.ReadFile(filepath.Join(data, "settings.db"))
	require.NoError(t, err)
	require.NotContains(t, string(file), key)
}

// Of many that start at once with one of two keys, those that run have the same.
func TestFirstInstancesAtOnceAgree(t *testing.T) {
	dir := t.TempDir()
	type outcome struct {
		a   *agreement
		key string
		err error
	}
	outcomes := make(chan outcome)
	for n := range 8 {
		go func() {
			key := []string{"one", "two"}[n%2]
			a, _, err := agree(t.Context(), dir, []setting{{"signing-key", secretHash + key}}, false)
			outcomes <- outcome{a, key, err}
		}()
	}
	keys := map[string]bool{}
	for range 8 {
		o := <-outcomes
		if o.err != nil {
			require.ErrorAs(t, o.err, &usageError{})
			continue
		}
		keys[o.key] = true
		t.Cleanup(func() { require.NoError(t, o.a.close()) })
	}
	require.Len(t, keys, 1)
}
