package testbed

import (
	"context"
	"errors"
	"syscall"

	"ringlight/proto"
)

// Strikes of PodsConfig.Kill, one after the other.
const (
	strikeAgents  = "agents and bgpd" // of switches, and of a spine, killed as light moves
	strikePlanner = "planner"         // killed as light moves
	strikeHang    = "hung bgpd"       // of a spine whose ports move: it answers nobody until light moves past it
	strikes       = 3
)

// strike does the n-th: those that end start again half a second later.
func (p *pods) strike(ctx context.Context, n int, c *PodsChange) error {
	if n%strikes == 2 { // it was hung before
		c.Struck = strikeHang
		if err := until(ctx, "light that moves past a router that hangs", func() bool { return p.relay.first.Load() > 0 && p.tuned() }); err != nil {
			return err
		}
		return p.router.signal(p.hung(), syscall.SIGCONT)
	}
	if err := until(ctx, "light that moves", func() bool { return p.relay.first.Load() > 0 }); err != nil {
		return err
	}
	if n%strikes == 1 {
		p.Kill()
		p.mu.Lock()
		c.Struck = map[bool]string{false: strikePlanner + ", in mid-stage", true: strikePlanner + ", at rest"}[p.quiet]
		p.quiet = false // until the next one says so
		p.mu.Unlock()
		return errors.Join(pause(ctx, afterward), p.Revive(p.ctx))
	}
	c.Struck = strikeAgents
	core := p.fabric.Core
	n /= strikes // its own, each with other devices
	spine := spineName(n%core.Pods, n%core.SpinesPerPod)
	agents := upTo(min(3, core.Switches()), func(s int) proto.NodeID { return proto.FirstSwitch + proto.NodeID((n+s)%core.Switches()) })
	for _, id := range agents {
		p.Cluster.Kill(id)
	}
	errs := []error{p.router.signal(spine, syscall.SIGKILL), pause(ctx, afterward), p.router.run(spine, "bgpd")}
	for _, id := range agents {
		errs = append(errs, p.Cluster.Revive(p.ctx, id))
	}
	return errors.Join(errs...)
}

// hung is the spine whose bgpd hangs: all parts of bgpParts have ports of it.
func (p *pods) hung() string { return spineName(0, 0) }

// tuned: light is where it is wanted, whatever routers say.
func (p *pods) tuned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lit
}
