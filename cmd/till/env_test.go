package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	words := []string{"TILL_ADDR", "TILL_DATA", "TILL_PAY_WINDOW"}
	for word, want := range map[string]string{
		"TILL_PAYWINDOW": "TILL_PAY_WINDOW", "TILL_DATE": "TILL_DATA", "TILL_ADDRESS": "TILL_ADDR",
	} {
		require.Equal(t, want, nearest(word, words))
	}
}

func TestMistakesInTheEnvironmentAreExplained(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"TILL_PAY_WINDW=1m":        "the environment has TILL_PAY_WINDW, which till doesn't know; did you mean TILL_PAY_WINDOW?",
		"TILL_PAY_WINDOW=soon":     `TILL_PAY_WINDOW: invalid argument "soon" for "--pay-window" flag`,
		"TILL_PAY_WINDOW=0s":       "--pay-window (TILL_PAY_WINDOW) can't be empty or 0; left out, it is 15m0s",
		"TILL_SIGNING_KEY=short":   "--signing-key (TILL_SIGNING_KEY) must have at least 16 bytes, it has 5",
		"TILL_CLOSE=":              "--close (TILL_CLOSE) can't be empty or 0; left out, it is ask-first",
		"TILL_PUBLIC_URL=a.shop":   "--public-url (TILL_PUBLIC_URL) must be an absolute http(s) URL",
		"TILL_LATE_SUCCESS=refuse": `--late-success (TILL_LATE_SUCCESS) must be "refund" or "reinstate", not "refuse"`,
	} {
		cmd := command(t, "serve", "--addr", "127.0.0.1:0")
		cmd.Env = append(cmd.Env, entry)
		var errors strings.Builder
		cmd.Stderr = &errors
		require.Error(t, cmd.Run())
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), entry)
		require.Contains(t, errors.String(), want)
	}
	cmd := command(t, "sign", "--header-only") // another command's variable is none of its business
	cmd.Env = append(cmd.Env, "TILL_SCAN_EVERY=1s")
	require.NoError(t, cmd.Run())
}
