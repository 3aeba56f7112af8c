package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// StepConfig is an experiment: how long a training step takes while light between pods
// moves every so often ([LUMOS] Table 5).
type StepConfig struct {
	PodsConfig
	Every    []time.Duration // light moves; 0: never
	For      time.Duration   `flag:"for" usage:"TIME that each takes" takes:"TIME"`
	Elements int             // of the sums
	Compute  time.Duration   `flag:"compute" usage:"TIME of a step before its sum" takes:"TIME"`
}

// Steps is what one interval came to.
type Steps struct {
	EverySeconds int     `json:"every_s"` // 0: never
	Moves        int     `json:"moves"`
	Steps        int     `json:"steps"`
	Micros       []int64 `json:"took_us"`
	Wrong        int     `json:"wrong"` // sums
}

// Mean is of a step.
func (s *Steps) Mean() (micros int64) {
	for _, x := range s.Micros {
		micros += x
	}
	return micros / int64(max(1, len(s.Micros)))
}

// Step has processes of two leaves of each pod train while light goes and comes.
func Step(ctx context.Context, cfg StepConfig) (out []Steps, err error) {
	p, err := newPods(ctx, &cfg.PodsConfig)
	if p != nil {
		defer func() { err = errors.Join(err, p.end()) }()
	}
	if err != nil {
		return nil, err
	}
	var devices, addresses []string
	for n, d := range p.made {
		l := 0
		if of, _ := fmt.Sscanf(d, "leaf%d", &l); of == 1 && l%p.fabric.Core.LeavesPerPod < 2 {
			devices, addresses = append(devices, d), append(addresses, routerAddress(n))
		}
	}
	t, err := p.train(ctx, devices, addresses, cfg.Elements, cfg.Compute)
	if t != nil {
		defer func() { err = errors.Join(err, t.end()) }()
	}
	if err != nil {
		return nil, err
	}
	moved := 0
	for _, every := range cfg.Every {
		begun, s := t.now(), Steps{EverySeconds: int(every.Seconds())}
		_, before, _ := t.done(begun)
		for end := begun + cfg.For; t.now() < end; {
			wait := end - t.now()
			if next := begun + every*time.Duration(s.Moves) + every/2; every > 0 && next < end {
				wait = next - t.now()
			}
			if err := pause(ctx, max(0, wait)); err != nil {
				return out, err
			}
			if t.now() >= end {
				break
			}
			if err := p.turn(ctx, moved); err != nil {
				return out, err
			}
			s.Moves, moved = s.Moves+1, moved+1
		}
		s.Micros = t.took(begun)
		if s.Steps, s.Wrong, err = t.done(begun); err != nil {
			return out, err
		}
		s.Wrong -= before
		if out = append(out, s); moved%2 == 1 {
			if err := p.whole(ctx, moved); err != nil {
				return out, err
			}
			moved++
		}
	}
	return out, nil
}

// whole lets in what a turn took out: what is measured next begins with all light.
func (p *pods) whole(ctx context.Context, turn int) error {
	gen := p.generation()
	if err := p.turn(ctx, turn); err != nil {
		return err
	}
	if err := until(ctx, "all light between pods", func() bool { return p.rests(gen) }); err != nil {
		return err
	}
	return p.settle(ctx)
}
