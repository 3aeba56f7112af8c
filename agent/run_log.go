package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// Lines of the log say by which plan the agent stood: the keys term and generation,
// as the planner's have them, so that the two logs are read side by side.

// standing is the plan in force when the agent was last looked at. Lines come from
// several goroutines.
type standing struct{ term, generation atomic.Uint64 }

// planned adds it to each line.
type planned struct {
	slog.Handler
	at *standing
}

func (p planned) Handle(ctx context.Context, line slog.Record) error {
	if term := p.at.term.Load(); term != 0 {
		line = line.Clone()
		line.AddAttrs(slog.Uint64("term", term), slog.Uint64("generation", p.at.generation.Load()))
	}
	return p.Handler.Handle(ctx, line)
}

func (p planned) WithAttrs(a []slog.Attr) slog.Handler { return planned{p.Handler.WithAttrs(a), p.at} }

func (p planned) WithGroup(name string) slog.Handler { return planned{p.Handler.WithGroup(name), p.at} }

// look reads which plan is in force.
func (r *runner) look() {
	term, generation := r.host.Plan()
	r.plan.term.Store(uint64(term))
	r.plan.generation.Store(uint64(generation))
}
