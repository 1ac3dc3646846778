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

// Routes lists what a channel can be asked for.
func Routes() []httpjson.Route { return new(Channel).routes().Routes() }

func (c *Channel) routes() *httpjson.Router {
	router := httpjson.NewRouter()
	// The payer's.
	router.Handle("POST /start", `the payer opens the payment: {"outTradeNo":"A1-1"}`, c.endpoint(c.handleStart))
	router.Handle("POST /pay", `the payer pays: {"outTradeNo":"A1-1"}; the callback follows`, c.endpoint(c.handlePay))
	// The merchant's.
	router.Handle("POST /prepay", "open a trade", c.keyed(c.faulty(c.endpoint(c.handlePrepay))))
	router.Handle("POST /query", "how a trade stands", c.keyed(c.faulty(c.endpoint(c.handleQuery))))
	router.Handle("POST /close", "end an unpaid trade", c.keyed(c.faulty(c.endpoint(c.handleClose))))
	router.Handle("POST /refund", "give money back", c.keyed(c.faulty(c.endpoint(c.handleRefund))))
	router.Handle("POST /refund/query", "how a refund stands", c.keyed(c.endpoint(c.handleRefundQuery)))
	router.Handle("POST /bill", "a page of a closed day's bill", c.keyed(c.endpoint(c.handleBill)))
	// The operator's.
	router.Handle("POST /operator/trade", "how the channel misbehaves for a trade", c.endpoint(c.handleOddity))
	router.Handle("POST /operator/refund", "decide a refund that hangs", c.endpoint(c.handleDecideRefund))
	router.Handle("POST /operator/finish", "tell a charge once more, as FINISHED", c.endpoint(c.handleFinish))
	router.Handle("POST /operator/resend", "send a trade's notices once more", c.endpoint(c.handleResend))
	router.Handle("POST /operator/bill", "make a day's bill late", c.endpoint(c.handleBillDelay))
	router.Handle("POST /operator/bill-row", "put a mistake into a bill to come", c.endpoint(c.handleBillEdit))
	return router
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
