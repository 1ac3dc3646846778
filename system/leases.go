package system

import (
	"context"
	"fmt"
)

// lockOrder keeps two closers from asking a channel about one order at once. It returns errBusy when somebody else has
// the lock; a lease service that fails stops nobody.
func (s *Shop) lockOrder(ctx context.Context, orderNo string) (unlock func(), err error) {
	lease, free := s.acquire(ctx, "order/"+orderNo)
	if !free {
		return nil, fmt.Errorf("order %s: %w", orderNo, errBusy)
	}
	return func() { s.release(ctx, lease) }, nil
}

// leaseService is what a run of a job counts the stalls of the leases under.
const leaseService = "leases"

// acquire takes a lease if it is free. It returns nil and true where there is no lease to be had, from nobody: then
// the database alone keeps the peace, as it does anyway. A run of a job soon stops asking a service that hangs, or
// each order would wait for it.
func (s *Shop) acquire(ctx context.Context, name string) (*Lease, bool) {
	if s.env.Leases == nil || refuseStalled(ctx, leaseService) != nil {
		return nil, true
	}
	ctx, cancel := s.env.Clock.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	lease, free, err := s.env.Leases.Acquire(ctx, name, s.cfg.Instance, s.cfg.LeaseTTL)
	if err != nil {
		noteStall(ctx, leaseService, err)
		s.log(ctx).Warn("no lease", "name", name, "error", err)
		return nil, true
	}
	return &lease, free
}

func (s *Shop) release(ctx context.Context, lease *Lease) {
	if lease == nil || refuseStalled(ctx, leaseService) != nil { // it ends by itself
		return
	}
	ctx, cancel := s.env.Clock.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if err := s.env.Leases.Release(ctx, *lease); err != nil {
		noteStall(ctx, leaseService, err)
		s.log(ctx).Warn("lease not released", "name", lease.Name, "error", err)
	}
}

// lost reports whether somebody else has the lease by now. If the service can't tell, the job goes on: the fence at its
// writes is what counts.
func (s *Shop) lost(ctx context.Context, lease *Lease) bool {
	if lease == nil || refuseStalled(ctx, leaseService) != nil {
		return false
	}
	ctx, cancel := s.env.Clock.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	held, err := s.env.Leases.Held(ctx, *lease)
	if err != nil {
		noteStall(ctx, leaseService, err)
	}
	return err == nil && !held
}

// A write with a token below one that has written already comes from somebody who has lost the lease without knowing.
const passFence = `-- name: PassFence
INSERT INTO job_fences (job, token) VALUES (?1, ?2)
ON CONFLICT (job) DO UPDATE SET token = excluded.token WHERE excluded.token >= token`

// checkFence lets a job's transaction pass only while nobody has written with a newer lease.
func checkFence(ctx context.Context, w *work, task *Lease) error {
	if task == nil {
		return nil
	}
	passed, err := w.exec(ctx, passFence, task.Name, task.Token)
	if err != nil {
		return fmt.Errorf("check fence of %s: %w", task.Name, err)
	}
	if !passed {
		return fmt.Errorf("lease %s with token %d is lost", task.Name, task.Token)
	}
	return nil
}
