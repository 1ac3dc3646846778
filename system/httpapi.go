package system

import (
	"errors"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

func (s *Shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders", s.endpoint(s.idempotent("create", s.handleCreate)))
	mux.Handle("GET /orders", s.endpoint(s.handleList))
	mux.Handle("GET /orders/{no}", s.endpoint(s.handleRead))
	mux.Handle("GET /orders/{no}/log", s.endpoint(s.handleLog))
	mux.Handle("POST /orders/{no}/pay", s.endpoint(s.idempotent("pay", s.handlePay)))
	mux.Handle("POST /orders/{no}/cancel", s.endpoint(s.idempotent("cancel", s.handleCancel)))
	mux.Handle("POST /orders/{no}/refunds", s.endpoint(s.idempotent("refund", s.handleRefund)))
	mux.Handle("GET /orders/{no}/refunds", s.endpoint(s.handleRefunds))
	// A callback's key is its transaction. An answer that was kept under another would be given without a look at the
	// signature.
	mux.Handle("POST /callback/pay", s.endpoint(s.counted(s.handlePayCallback)))
	mux.Handle("POST /callback/refund", s.endpoint(s.counted(s.handleRefundCallback)))
	mux.Handle("GET /alerts", s.endpoint(s.handleAlerts))
	mux.Handle("GET /metrics", s.endpoint(s.handleMetrics))
	mux.Handle("GET /healthz", s.endpoint(s.handleHealth))
	mux.Handle("/", s.endpoint(handleUnknown))
	return mux
}

// endpoint gives a handler its trace id and answers its error: a refusal as it says, anything else as a 500, which
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
		var refusal *httpjson.Error
		switch {
		case errors.As(err, &refusal):
			s.metrics.callbackFailed(refusal.Code)
		case err != nil:
			s.metrics.callbackFailed("internal")
		}
		return err
	}
}

// handleHealth answers GET /healthz with 200 when the database answers too.
func (s *Shop) handleHealth(w http.ResponseWriter, r *http.Request) error {
	var nowMs int64
	if err := s.env.DB.QueryRowContext(r.Context(), "-- name: CheckHealth\nSELECT db_now_ms()").Scan(&nowMs); err != nil {
		return err
	}
	httpjson.Write(w, http.StatusOK, map[string]string{"status": "ok", "instance": s.cfg.Instance})
	return nil
}

func handleUnknown(_ http.ResponseWriter, r *http.Request) error {
	return httpjson.Errorf(http.StatusNotFound, "route_unknown", "there is no %s %s", r.Method, r.URL.Path)
}
