package live

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"ringlight/agent"
	"ringlight/proto"
)

// outages are how long optics lose their supply.
var outages = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 10 * time.Second}

// loseSupply takes the supply of a node's optics away for a while, under an agent
// that lives on, and under one that is killed and started meanwhile.
func (p *procs) loseSupply(ctx context.Context) error {
	for i := range 2 * len(outages) {
		lost, restart := outages[i/2], i%2 == 1
		rings, err := p.rings(ctx)
		if err != nil {
			return err
		}
		n, what := rings[i%len(rings)].Nodes[1], "agent lives on"
		began := time.Now()
		if _, err := p.tell(boardName(n), "power off"); err != nil {
			return err
		}
		if restart {
			what = "agent killed -9"
			p.signal(agentName(n), syscall.SIGKILL)
			p.res.ProcsKilled++
			if err := p.startAgent(n); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lost):
		}
		if _, err := p.tell(boardName(n), "power on"); err != nil {
			return err
		}
		took, err := await(ctx, procsService, "in service by itself", func() (bool, string) {
			s, err := p.status(n)
			if err != nil {
				return false, err.Error()
			}
			well := s.Reported.Mode == proto.ModeService
			for _, b := range s.Reported.Bundles {
				well = well && b.State == proto.Tuned
			}
			return well, fmt.Sprintf("%v: %v", s.Reported.Mode, s.Reported.Alarms)
		})
		if err != nil {
			return fmt.Errorf("node %d, %v without supply, %s: %w", n, lost, what, err)
		}
		if err := p.serving(ctx); err != nil {
			return err
		}
		p.done(began, fmt.Sprintf("optics of node %d without supply for %v, %s", n, lost, what), "in service by itself after %.1f s, all rings again", took.Seconds())
	}
	return nil
}

// status asks a node's agent at its socket.
func (p *procs) status(n int) (*agent.Status, error) {
	return statusIn(p.path(fmt.Sprintf("node%d", n)))
}

func statusIn(folder string) (*agent.Status, error) {
	a, err := agent.AskSocket(filepath.Join(folder, "agent.sock"), agent.Question{Verb: "status"})
	switch {
	case err != nil:
		return nil, err
	case a.Status == nil:
		return nil, fmt.Errorf("the agent of %s tells no status: %v", folder, a.Err)
	}
	return a.Status, nil
}
