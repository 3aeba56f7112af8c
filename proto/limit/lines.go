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
	// nodeReport is the same of one node's. chosen: with nodeRate.
	nodeReport = time.Minute
	// nodeLines bounds the nodes and messages that are told apart. chosen: some of
	// each node of a cell.
	nodeLines = 32_768
)

// nodeRate is how often one node may cause a line of one message. chosen: what happens
// to it is seen whole, and a sender of a hundred messages a second hides no other.
var nodeRate = Rate{10 * time.Second, 12}

// Logger limits a logger's lines: those of one level and message share a Rate, those of
// them about one node another, and how many were kept back is a line of its own. nil makes one that is
// silent; a logger that is limited already is given back.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	if _, already := l.Handler().(lines); already {
		return l
	}
	return slog.New(lines{l.Handler(), &kinds{root: l.Handler(), of: map[kind]*keptLines{}, nodes: Sources{Rate: nodeRate, Max: nodeLines}}})
}

type lines struct {
	slog.Handler
	kinds *kinds // shared by all handlers made of one
}

type kinds struct {
	root  slog.Handler
	mu    sync.Mutex
	of    map[kind]*keptLines
	nodes Sources
}

type kind struct {
	level   slog.Level
	message string
	node    string // "": any
}

type keptLines struct {
	bucket Bucket
	kept   uint64
}

func (l lines) WithAttrs(a []slog.Attr) slog.Handler { return lines{l.Handler.WithAttrs(a), l.kinds} }
func (l lines) WithGroup(name string) slog.Handler   { return lines{l.Handler.WithGroup(name), l.kinds} }

func (l lines) Handle(ctx context.Context, r slog.Record) error {
	what := kind{level: r.Level, message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "node" {
			what.node = a.Value.String()
		}
		return what.node == ""
	})
	if l.kinds.allow(what) {
		return l.Handler.Handle(ctx, r)
	}
	return nil
}

func (k *kinds) allow(what kind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if what.node != "" && !k.nodes.Take(now, what.node+" "+what.message, 1) {
		return k.keep(what, nodeReport)
	}
	what.node = ""
	if k.of[what] == nil && len(k.of) >= lineKinds {
		what.message = "other lines"
	}
	x := k.of[what]
	if x == nil {
		x = new(keptLines)
		k.of[what] = x
	}
	return x.bucket.Take(now, Rate{lineInterval, lineBurst}, 1) || k.keep(what, lineReport)
}

// keep counts a line that is kept back.
func (k *kinds) keep(what kind, told time.Duration) bool {
	if k.of[what] == nil && len(k.of) >= lineKinds/2 {
		what.node = "" // many nodes do so
	}
	x := k.of[what]
	if x == nil {
		x = new(keptLines)
		k.of[what] = x
	}
	if x.kept++; x.kept == 1 {
		time.AfterFunc(told, func() { k.report(what) })
	}
	return false
}

// report says how many lines of a kind were kept back.
func (k *kinds) report(what kind) {
	k.mu.Lock()
	n := k.of[what].kept
	if k.of[what].kept = 0; what.node != "" {
		delete(k.of, what)
	}
	k.mu.Unlock()
	r := slog.NewRecord(time.Now(), what.level, "log lines kept back", 0)
	r.AddAttrs(slog.String("line", what.message), slog.Uint64("count", n))
	if what.node != "" {
		r.AddAttrs(slog.String("node", what.node))
	}
	_ = k.root.Handle(context.Background(), r) // a log that is gone is told nobody
}
