package system

import (
	"fmt"
	"net/http"
)

// Shop is one instance of the service. Any number of them may share one order database; a Shop keeps nothing in memory
// that another could contradict.
type Shop struct {
	cfg     Config
	env     Env
	channel channelClient
	handler http.Handler
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
	s := &Shop{cfg: cfg, env: env, channel: channelClient{cfg: cfg, env: env}}
	s.handler = s.routes()
	return s, nil
}

// Handler serves the shop's HTTP API.
func (s *Shop) Handler() http.Handler { return s.handler }

// Start starts the background work: the closing scan.
func (s *Shop) Start() {
	s.env.Loops.Every("close-scan", s.cfg.ScanEvery, s.closeDueOrders)
}
