package system_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

func TestStateMachine(t *testing.T) {
	statuses := []system.Status{system.Created, system.Paid, system.Closed, system.Refunding, system.Refunded}
	allowed := map[system.Transition]bool{
		{From: system.Created, To: system.Paid}:       true,
		{From: system.Created, To: system.Closed}:     true,
		{From: system.Paid, To: system.Refunding}:     true,
		{From: system.Refunding, To: system.Refunded}: true,
	}
	for _, from := range statuses {
		for _, to := range statuses {
			change := system.Transition{From: from, To: to}
			require.Equal(t, allowed[change], change.Allowed(), "%s -> %s", from, to)
		}
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	good := system.Config{
		Channels: []system.ChannelConfig{{Name: "mock", URL: "http://channel"}}, NotifyURL: "http://shop/callback/pay", MerchantID: "M1", SigningKey: signingKey,
	}
	require.NoError(t, good.Validate())

	bad := good
	bad.Channels, bad.SigningKey, bad.ScanBatch, bad.ClosePolicy = []system.ChannelConfig{{Name: "a", URL: "http://a"}, {Name: "a-b", URL: "channel"}}, []byte("short"), 101, "ask"
	err := bad.Validate()
	for _, field := range []string{"Channels", "SigningKey", "ScanBatch", "ClosePolicy"} {
		require.ErrorContains(t, err, field)
	}
	_, err = system.New(good, system.Env{})
	require.ErrorContains(t, err, "env")
}

func TestMigrateTwice(t *testing.T) {
	db := sql.OpenDB(connectorTo(newClock(), filepath.Join(t.TempDir(), "test.db")))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for range 2 {
		require.NoError(t, system.Migrate(t.Context(), db))
	}

	_, err := db.ExecContext(t.Context(), "PRAGMA user_version = 99")
	require.NoError(t, err)
	require.ErrorContains(t, system.Migrate(t.Context(), db), "schema version 99")
}
