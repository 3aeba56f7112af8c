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
	if l.Rule != "" {
		attrs = append(attrs, slog.String("rule", l.Rule))
	}
	if l.Node >= 0 {
		attrs = append(attrs, slog.Int64("node", l.Node))
	}
	if l.Ring != 0 {
		attrs = append(attrs, slog.Uint64("ring", uint64(l.Ring)))
	}
	if l.Generation != 0 {
		attrs = append(attrs, slog.Uint64("generation", uint64(l.Generation)))
	}
	if l.Term != 0 {
		attrs = append(attrs, slog.Uint64("term", uint64(l.Term)))
	}
	if l.Corr != (proto.Corr{}) {
		attrs = append(attrs, slog.String("corr", fmt.Sprintf("%x", l.Corr[:])))
	}
	if l.Text != "" {
		attrs = append(attrs, slog.String("text", l.Text))
	}
	s.cfg.Log.LogAttrs(context.Background(), levels[l.Level], l.Message, attrs...)
}

// tellHead logs the newest record of the audit chain: where the log is kept elsewhere,
// who writes the store anew is found.
func (s *server) tellHead() {
	if s.head != "" {
		s.cfg.Log.Info("audit", "newest", s.head)
	}
}
