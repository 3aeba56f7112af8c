package ring

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
)

// outage is a node that goes or comes back.
type outage struct {
	at   time.Duration
	node proto.NodeID
	back bool
}

// outages draws losses of one, two and three nodes beside each other, half a loss a node
// and day, of 1 to 10 minutes, as the fleet's random faults are; long of a thousand are of
// six hours in the mean.
func outages(seed uint64, nodes, long int, span time.Duration) (out []outage) {
	rng := rand.New(rand.NewPCG(seed, 1))
	away := make([]time.Duration, nodes)
	mean := 48 * time.Hour / time.Duration(nodes)
	for at := time.Duration(0); at < span; at += time.Duration(-math.Log(1-rng.Float64()) * float64(mean)) {
		count := [...]int{60: 1, 75: 2, 80: 3, 99: 0}
		kind, lost := rng.IntN(100), 0
		for limit, n := range count {
			if n > 0 && kind < limit {
				lost = n
				break
			}
		}
		first := rng.IntN(nodes - lost + 1)
		for n := first; n < first+lost; n++ {
			if away[n] < at {
				away[n] = at + time.Minute + time.Duration(rng.Int64N(int64(9*time.Minute)))
				if long > 0 && rng.IntN(1000) < long {
					away[n] = at + time.Duration(rng.ExpFloat64()*float64(6*time.Hour))
				}
				out = append(out, outage{at, proto.NodeID(n), false}, outage{away[n], proto.NodeID(n), true})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b outage) int { return cmp.Compare(a.at, b.at) })
	return out
}

// Goal: the more a ring that lacks nodes may have moved, the fewer nodes are idle
// and the more whole rings move, by a price that the operator names; and what loses
// least goes by what a move costs a job. Lost are the GPUs of idle nodes, while they
// are, and those of a ring that moves: for as long as its light is away (7.1 ms in a
// fleet), or its job.
// Method: a day of random losses, each look 150 ms after the one before;
// RINGLIGHT_GROWTH makes it 10,000 nodes (make bench-growth).
func TestIdleNodesAgainstRingsMoved(t *testing.T) {
	nodes, span := 1_000, 12*time.Hour
	if os.Getenv("RINGLIGHT_GROWTH") != "" {
		nodes, span = 10_000, 24*time.Hour
	}
	events := outages(1, nodes, 0, span)
	t.Logf("%d nodes, %d losses and returns in %v", nodes, len(events), span)
	losses := 0
	for _, e := range events {
		if !e.back {
			losses++
		}
	}
	idle, moved := math.Inf(1), 0.0
	for _, c := range []struct {
		name  string
		moves int
		price time.Duration
	}{{"8, never more", maxMoves, 1000 * time.Hour}, {"few, 5 s", maxMoves, 5 * time.Second}, {"few, 1 s", maxMoves, time.Second},
		{"few, 200 ms", maxMoves, 200 * time.Millisecond}, {"few, 50 ms", maxMoves, 50 * time.Millisecond}, {"any", Any, 0}} {
		share, perLoss, least := replayPriced(nodes, 0, events, c.moves, &Patience{Price: c.price}, false)
		hours := func(each time.Duration) float64 { // of GPUs, in a day
			return 4 * (24*share*float64(nodes) + perLoss*float64(losses)*float64(24*time.Hour)/float64(span)*16*each.Hours())
		}
		t.Logf("%-14s idle %.3f %% (arithmetic %.3f), %.1f whole rings moved a loss; GPU-hours a day lost where a move takes 7.1 ms %.0f, 1 s %.0f, 5 s %.0f, 30 s %.0f", c.name, 100*share, 100*least, perLoss,
			hours(7100*time.Microsecond), hours(time.Second), hours(5*time.Second), hours(30*time.Second))
		if share > 1.02*idle || perLoss < 0.98*moved {
			t.Errorf("%s: idle %.4f and moved %.2f, want fewer than %.4f and more than %.2f", c.name, share, perLoss, idle, moved)
		}
		idle, moved = share, perLoss
	}
	moved = math.Inf(1)
	for _, spares := range []int{0, nodes / 160, nodes / 100} { // fewer rings than there could be: fewer of them move
		share, perLoss, _ := replayPriced(nodes, spares, events, maxMoves, &Patience{Price: 5 * time.Second}, true)
		t.Logf("few, 5 s, %d spares: idle %.3f %%, %.1f whole rings moved a loss", spares, 100*share, perLoss)
		if perLoss > 1.02*moved {
			t.Errorf("%d spares: %.2f rings moved a loss, want at most %.2f", spares, perLoss, moved)
		}
		moved = perLoss
	}
}

// Goal: what outages taught loses less than what does not look at them, whatever their
// lengths and the price of a move are; and where long ones are among them, that is no harm.
// Lost are GPU-hours: of idle nodes, and of each ring that moves, for as long as its price.
// Method: days of random losses of other seeds than the shares were found with, alike but for
// the length of outages; RINGLIGHT_GROWTH makes it 10,000 nodes (make bench-growth).
func TestPatienceLosesLess(t *testing.T) {
	nodes, seeds := 1_000, uint64(2)
	if os.Getenv("RINGLIGHT_GROWTH") != "" {
		nodes, seeds = 10_000, 3
	}
	const span = 12 * time.Hour
	for _, long := range []int{0, 20} {
		var all [2]float64
		for seed := range seeds {
			events := outages(101+seed, nodes, long, span)
			losses := float64(len(events)) / 2
			day := events[len(events)-1].at.Hours() / 24
			for _, spares := range []int{0, nodes / 100} {
				for _, price := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
					var idle, moved, lost [2]float64
					for i := range lost {
						idle[i], moved[i], _ = replayPriced(nodes, spares, events, maxMoves, &Patience{Price: price}, i == 1)
						lost[i] = 4 * (24*idle[i]*float64(nodes) + moved[i]*losses/day*16*price.Hours())
						all[i] += lost[i] / lost[0]
					}
					t.Logf("seed %d, %d of 1,000 long, %2d spares, a move takes %3v: idle %.3f %% and %.3f, moved a loss %.1f and %.1f, GPU-hours a day %.0f and %.0f: %.3f", 101+seed, long, spares, price,
						100*idle[0], 100*idle[1], moved[0], moved[1], lost[0], lost[1], lost[1]/lost[0])
				}
			}
		}
		t.Logf("%d of 1,000 long: learned over unlearned %.3f in the mean", long, all[1]/all[0])
		if all[1] > all[0] {
			t.Errorf("%d of 1,000 long: what is learned loses more: %.3f of what is lost without", long, all[1]/all[0])
		}
	}
}

// replayPriced is the share of nodes that are idle, the whole rings that a loss
// moves, and the share that arithmetic leaves idle; learns: it takes note of the outages.
func replayPriced(nodes, spares int, events []outage, moves int, patience *Patience, learns bool) (idle, moved, least float64) {
	const size, look = 16, 150 * time.Millisecond
	down, since := make([]bool, nodes), make([]time.Duration, nodes)
	well := func(n proto.NodeID) bool { return !down[n] }
	tr := NewTracker(Mend{Order: Order{Nodes: nodes, K: 3, Shared: true}, Sizes: []Demand{{size, (nodes - spares) / size}}, Moves: moves, Usable: well, Free: well, Spread: true})
	next, up, losses, rings := proto.RingID(1), nodes, 0, 0
	var now, due time.Duration
	waits := false
	carry := func(r Result) {
		for i := range r.Groups {
			g := &r.Groups[i]
			if g.ID == 0 {
				g.ID = next
				next++
			} else if tr.slots[tr.slotOf[g.ID]].standing == stands {
				rings++
			}
		}
		tr.Carry(r)
	}
	far := func(ids []proto.RingID) {
		if tr.Fetch = 0; patience.Paid(now) {
			tr.Fetch = maxMoves
		}
		tr.AtOnce = patience.AtOnce()
		r := tr.Look(ids, false)
		carry(r)
		due, waits = patience.Saw(&r, now)
	}
	until := func(t time.Duration) {
		idle += float64(up-size*wholeIn(tr)) * (t - now).Seconds()
		least += float64(up%size) * (t - now).Seconds()
		now = t
	}
	far(nil)
	rings = 0
	for _, e := range events {
		for waits && max(due, now+look) < e.at {
			until(max(due, now+look))
			far(nil)
		}
		until(e.at)
		switch down[e.node] = !e.back; {
		case !e.back:
			up, losses, since[e.node] = up-1, losses+1, now
		case learns:
			patience.Away(now - since[e.node])
			fallthrough
		default:
			up++
		}
		tr.Refresh(e.node)
		ids := tr.Concerned(e.node)
		carry(tr.Look(ids, true))
		far(ids)
	}
	all := now.Seconds() * float64(nodes)
	return idle / all, float64(rings) / float64(losses), least / all
}

// Goal: what was lost runs out as it ran up, so that a lack that is long over pays for no
// other, and is never less than nothing.
func TestWhatWasLostRunsOut(t *testing.T) {
	l := Patience{moves: 9, short: 2}
	for _, step := range []struct {
		now, lost time.Duration
		moves     int // from then on
	}{{10 * time.Second, 20 * time.Second, 0}, {14 * time.Second, 16 * time.Second, 0}, {time.Minute, 0, 9}, {61 * time.Second, 2 * time.Second, 9}} {
		if l.since(step.now); l.lost != step.lost {
			t.Errorf("at %v: %v lost, want %v", step.now, l.lost, step.lost)
		}
		l.moves = step.moves
	}
}
