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
	Oddity      Oddity      // of every trade that has none of its own [none]
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
		return fmt.Errorf("config: personality %q has no zone, or a wait that is not positive", c.Personality.Name)
	}
	if err := c.Oddity.check(); err != nil {
		return fmt.Errorf("config: Oddity: %w", err)
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

// Start takes up what an earlier life of this emulator left pending: notifications, charges and refunds under way.
func (c *Channel) Start() { c.env.Loops.Go("resume", c.resume) }

func (c *Channel) routes() http.Handler {
	mux := http.NewServeMux()
	// The merchant's.
	mux.Handle("POST /prepay", c.keyed(c.faulty(c.endpoint(c.handlePrepay))))
	mux.Handle("POST /query", c.keyed(c.faulty(c.endpoint(c.handleQuery))))
	mux.Handle("POST /close", c.keyed(c.faulty(c.endpoint(c.handleClose))))
	mux.Handle("POST /refund", c.keyed(c.faulty(c.endpoint(c.handleRefund))))
	mux.Handle("POST /refund/query", c.keyed(c.endpoint(c.handleRefundQuery)))
	mux.Handle("POST /bill", c.keyed(c.endpoint(c.handleBill)))
	// The payer's.
	mux.Handle("POST /start", c.endpoint(c.handleStart))
	mux.Handle("POST /pay", c.endpoint(c.handlePay))
	// The operator's.
	mux.Handle("POST /operator/trade", c.endpoint(c.handleOddity))
	mux.Handle("POST /operator/refund", c.endpoint(c.handleDecideRefund))
	mux.Handle("POST /operator/finish", c.endpoint(c.handleFinish))
	mux.Handle("POST /operator/resend", c.endpoint(c.handleResend))
	mux.Handle("POST /operator/bill", c.endpoint(c.handleBillDelay))
	mux.Handle("POST /operator/bill-row", c.endpoint(c.handleBillEdit))
	return mux
}

func (c *Channel) endpoint(handle func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := handle(r)
		if err != nil {
			c.writeError(w, r, err)
			return
		}
		httpjson.Write(w, http.StatusOK, answer)
	})
}

func (c *Channel) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *httpjson.Error
	if !errors.As(err, &refusal) {
		c.env.Log.ErrorContext(r.Context(), "request failed", "channel", c.cfg.Name, "path", r.URL.Path,
			"trace", r.Header.Get(traceHeader), "error", err)
		err = refuse(codeSystemError, "call again, with the same number")
	}
	httpjson.WriteError(w, err)
}
