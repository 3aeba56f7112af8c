package procs

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ringlight/agent"
	"ringlight/proto"
	"ringlight/sim/step"
)

// outages are how long optics lose their supply.
var outages = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 10 * time.Second}

// loseSupply takes the supply of a node's optics away for a while, under an agent
// that lives on, and under one that is killed and started meanwhile.
func (p *procs) loseSupply(ctx context.Context) {
	for i := range 2 * len(outages) {
		lost, restart := outages[i/2], i%2 == 1
		rings := p.rings(ctx)
		n, what := rings[i%len(rings)].Nodes[1], "agent lives on"
		began := time.Now()
		p.tell(boardName(n), "power off")
		if restart {
			what = "agent killed -9"
			p.kill(agentName(n))
			p.startAgent(n)
		}
		pause(ctx, lost)
		p.tell(boardName(n), "power on")
		well := func() (bool, string) {
			s := p.status(n)
			well := s.Reported.Mode == proto.ModeService
			for _, b := range s.Reported.Bundles {
				well = well && b.State.Lit()
			}
			return well, fmt.Sprintf("%v: %v", s.Reported.Mode, s.Reported.Alarms)
		}
		var took time.Duration
		step.Within(fmt.Sprintf("node %d, %v without supply, %s", n, lost, what), func() { took = await(ctx, procsService, "in service by itself", well) })
		p.serving(ctx)
		p.done(began, fmt.Sprintf("optics of node %d without supply for %v, %s", n, lost, what), "in service by itself after %.1f s, all rings again", took.Seconds())
	}
}

// status asks a node's agent at its socket.
func (p *procs) status(n int) *agent.Status {
	return statusIn(p.folder(n))
}

func statusIn(folder string) *agent.Status {
	a := step.Got(agent.AskSocket(filepath.Join(folder, "agent.sock"), agent.Question{Verb: "status"}))
	if a.Status == nil {
		step.Fail("the agent of %s tells no status: %v", folder, a.Err)
	}
	return a.Status
}
