package server

import (
	"context"
	"fmt"
	"log/slog"

	"ringlight/planner"
	"ringlight/proto"
)

var levels = [...]slog.Level{planner.Info: slog.LevelInfo, planner.Warn: slog.LevelWarn, planner.Error: slog.LevelError}

// Log writes a line of the planner's.
func (s *server) Log(l *planner.Line) {
	attrs := make([]slog.Attr, 0, 7)
	add := func(is bool, a slog.Attr) {
		if is {
			attrs = append(attrs, a)
		}
	}
	add(l.Rule != "", slog.String("rule", l.Rule))
	add(l.Node >= 0, slog.Int64("node", l.Node))
	add(l.Ring != 0, slog.Uint64("ring", uint64(l.Ring)))
	add(l.Generation != 0, slog.Uint64("generation", uint64(l.Generation)))
	add(l.Term != 0, slog.Uint64("term", uint64(l.Term)))
	add(l.Corr != (proto.Corr{}), slog.String("corr", fmt.Sprintf("%x", l.Corr[:])))
	add(l.Text != "", slog.String("text", l.Text))
	s.cfg.Log.LogAttrs(context.Background(), levels[l.Level], l.Message, attrs...)
}
