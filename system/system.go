package system

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// Shop is one instance of the service. Any number of them may share one order database; a Shop keeps nothing in memory
// that another could contradict.
type Shop struct {
	cfg     Config
	env     Env
	channel channelClient
	stock   stockClient
	metrics *metrics
	handler http.Handler

	dispatched atomic.Int64 // messages on their way beside the relay
}

// New makes a shop over a migrated database. It starts nothing and touches nothing; the error says what is wrong with
// cfg or env.
func New(cfg Config, env Env) (*Shop, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("new shop: %w", err)
	}
	if err := env.validate(); err != nil {
		return nil, fmt.Errorf("new shop: %w", err)
	}
	cfg = cfg.withDefaults()
	calls := caller{cfg: cfg, env: env}
	s := &Shop{cfg: cfg, env: env, channel: channelClient{calls}, stock: stockClient{calls}, metrics: newMetrics()}
	s.handler = s.routes()
	return s, nil
}

// Handler serves the shop's HTTP API.
func (s *Shop) Handler() http.Handler { return s.handler }

// Start starts the background work. It may be called once.
func (s *Shop) Start() {
	if s.cfg.closesBy(CloseByScan) {
		s.env.Loops.Every(closeScan, s.cfg.ScanEvery, s.closeDueOrders)
	}
	if s.closesByMessage() {
		s.env.Broker.Subscribe(closeTopic, s.onCloseMessage)
	}
	if s.closesByExpiry() {
		s.env.Leases.OnExpire(closeKey, s.onKeyExpired)
	}
	if s.cfg.keptBy(ByOutbox) {
		s.env.Loops.Every("outbox-relay", s.cfg.RelayEvery, s.relayOutbox)
	}
	s.env.Loops.Every("pending-query", s.cfg.QueryEvery, s.queryPending)
	s.env.Loops.Every("refund-query", s.cfg.RefundQueryEvery, s.queryRefunds)
	s.env.Loops.Every(housekeeping, houseKeptEvery, s.keepHouse)
	s.startReconciliation()
}
