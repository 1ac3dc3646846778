package system

import (
	"errors"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// Routes lists what a shop can be asked for.
func Routes() []httpjson.Route { return new(Shop).routes().Routes() }

func (s *Shop) routes() *httpjson.Router {
	router := httpjson.NewRouter()
	handle := func(route, does string, handle func(http.ResponseWriter, *http.Request) error) {
		router.Handle(route, does, s.endpoint(handle))
	}
	handle("POST /orders", `create an order: {"orderNo":"A1","amountCents":9900}; also currency, sku, quantity, channel`,
		s.idempotent("create", s.handleCreate))
	handle("GET /orders?after&limit", "the orders by number, at most 100", s.handleList)
	handle("GET /orders/{no}", "an order as it stands", s.handleRead)
	handle("GET /orders/{no}/log", "every change of its status", s.handleLog)
	handle("POST /orders/{no}/pay", `let it be paid on another channel: {"channel":"mock"}`, s.idempotent("pay", s.handlePay))
	handle("POST /orders/{no}/cancel", "close it if it isn't paid", s.idempotent("cancel", s.handleCancel))
	handle("POST /orders/{no}/refunds", `give money back: {} all that is left, {"amountCents":100} a part; also refundNo`,
		s.idempotent("refund", s.handleRefund))
	handle("GET /orders/{no}/refunds", "its refunds, oldest first", s.handleRefunds)
	// A callback's key is its transaction. An answer that was kept under another would be given without a look at the
	// signature.
	handle("POST /callback/pay", `a channel tells that it has taken money, signed; "till sign" prints one`, s.counted(s.handlePayCallback))
	handle("POST /callback/refund", "a channel tells how a refund stands, signed", s.counted(s.handleRefundCallback))
	handle("GET /alerts?after", "what a person must look at, oldest first", s.handleAlerts)
	handle("GET /metrics", "numbers for Prometheus", s.handleMetrics)
	handle("GET /healthz", "200 while the database can be written", s.handleHealth)
	return router
}

// endpoint gives a handler its trace id and answers its error: a refusal as it says, anything else as a 5xx, which
// makes the caller try again. It recovers no panic: a shop that is in doubt about itself must not answer.
func (s *Shop) endpoint(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := withTrace(r.Context(), s.requestTrace(r))
		w.Header().Set(TraceHeader, traceID(ctx))
		err := handle(w, r.WithContext(ctx))
		if err == nil {
			return
		}
		var refusal *httpjson.Error
		if errors.As(err, &refusal) {
			s.log(ctx).Info("request refused", "method", r.Method, "path", r.URL.Path, "code", refusal.Code)
		} else {
			s.log(ctx).Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		httpjson.WriteError(w, err)
	})
}

// handleRead answers GET /orders/{no} with the order as the database has it now.
func (s *Shop) handleRead(w http.ResponseWriter, r *http.Request) error {
	orderNo, err := pathOrderNo(r)
	if err != nil {
		return err
	}
	order, err := s.readOrder(r.Context(), orderNo, "")
	if err != nil {
		return err
	}
	httpjson.Write(w, http.StatusOK, order)
	return nil
}

func pathOrderNo(r *http.Request) (string, error) {
	orderNo := r.PathValue("no")
	return orderNo, checkName("orderNo", "order_no_invalid", orderNo, maxOrderNo)
}

// counted counts the callbacks that fail.
func (s *Shop) counted(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if err != nil {
			s.metrics.callbackFailed(httpjson.AsError(err).Code)
		}
		return err
	}
}

// healthPatience is how long a health check waits for the database's lock: longer than any transaction takes.
const healthPatience = 2 * time.Second

// It changes nothing, and yet writes and commits: a full or read-only disk is found out.
const checkHealth = `-- name: CheckHealth
UPDATE reconcile_jobs SET hour = hour`

// handleHealth answers GET /healthz with 200 when the database can be written, else with a 503 database_unwritable.
func (s *Shop) handleHealth(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := s.env.Clock.WithTimeout(r.Context(), healthPatience)
	defer cancel()
	if _, err := s.env.DB.ExecContext(ctx, checkHealth); err != nil {
		s.log(ctx).Error("health check failed", "error", err)
		return httpjson.Errorf(http.StatusServiceUnavailable, "database_unwritable", "the order database can't be written")
	}
	httpjson.Write(w, http.StatusOK, map[string]string{"status": "ok", "instance": s.cfg.Instance})
	return nil
}
