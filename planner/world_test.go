package planner

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// world is what every tiny world around a planner has: a clock, a store, and a
// broker that retains. fleet adds nodes to it, coreWorld switches. It shares no
// code with the planner but the wire.
type world struct {
	t        testing.TB
	fab      *fabric.Fabric
	p        *Planner
	store    map[string][]byte
	now      time.Duration
	late     time.Duration  // by how much the planner comes too late
	up       []proto.Packet // to the planner
	down     []Action       // of the planner, not yet carried out
	topics   proto.Topics
	trace    func(string)
	rng      *rand.Rand
	holdDisk bool
	onDisk   uint64 // the Persist asked for last
	replies  []proto.OpReply
	asked    int
	life     uint64 // of the planner
	listens  bool   // the broker has been there before the planner
	takeover bool
	backup   map[string][]byte
	first    *fabric.Fabric
	with     func(*Config) // of the next planner; nil: nothing

	forgetful bool // the broker keeps nothing

	retained map[string]proto.Packet
	order    []string // of retained topics
}

func newWorld(t testing.TB, f *fabric.Fabric) world {
	return world{t: t, fab: f, store: map[string][]byte{}, retained: map[string]proto.Packet{}, topics: proto.Topics{Fabric: f.Name},
		rng: rand.New(rand.NewPCG(1, 2)), trace: func(string) {}}
}

// state is the store as a planner reads it.
func (w *world) state() (st State) {
	for k, v := range w.store { // any order: sorted below
		st = append(st, Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	return st
}

// boot makes a planner from the store.
func (w *world) boot() {
	st := w.state()
	w.life++
	f := w.fab
	if w.first != nil { // the fabric of the world is what there is, this what is planned for at first
		if f = w.first; len(w.store) > 0 {
			f = nil
		}
	}
	cfg, err := Start(st, f, 76+w.life)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg.Alone, cfg.Takeover = !w.listens, w.takeover
	if w.with != nil {
		w.with(&cfg)
	}
	w.p, w.down, w.up = New(cfg), nil, nil
}

func (w *world) write(records []Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(w.store, r.Key)
		} else {
			w.store[r.Key] = r.Value
		}
	}
}

// hand gives the planner an event of now; what it asks for waits in down.
func (w *world) hand(ev Event) {
	ev.At, ev.WallMillis, ev.Late = w.now, 1_000_000+uint64(w.now.Milliseconds()), w.late
	w.down = w.p.Step(ev, w.down)
}

// pop takes the next thing that the planner asks for.
func (w *world) pop() Action {
	a := w.down[0]
	w.down = w.down[1:]
	if a.Kind == Persist {
		w.onDisk = a.Persist
	}
	return a
}

func (w *world) retain(pk proto.Packet) {
	if w.forgetful {
		return
	}
	if _, ok := w.retained[pk.Topic]; !ok {
		w.order = append(w.order, pk.Topic)
	}
	w.retained[pk.Topic] = pk
}

// forget drops what the broker retained of a node.
func (w *world) forget(id proto.NodeID) {
	delete(w.retained, w.topics.Presence(id))
	delete(w.retained, w.topics.Reported(id))
	w.order = slices.DeleteFunc(w.order, func(t string) bool { _, there := w.retained[t]; return !there })
}

// replay lets the broker send what it retains to one who has just connected.
func (w *world) replay() {
	for _, topic := range w.order {
		pk := w.retained[topic]
		pk.Retain = true
		w.up = append(w.up, pk)
	}
}

// decode reads what the planner sent, which must be valid.
func (w *world) decode(pk proto.Packet, m any) {
	if _, err := proto.Decode(pk.Payload, m); err != nil {
		w.t.Fatalf("planner sent what does not decode on %s: %v", pk.Topic, err)
	}
}
