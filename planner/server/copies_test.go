package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/proto"
)

// shared is a store in memory that several have open: who came first leads.
type shared struct {
	mu    sync.Mutex
	state map[string][]byte
	seq   uint64
	reign uint64
	open  []*sharedView
	down  bool
}

type sharedView struct {
	of      *shared
	reign   uint64
	changed chan struct{}
}

func (s *shared) view(context.Context) (Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &sharedView{of: s, changed: make(chan struct{})}
	s.open = append(s.open, v)
	s.elect()
	return v, nil
}

// elect is called with mu held.
func (s *shared) elect() {
	if len(s.open) > 0 && s.open[0].reign == 0 && !s.down {
		s.reign++
		s.open[0].reign = s.reign
	}
	for _, v := range s.open {
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// lose ends the reign of who leads: he goes to the end of the row. down: nobody follows
// him until up.
func (s *shared) lose(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	s.open[0].reign = 0
	s.open = append(s.open[1:], s.open[0])
	s.elect()
}

func (v *sharedView) Standing() (Standing, <-chan struct{}) {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	st := Standing{Election: 4711, Reign: v.reign, Batches: v.of.seq}
	if v.of.down {
		st.Away = errors.New("down")
	}
	return st, v.changed
}

func (v *sharedView) Load() (planner.State, error) {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	return sorted(v.of.state), nil
}

func sorted(state map[string][]byte) (out planner.State) {
	for k, value := range state { // any order: merge sorts
		out = merge(out, planner.Record{Key: k, Value: value})
	}
	return out
}

func merge(st planner.State, r planner.Record) planner.State {
	at := 0
	for at < len(st) && st[at].Key < r.Key {
		at++
	}
	return append(st[:at:at], append(planner.State{r}, st[at:]...)...)
}

func (v *sharedView) Commit(records []planner.Record) error {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	if v.reign == 0 {
		return ErrNotLeading
	}
	for _, r := range records {
		if delete(v.of.state, r.Key); r.Value != nil {
			v.of.state[r.Key] = r.Value
		}
	}
	v.of.seq++
	v.of.elect() // the others are told
	return nil
}

func (v *sharedView) Close() error {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.reign = 0
	for i, x := range v.of.open {
		if x == v {
			v.of.open = append(v.of.open[:i:i], v.of.open[i+1:]...)
			v.of.elect()
			break
		}
	}
	return nil
}

// Goal: of two copies one leads and the other follows; when the first one resigns the
// other's next word is its term, within what a listening start would take; no node
// applies anything anew, and status names both. Then the leader loses the store: it
// follows, and comes back in a higher term. Method: a store in memory, fake agents.
func TestCopyTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	agents := startAgents(t, b.URL(), 0)
	op := startOperator(t, b.URL())
	store := &shared{state: map[string][]byte{}}
	start := func() (stop func() error, url string) {
		at := make(chan string, 1)
		cfg := testConfig(b.URL(), "shared")
		cfg.Open, cfg.HTTP, cfg.HTTPReady = store.view, "127.0.0.1:0", func(url string) { at <- url }
		stop = inProcess(t, cfg)
		return stop, <-at
	}
	stopOne, _ := start()
	op.rings("in service", allInService(2))
	one := op.state("leads", func(m *proto.PlannerState, _ bool) bool { return m.Online })
	_, url := start()
	two := op.state("follows", func(m *proto.PlannerState, _ bool) bool { return m.Standby && m.Election == one.Election })
	if two.Life == one.Life || two.Planner != one.Planner {
		t.Errorf("%+v follows %+v", two, one)
	}
	get := func(path, want string) {
		t.Helper()
		var text []byte
		for end := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
			r, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			text, _ = io.ReadAll(r.Body)
			r.Body.Close()
			if strings.Contains(string(text), want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s of the one that follows has no %q: %s", path, want, text)
			}
		}
	}
	get("/readyz", "ok: follows")
	get("/leader", "does not lead")
	get("/metrics", "ringlight_leader 0")
	get("/metrics", `ringlight_rings{state="in_service"} 2`)
	get("/view/status", fmt.Sprint(one.Life))

	// It has listened for as long as one that starts would.
	from := op.state("a beat", func(m *proto.PlannerState, retained bool) bool { return m.Online && !retained })
	op.state("four beats more", func(m *proto.PlannerState, _ bool) bool { return m.Online && m.Seq >= from.Seq+4 })
	applied := applications(agents)
	began := time.Now()
	if err := stopOne(); err != nil {
		t.Fatal(err)
	}
	now := op.state("took over", func(m *proto.PlannerState, retained bool) bool { return m.Online && !retained && m.Life == two.Life })
	if took := time.Since(began); now.Term != one.Term+1 || took > 3*planner.BeatPeriod {
		t.Errorf("in term %d after %v, was %d", now.Term, took, one.Term)
	}
	op.rings("in service again", allInService(2))
	if n := applications(agents); n != applied {
		t.Errorf("%d generations were applied by the change of leaders", n-applied)
	}
	get("/readyz", "ok: leads")
	get("/leader", "leads")

	store.lose(true)
	get("/readyz", "takes no writes")
	get("/leader", "does not lead")
	get("/metrics", "ringlight_leader 0")
	get("/metrics", `ringlight_rings{state="in_service"} 2`)
	store.mu.Lock()
	store.down = false
	store.elect()
	store.mu.Unlock()
	back := op.state("leads again", func(m *proto.PlannerState, retained bool) bool { return m.Online && !retained && m.Term > now.Term })
	if back.Life != two.Life || back.Seq <= now.Seq {
		t.Errorf("%+v after %+v: a beat of a life never counts back", back, now)
	}
	get("/readyz", "ok: leads")
	if n := applications(agents); n != applied {
		t.Errorf("%d generations were applied by the loss of the store", n-applied)
	}
}

// Goal: the file's lock is the election of a store in a file: the second one waits for
// it, and says so, and begins when the first one ends.
func TestSecondOnAFileWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "planner.db")
	first, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	cfg := testConfig("", path)
	cfg.Listen, cfg.Ready = "127.0.0.1:0", func(string, planner.Config) { close(ready) }
	inProcess(t, cfg)
	time.AfterFunc(lockPatience+500*time.Millisecond, func() { first.Close() })
	select {
	case <-ready:
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it never began")
	}
}
