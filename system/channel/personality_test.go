package channel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAckRule(t *testing.T) {
	byStatus, byBody := Personality{}, Personality{AckBody: "success"}
	require.True(t, byStatus.acked(200, []byte("FAIL")))
	require.True(t, byStatus.acked(204, nil))
	require.False(t, byStatus.acked(302, nil))
	require.False(t, byStatus.acked(500, []byte("success")))
	require.True(t, byBody.acked(200, []byte("success")))
	require.False(t, byBody.acked(200, []byte("success\n")))
}

func TestPersonalitiesAreValid(t *testing.T) {
	for _, p := range Personalities() {
		require.True(t, p.valid(), p.Name)
	}
	require.False(t, Personality{Name: "hasty", Resend: []time.Duration{0}, AckTimeout: time.Second}.valid())
}
