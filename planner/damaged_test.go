package planner

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// spoiled is a store with one to three of its records not as they were written:
// what a checksum does not find, since a planner of another fabric or version,
// or a mistake, has written it.
func spoiled(rnd *rand.Rand, store map[string][]byte) (State, string) {
	st := maps.Clone(store)
	names := slices.Sorted(maps.Keys(st))
	what := ""
	for range 1 + rnd.IntN(3) {
		key := names[rnd.IntN(len(names))]
		other := names[rnd.IntN(len(names))]
		v := bytes.Clone(st[key])
		switch rnd.IntN(9) {
		case 0:
			what += key + " gone; "
			delete(st, key)
			continue
		case 1:
			what += key + " has what " + other + " had; "
			v = bytes.Clone(store[other])
		case 2:
			v = v[:rnd.IntN(len(v)+1)]
			what += fmt.Sprintf("%s cut to %d; ", key, len(v))
		case 3:
			if len(v) > 0 {
				v[rnd.IntN(len(v))] ^= 1 << rnd.IntN(8)
			}
			what += key + " flipped; "
		case 4:
			prefix, _, _ := strings.Cut(key, "/")
			delete(st, key)
			key = fmt.Sprintf("%s/%s", prefix, extreme(rnd))
			what += "at " + key + "; "
		default:
			v = spoiledNumber(rnd, v)
			what += fmt.Sprintf("%s is %.300q; ", key, v)
		}
		st[key] = v
	}
	var out State
	for _, k := range slices.Sorted(maps.Keys(st)) {
		out = append(out, Record{Key: k, Value: st[k]})
	}
	return out, what
}

func extreme(rnd *rand.Rand) string {
	all := []string{"0", "1", "2", "3", "7", "-1", "64", "1048575", "1048576", "4294967295", "4294967296", "9007199254740991", "9007199254740992",
		"18446744073709551614", "18446744073709551615", "18446744073709551616", "null", "[]", "{}", `""`, "1e300", "0000000003"}
	return all[rnd.IntN(len(all))]
}

var digits = regexp.MustCompile(`\d+|\[[^\[\]]*\]|"[^"]*"|true|false`)

// spoiledNumber puts something else in the place of a number, list or text.
func spoiledNumber(rnd *rand.Rand, v []byte) []byte {
	at := digits.FindAllIndex(v, -1)
	if len(at) == 0 {
		return []byte(extreme(rnd))
	}
	span := at[rnd.IntN(len(at))]
	return slices.Concat(v[:span[0]], []byte(extreme(rnd)), v[span[1]:])
}

// ringStore is what a planner of rings leaves, and what its broker retains.
func ringStore(t testing.TB) *world {
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 16, GPUsPerNode: 4, K: 2, TP: 16, Spares: 1, Topology: fabric.Line})
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(20 * time.Second)
	w.die(5)
	w.run(20 * time.Second)
	w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 2, Bundle: -1})
	w.run(20 * time.Second)
	return &w.world
}

// circuitStore is the same of a planner of circuits, one in the middle of a stage.
func circuitStore(t testing.TB, open bool) *world {
	w := newCoreWorld(t, &churnCores[0])
	w.start()
	for s := range w.switches {
		w.birth(s)
	}
	w.quiet(20 * time.Second)
	w.apply(spec(1, 8, 4, 2), spec(2, 8, 4, 2))
	w.quiet(20 * time.Second)
	w.apply(spec(2, 8, 4, 2), spec(3, 10, 4, 2))
	if open {
		w.run(40 * time.Millisecond)
	} else {
		w.quiet(20 * time.Second)
	}
	return &w.world
}

// lives lets a planner live on a store for a while: it hears what the broker
// retains, is asked for everything, and time passes.
func lives(w *world, st State) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	cfg, err := Start(st, w.fab, 77)
	if err != nil {
		if !strings.Contains(err.Error(), "store") {
			return fmt.Errorf("panic: the error names no record: %w", err)
		}
		return err
	}
	cfg.Alone = true
	p := New(cfg)
	cfg.Will()
	now := time.Duration(0)
	step := func(ev Event) {
		ev.At, ev.WallMillis = now, uint64(now.Milliseconds())
		for queue := p.Step(ev, nil); len(queue) > 0; {
			a := queue[0]
			if queue = queue[1:]; a.Kind == Persist {
				queue = append(queue, p.Step(Event{Kind: Persisted, Persist: a.Persist, At: now}, nil)...)
			}
		}
	}
	step(Event{Kind: LinkUp})
	for round := range 30 {
		for _, topic := range w.order {
			if round == 1 || round == 20 {
				step(Event{Kind: Packet, Packet: w.retained[topic]})
			}
		}
		if round == 10 || round == 25 {
			for noun := proto.NounFabric; noun <= proto.NounApply; noun++ {
				raw, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1, byte(noun), byte(round)}, TTLMillis: 1000, Noun: noun, Bundle: -1, DryRun: true, Node: 3, Ring: 1, Job: 2})
				if err == nil {
					step(Event{Kind: Packet, Packet: proto.Packet{Topic: w.topics.Request("me"), Payload: raw}})
				}
			}
			p.Overview()
			p.Core.Status()
			p.Rings.Placed.Statuses()
		}
		now = max(now, min(p.Next(), now+time.Second))
		step(Event{Kind: Tick})
	}
	return nil
}

// Goal: no store stops a planner but by an error that names the record, however
// it came to be what it is.
// Method: stores of both kinds with records of other content, other numbers and
// other places; each planner that starts lives for half a minute among what its
// broker retains.
func TestSpoiledStoresAreRefusedOrLivedWith(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 300
	}
	worlds := map[string]*world{"rings": ringStore(t), "circuits": circuitStore(t, false), "open stage": circuitStore(t, true)}
	for name, w := range worlds { // any order: independent
		rnd := rand.New(rand.NewPCG(3, uint64(len(name))))
		refused := 0
		for range runs {
			st, what := spoiled(rnd, w.store)
			if err := lives(w, st); err != nil {
				if refused++; strings.HasPrefix(err.Error(), "panic") {
					t.Errorf("%s: %s%v", name, what, err)
				}
			}
		}
		t.Logf("%s: %d records, %d of %d stores refused", name, len(w.store), refused, runs)
	}
}
