package limit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// lineBurst lines of one message may come at once. chosen: a row of nodes
	// that all tell the same is seen whole.
	lineBurst = 200
	// lineInterval between two of them from then on. chosen: a flood of a day
	// is 15 MB.
	lineInterval = time.Second
	// lineKinds bounds the messages that are told apart; ours are constants,
	// far fewer.
	lineKinds = 512
	// lineReport is when lines kept back are told in one line, from the first.
	lineReport = 5 * time.Second
)

// Logger limits a logger's lines: those of one level and message share a Rate,
// and how many were kept back is a line of its own. nil makes one that is
// silent; a logger that is limited already is given back.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	if _, already := l.Handler().(lines); already {
		return l
	}
	return slog.New(lines{l.Handler(), &kinds{root: l.Handler(), of: map[kind]*keptLines{}}})
}

type lines struct {
	slog.Handler
	kinds *kinds // shared by all handlers made of one
}

type kinds struct {
	root slog.Handler
	mu   sync.Mutex
	of   map[kind]*keptLines
}

type kind struct {
	level   slog.Level
	message string
}

type keptLines struct {
	bucket Bucket
	kept   uint64
}

func (l lines) WithAttrs(a []slog.Attr) slog.Handler { return lines{l.Handler.WithAttrs(a), l.kinds} }
func (l lines) WithGroup(name string) slog.Handler   { return lines{l.Handler.WithGroup(name), l.kinds} }

func (l lines) Handle(ctx context.Context, r slog.Record) error {
	if l.kinds.allow(kind{r.Level, r.Message}) {
		return l.Handler.Handle(ctx, r)
	}
	return nil
}

func (k *kinds) allow(what kind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of[what] == nil && len(k.of) >= lineKinds {
		what.message = "other lines"
	}
	x := k.of[what]
	if x == nil {
		x = new(keptLines)
		k.of[what] = x
	}
	if x.bucket.Take(time.Now(), Rate{lineInterval, lineBurst}, 1) {
		return true
	}
	if x.kept++; x.kept == 1 {
		time.AfterFunc(lineReport, func() { k.report(what) })
	}
	return false
}

// report says how many lines of a kind were kept back.
func (k *kinds) report(what kind) {
	k.mu.Lock()
	n := k.of[what].kept
	k.of[what].kept = 0
	k.mu.Unlock()
	r := slog.NewRecord(time.Now(), what.level, "log lines kept back", 0)
	r.AddAttrs(slog.String("line", what.message), slog.Uint64("count", n))
	_ = k.root.Handle(context.Background(), r) // a log that is gone is told nobody
}
