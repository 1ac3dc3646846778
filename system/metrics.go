package system

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the numbers of one shop, in a registry of its own. What the instance does is counted as it happens; what
// stands in the database, and is the same for all instances, is read when somebody asks.
type metrics struct {
	handler http.Handler

	callbacks        *prometheus.CounterVec
	callbackFailures *prometheus.CounterVec
	closeLag         prometheus.Histogram
	reconciliations  *prometheus.CounterVec

	pending        prometheus.Gauge
	overdue        prometheus.Gauge
	overdueFor     prometheus.Gauge
	outboxDepth    prometheus.Gauge
	refundsOpen    prometheus.Gauge
	alertsByKind   *prometheus.GaugeVec
	billsUnsettled prometheus.Gauge
}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "till_" + name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "till_" + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	m := &metrics{
		handler:          promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		callbacks:        counter("callbacks_total", "Callbacks of channels that were acknowledged.", "channel"),
		callbackFailures: counter("callback_failures_total", "Callbacks that were refused or failed, by error code.", "code"),
		closeLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "till_close_lag_seconds", Help: "From an order's deadline to its close.",
			Buckets: []float64{0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 300, 1800, 7200},
		}),
		reconciliations: counter("reconciliations_total", "Runs of reconciliation on this instance.", "job", "result"),
		pending:         gauge("orders_pending", "Orders that wait for their money."),
		overdue:         gauge("orders_overdue", "Orders that should be closed by now."),
		overdueFor:      gauge("orders_overdue_seconds", "How long the most overdue order has been waiting for its close."),
		outboxDepth:     gauge("outbox_depth", "Messages that are not delivered yet."),
		refundsOpen:     gauge("refunds_open", "Refunds that are not final yet."),
		alertsByKind: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "till_alerts", Help: "Alerts that were raised, by kind.",
		}, []string{"kind"}),
		billsUnsettled: gauge("bills_unsettled", "Days that are over and whose bill isn't checked to the end."),
	}
	registry.MustRegister(m.closeLag, m.alertsByKind)
	return m
}

// callbackAcked counts a callback that was acknowledged.
func (m *metrics) callbackAcked(channel string) { m.callbacks.WithLabelValues(channel).Inc() }

// callbackFailed counts a callback that wasn't, by its stable error code.
func (m *metrics) callbackFailed(code string) { m.callbackFailures.WithLabelValues(code).Inc() }

// orderClosed notes how long after its deadline an order was closed.
func (m *metrics) orderClosed(lag time.Duration) { m.closeLag.Observe(lag.Seconds()) }

// reconciled counts a run of a reconciliation job.
func (m *metrics) reconciled(job string, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.reconciliations.WithLabelValues(job, result).Inc()
}

// handleMetrics answers GET /metrics in the text format of Prometheus.
func (s *Shop) handleMetrics(w http.ResponseWriter, r *http.Request) error {
	if err := s.readBacklog(r.Context()); err != nil {
		return err
	}
	if err := s.readAlertCounts(r.Context()); err != nil {
		return err
	}
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}

const readBacklog = `-- name: ReadBacklog
WITH clock AS MATERIALIZED (SELECT db_now_ms() AS now_ms)
SELECT (SELECT count(*) FROM orders WHERE status = 'CREATED'),
       (SELECT count(*) FROM orders WHERE status = 'CREATED' AND deadline_ms <= now_ms),
       (SELECT coalesce(max(0, now_ms - min(deadline_ms)), 0) FROM orders WHERE status = 'CREATED'),
       (SELECT count(*) FROM outbox WHERE state = 'PENDING'),
       (SELECT count(*) FROM refunds WHERE next_query_ms IS NOT NULL),
       (SELECT count(*) FROM bill_days WHERE next_ms IS NOT NULL AND end_ms <= now_ms)
FROM clock`

func (s *Shop) readBacklog(ctx context.Context) error {
	var pending, overdue, overdueMs, depth, refunds, bills int64
	err := s.env.DB.QueryRowContext(ctx, readBacklog).Scan(&pending, &overdue, &overdueMs, &depth, &refunds, &bills)
	if err != nil {
		return fmt.Errorf("read backlog: %w", err)
	}
	m := s.metrics
	m.pending.Set(float64(pending))
	m.overdue.Set(float64(overdue))
	m.overdueFor.Set(float64(overdueMs) / 1000)
	m.outboxDepth.Set(float64(depth))
	m.refundsOpen.Set(float64(refunds))
	m.billsUnsettled.Set(float64(bills))
	return nil
}

const countAlerts = `-- name: CountAlerts
SELECT kind, count(*) FROM alerts GROUP BY kind ORDER BY kind`

func (s *Shop) readAlertCounts(ctx context.Context) error {
	rows, err := s.env.DB.QueryContext(ctx, countAlerts)
	if err != nil {
		return fmt.Errorf("count alerts: %w", err)
	}
	defer rows.Close()
	s.metrics.alertsByKind.Reset()
	for rows.Next() {
		var kind string
		var count int64
		if err := rows.Scan(&kind, &count); err != nil {
			return fmt.Errorf("read alert count: %w", err)
		}
		s.metrics.alertsByKind.WithLabelValues(kind).Set(float64(count))
	}
	return rows.Err()
}
