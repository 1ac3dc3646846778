package scenarios

import (
	"context"
	"time"

	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
)

// broker shows a simulated broker to the system as its own.
type broker struct{ sim.BrokerClient }

func (b broker) Subscribe(topic string, handle func(context.Context, system.Message) error) {
	b.BrokerClient.Subscribe(topic, func(ctx context.Context, d sim.Delivery) error {
		return handle(ctx, system.Message{ID: d.ID, Topic: d.Topic, Key: d.Key, Body: d.Body})
	})
}

// leases shows a simulated lease service to the system as its own.
type leases struct{ sim.LeaseClient }

func (l leases) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (system.Lease, bool, error) {
	lease, ok, err := l.LeaseClient.Acquire(ctx, name, owner, ttl)
	return system.Lease(lease), ok, err
}

func (l leases) Release(ctx context.Context, lease system.Lease) error {
	return l.LeaseClient.Release(ctx, sim.Lease(lease))
}

func (l leases) Held(ctx context.Context, lease system.Lease) (bool, error) {
	return l.LeaseClient.Held(ctx, sim.Lease(lease))
}
