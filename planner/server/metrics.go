package server

import (
	"context"
	"net/http"
	"os"
	"time"

	"ringlight/planner"
	"ringlight/planner/hbd"
	"ringlight/planner/view"
	"ringlight/proto/guard"
	"ringlight/proto/metric"
	"ringlight/proto/metric/self"
)

// The pages for a monitoring system. What is counted is copied in the
// planner's goroutine; text is made of it in that of whoever asked.

const (
	metricsPath = "/metrics"
	nodesPath   = "/metrics/nodes"
	metricsType = "text/plain; version=0.0.4; charset=utf-8"
)

// turnBounds and storeBounds are in microseconds. chosen: from an idle planner
// to one that keeps operators waiting; from a fast disk to one that is dying.
var (
	turnBounds  = []int64{50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_000_000}
	storeBounds = []int64{500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_000_000}
)

// meters are what the shell itself measures; they belong to the planner's
// goroutine.
type meters struct {
	turns, commits metric.Tally
	losses         uint64
	woke           time.Time     // zero: what was done is no work of the planner's
	due            time.Time     // when the loop is to come by again
	missed         time.Duration // by how much it was too late, which nobody was told yet
	queued         int           // of what had come at since, so much waits
	since          time.Time
}

// waits notes that the loop waits for so long at most, while so much waits for it.
func (m *meters) waits(most time.Duration, queued int) time.Duration {
	now := time.Now()
	if m.due = now.Add(most); m.queued <= 0 {
		m.queued, m.since = queued, now
	}
	return most
}

// wakes notes the begin of a turn, and says by how much it comes too late to what it has
// to do, or was told.
func (m *meters) wakes() (late time.Duration) {
	m.woke = time.Now()
	late = max(m.missed, m.late(m.woke))
	m.missed = 0
	return late
}

// reads notes that somebody looks before it wakes: by how much it is too late is told then.
func (m *meters) reads() { m.missed = max(m.missed, m.late(time.Now())) }

func (m *meters) late(now time.Time) (late time.Duration) {
	if m.queued > 0 {
		late = now.Sub(m.since)
	}
	return max(0, late, now.Sub(m.due))
}

// slept notes the end of a turn.
func (m *meters) slept() {
	if !m.woke.IsZero() {
		m.turns.Observe(time.Since(m.woke).Microseconds())
		m.woke = time.Time{}
	}
}

func newMeters() meters {
	return meters{turns: metric.NewTally(turnBounds), commits: metric.NewTally(storeBounds)}
}

// vitals are a copy of the shell's measures.
type vitals struct {
	turns, commits          metric.Tally
	linkUp                  bool
	losses, unsent, dropped uint64
	unwritten               time.Duration // the store has taken no writes for so long
	storeBytes              int64         // -1: not known
	view                    view.Load
	seals                   guard.Counts
}

// Measures are those of the planner's process besides planner.Measures.
var Measures = []metric.Measure[*vitals]{
	metric.Of(metric.Family{Name: "ringlight_broker_connected", Help: "1 while the planner's link to its broker is up with every subscription granted."},
		func(v *vitals, p *metric.Page) { p.Bool(v.linkUp) }),
	metric.Of(metric.Family{Name: "ringlight_broker_losses_total", Kind: metric.Counter, Help: "Losses of that link."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.losses)) }),
	metric.Of(metric.Family{Name: "ringlight_messages_unsent_total", Kind: metric.Counter, Help: "Messages that the link would not take; they are sent again."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.unsent)) }),
	metric.Of(metric.Family{Name: "ringlight_broker_dropped_total", Kind: metric.Counter, Help: "Messages that slow clients of the embedded broker lost."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.dropped)) }),
	metric.Of(metric.Family{Name: "ringlight_step_seconds", Kind: metric.Histogram, Places: metric.Micro, Help: "One step of the planner: take what came, decide, store, answer."},
		func(v *vitals, p *metric.Page) { p.Tally(&v.turns) }),
	metric.Of(metric.Family{Name: "ringlight_store_commit_seconds", Kind: metric.Histogram, Places: metric.Micro, Help: "Time of one transaction of the store."},
		func(v *vitals, p *metric.Page) { p.Tally(&v.commits) }),
	metric.Of(metric.Family{Name: "ringlight_store_unwritten_seconds", Places: metric.Milli, Help: "Age of the oldest write that fails or hangs in the store; 0: none."},
		func(v *vitals, p *metric.Page) { p.Is(v.unwritten.Milliseconds()) }),
	metric.Of(metric.Family{Name: "ringlight_store_bytes", Help: "Size of the store's file."},
		func(v *vitals, p *metric.Page) {
			if v.storeBytes >= 0 {
				p.Is(v.storeBytes)
			}
		}),
	metric.Of(metric.Family{Name: "ringlight_view_viewers", Help: "Browsers that watch the live view now, 64 at most."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.view.Viewers)) }),
	metric.Of(metric.Family{Name: "ringlight_view_frames_total", Kind: metric.Counter, Help: "Frames of changes made for the live view; none while nobody watches."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.view.Frames)) }),
	metric.Of(metric.Family{Name: "ringlight_view_dropped_total", Kind: metric.Counter, Help: "Viewers that were too slow; they begin again with a snapshot."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.view.Dropped)) }),
	metric.Of(metric.Family{Name: "ringlight_view_refused_total", Kind: metric.Counter, Help: "Viewers refused because 64 watched already."},
		func(v *vitals, p *metric.Page) { p.Is(int64(v.view.Refused)) }),
}

// vitals copies the shell's measures.
func (s *server) vitals() vitals {
	v := vitals{turns: s.meters.turns.Clone(), commits: s.meters.commits.Clone(), linkUp: s.link.Up(), losses: s.meters.losses, unsent: s.unsent, storeBytes: -1, seals: s.guard.Counts()}
	if since, _ := s.unwritten(time.Now()); !since.IsZero() {
		v.unwritten = time.Since(since)
	}
	if s.broker != nil {
		v.dropped = s.broker.Dropped()
	}
	return v
}

// scraper writes a page into what it has written the one before into.
type scraper struct {
	s     *server
	page  metric.Page
	nodes []hbd.NodeCensus
	self  *self.Process
	load  func() view.Load
}

// maxScrapes bounds the pages under way at once, each of which takes some
// 5 MB of a planner of 10,000 nodes. chosen: two of each Prometheus of a pair.
const maxScrapes = 4

// scraped lends a scraper to each request in turn.
func scraped(s *server, me *self.Process, load func() view.Load, write func(*scraper, context.Context) error) http.HandlerFunc {
	free := make(chan *scraper, maxScrapes)
	for range maxScrapes {
		own := *me
		free <- &scraper{s: s, self: &own, load: load}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case c := <-free:
			defer func() { free <- c }()
			c.page.Text = c.page.Text[:0]
			if err := write(c, r.Context()); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", metricsType)
			_, _ = w.Write(c.page.Text) // who went away asks again
		case <-r.Context().Done():
		}
	}
}

func (c *scraper) fabric(ctx context.Context) error {
	var census *planner.Census
	var v vitals
	if err := c.s.Read(ctx, func(p *planner.Planner) { census, v = planner.CensusOf(p), c.s.vitals() }); err != nil {
		return err
	}
	if info, err := os.Stat(c.s.cfg.State); err == nil {
		v.storeBytes = info.Size()
	}
	v.view = c.load()
	c.self.Look()
	metric.AppendAll(&c.page, planner.Measures, census)
	metric.AppendAll(&c.page, Measures, &v)
	metric.AppendAll(&c.page, self.Measures, c.self)
	metric.AppendAll(&c.page, guard.Measures, &v.seals)
	return nil
}

func (c *scraper) perNode(ctx context.Context) error {
	err := c.s.Read(ctx, func(p *planner.Planner) { c.nodes = planner.NodesOf(p, c.nodes[:0]) })
	if err == nil {
		metric.AppendAll(&c.page, planner.NodeMeasures, c.nodes)
	}
	return err
}

// scrapes adds the two pages.
func (s *server) scrapes(mux *http.ServeMux, load func() view.Load) {
	me := self.New("ocs-planner", s.cfg.Version, self.File{Use: "cert", Path: s.cfg.CertFile}, self.File{Use: "ca", Path: s.cfg.CAFile}, self.File{Use: "issuer", Path: s.cfg.Seals.Issuer})
	mux.HandleFunc("GET "+metricsPath, scraped(s, me, load, (*scraper).fabric))
	mux.HandleFunc("GET "+nodesPath, scraped(s, me, load, (*scraper).perNode))
}
