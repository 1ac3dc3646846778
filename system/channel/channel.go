package channel

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// Config is what makes an emulator this channel and no other.
type Config struct {
	Name        string      // as callbacks spell it [the personality's name]
	Personality Personality // [Mock]
	SigningKey  []byte      // shared with the merchant, at least 16 bytes
}

func (c Config) withDefaults() Config {
	if c.Personality.Name == "" {
		c.Personality = Mock()
	}
	if c.Name == "" {
		c.Name = c.Personality.Name
	}
	return c
}

func (c Config) validate() error {
	if len(c.SigningKey) < 16 {
		return fmt.Errorf("config: SigningKey must have at least 16 bytes, it has %d", len(c.SigningKey))
	}
	if !c.Personality.valid() {
		return fmt.Errorf("config: personality %q has a wait that is not positive", c.Personality.Name)
	}
	return nil
}

// Channel is a running emulator over one ledger.
type Channel struct {
	cfg     Config
	env     Env
	handler http.Handler
}

// New makes an emulator over a migrated ledger. It starts nothing and touches nothing.
func New(cfg Config, env Env) (*Channel, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.validate(), env.validate()); err != nil {
		return nil, fmt.Errorf("new channel: %w", err)
	}
	c := &Channel{cfg: cfg, env: env}
	c.handler = c.routes()
	return c, nil
}

//go:embed schema.sql
var schema1 string

// Migrate brings a ledger to the newest schema; it is cheap when there is nothing to do.
func Migrate(ctx context.Context, db *sql.DB) error { return sqldb.Migrate(ctx, db, schema1) }

// Handler serves the channel's HTTP API.
func (c *Channel) Handler() http.Handler { return c.handler }

// Start takes up the notifications that an earlier life of this emulator left pending.
func (c *Channel) Start() { c.env.Loops.Go("resume-notifications", c.resumeNotifications) }

func (c *Channel) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /prepay", c.endpoint(c.handlePrepay))
	mux.Handle("POST /pay", c.endpoint(c.handlePay))
	mux.Handle("POST /query", c.endpoint(c.handleQuery))
	mux.Handle("POST /close", c.endpoint(c.handleClose))
	return mux
}

func (c *Channel) endpoint(handle func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := handle(r)
		if err == nil {
			httpjson.Write(w, http.StatusOK, answer)
			return
		}
		var refusal *httpjson.Error
		if !errors.As(err, &refusal) {
			c.env.Log.ErrorContext(r.Context(), "request failed", "channel", c.cfg.Name, "path", r.URL.Path, "error", err)
			err = httpjson.Errorf(http.StatusInternalServerError, "SYSTEM_ERROR", "call again, with the same number")
		}
		httpjson.WriteError(w, err)
	})
}
