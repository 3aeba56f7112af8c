package agent

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// reading is a value that an agent told: a sample of its telemetry, or the time of a switch.
type reading struct {
	at     time.Duration // when it was told, as the records have it
	read   time.Duration // when it was read, at the least
	place  proto.BundleID
	module uint8
	q      proto.Quantity
	value  int32
}

// heardDay keeps all that the agents tell.
type heardDay struct {
	f     *fleet
	list  map[*fleetNode][]reading
	saved map[*fleetNode]map[int]time.Duration // when a slot was, last
	seen  map[*fleetNode]int                   // events that are in the list
}

func (h *heardDay) sample(x *fleetNode, m *proto.Health) {
	now := h.f.world.Now()
	for _, s := range m.Samples {
		r := reading{at: now, read: now - time.Duration(s.AgeMillis+1)*time.Millisecond, place: s.Bundle, module: s.Module, q: quantityOf[s.Sensor], value: s.Value}
		again := func(o reading) bool { // read before, and told again
			return o.place == r.place && o.module == r.module && o.q == r.q && o.value == r.value && (o.read-r.read).Abs() <= 2*time.Millisecond && o.at != r.at
		}
		if !slices.ContainsFunc(h.list[x], again) {
			h.list[x] = append(h.list[x], r)
		}
	}
}

// boot begins a life whose records are kept, and says which readings they have.
func (h *heardDay) boot(x *fleetNode) {
	x.host.Bins = func(slot int, row []byte) {
		x.disk.KeepBins(slot, row)
		if h.saved[x] == nil {
			h.saved[x] = map[int]time.Duration{}
		}
		h.saved[x][slot] = h.f.world.Now()
	}
}

// switched takes the switches from the events.
func (h *heardDay) switched(x *fleetNode) {
	for _, e := range x.events[h.seen[x]:] {
		if e.Ledger != nil {
			h.list[x] = append(h.list[x], reading{at: time.Duration(e.AtMicros) * time.Microsecond, place: e.Bundle, q: proto.RecoveryTime, value: int32(e.Ledger.TotalMicros())})
		}
	}
	h.seen[x] = len(x.events)
}

func (h *heardDay) kill(x *fleetNode) {
	h.f.kill(x)
	h.switched(x)
	h.list[x] = slices.DeleteFunc(h.list[x], func(r reading) bool { return r.at > h.saved[x][int(r.at/(15*time.Minute))%96] })
}

// ask reads all pages, by the agent's own socket's question.
func (h *heardDay) ask(x *fleetNode, scope proto.BinScope) (out []proto.Bin) {
	h.f.t.Helper()
	for q := (Ask{Verb: AskBins, Bins: &scope}); ; {
		var ans *Answer
		x.host.Ask(h.f.world.Now(), q, func(a *Answer) { ans = a })
		h.f.poll(x)
		if ans == nil || ans.Err != nil {
			h.f.t.Fatalf("%+v: %+v", scope, ans)
		}
		out = append(out, ans.Bins...)
		if q.Value = ans.Next; q.Value == 0 {
			return out
		}
	}
}

// check compares the bins of a scope with what was told.
func (h *heardDay) check(x *fleetNode, scope proto.BinScope, length time.Duration) (bins int) {
	h.f.t.Helper()
	type key struct {
		from time.Duration
		q    proto.Quantity
	}
	h.switched(x)
	want := map[key][]int64{}
	for _, r := range h.list[x] {
		if scope.Place >= 0 && int16(r.place) != scope.Place || scope.Module >= 0 && (int8(r.module) != scope.Module || !r.q.OfModule()) {
			continue
		}
		k := key{r.at / length * length, r.q}
		want[k] = append(want[k], int64(r.value))
	}
	for _, b := range h.ask(x, scope) {
		if b.Quantity == proto.ExcessLoss || b.Quantity == proto.SwitchTime {
			continue // not in telemetry
		}
		k := key{time.Duration(b.From) * time.Second, b.Quantity}
		v := want[k]
		delete(want, k)
		bins++
		if len(v) == 0 {
			h.f.t.Fatalf("node %d, %+v: a bin of which nothing was told: %+v", x.id, scope, b)
		}
		sum := int64(0)
		for _, value := range v {
			sum += value
		}
		twice, n := 2*sum+int64(len(v)), 2*int64(len(v))
		avg := (twice - ((twice%n)+n)%n) / n
		if int(b.Samples) != len(v) || int64(b.Min) != slices.Min(v) || int64(b.Max) != slices.Max(v) || int64(b.Avg) != avg {
			h.f.t.Fatalf("node %d, %+v: %v %+v, told were %d from %d to %d, average %d", x.id, scope, b.Quantity, b, len(v), slices.Min(v), slices.Max(v), avg)
		}
	}
	for k, v := range want { // any order: there must be none
		h.f.t.Fatalf("node %d, %+v: no bin of %v at %v, of which %d were told", x.id, scope, k.q, k.from, len(v))
	}
	return bins
}

// Goal: over a day, every bin of every place is what the agent told meanwhile, after agents
// were killed, hosts were without power and light went; and the same seed gives the same bins.
// Method: telemetry and switches of two nodes in a ring against their bins. A kill costs
// what was not saved, which is at most five minutes and a round.
func TestADayOfRecords(t *testing.T) {
	hours := 24
	if testing.Short() {
		hours = 9
	}
	day := func() (all []proto.Bin) {
		f := &fleet{t: t, decide: fleetDecide, health: time.Minute}
		h := &heardDay{f: f, list: map[*fleetNode][]reading{}, saved: map[*fleetNode]map[int]time.Duration{}, seen: map[*fleetNode]int{}}
		f.sample = h.sample
		startFleet(f, 3, 2)
		rnd := rand.New(rand.NewPCG(7, 7))
		boot := func(x *fleetNode) {
			f.boot(x)
			h.boot(x)
			f.link(x, true)
		}
		for _, x := range f.nodes {
			h.boot(x)
			f.link(x, true)
		}
		f.must("adopted", time.Second, func() bool {
			return f.nodes[0].host.Adopted() && f.nodes[1].host.Adopted() && f.nodes[2].host.Adopted()
		})
		f.heard()
		f.commit(f.ring(0, 2))
		f.run(time.Minute, nil)
		for hour := range hours {
			x := f.nodes[rnd.IntN(2)]
			f.run(time.Duration(rnd.IntN(2400))*time.Second+time.Duration(rnd.IntN(1e9)), nil)
			h.switched(x)
			lost := len(h.list[x])
			switch hour % 3 {
			case 0:
				h.kill(x)
				if lost -= len(h.list[x]); lost > 6*2*2*5 {
					t.Errorf("a kill costs %d readings, of which a round has 20", lost)
				}
			case 1:
				h.kill(x)
				f.power(x, false)
				f.run(time.Duration(rnd.IntN(1200))*time.Second, nil)
				f.world.SetPower(sim.BoardID(x.id), true)
			case 2:
				x.host.SaveBins(f.world.Now())
				h.kill(x)
				if len(h.list[x]) != lost {
					t.Errorf("an orderly end costs %d readings", lost-len(h.list[x]))
				}
				f.run(time.Duration(rnd.IntN(1200))*time.Second, nil)
			}
			boot(x)
			f.run(time.Duration(hour+1)*time.Hour-time.Minute-f.world.Now(), nil)
		}
		for _, x := range f.nodes {
			n := 0
			for place := int16(-1); place < 2; place++ {
				for module := int8(-1); module < 2; module++ {
					n += h.check(x, proto.BinScope{Place: place, Module: module}, 15*time.Minute)
					h.check(x, proto.BinScope{Place: place, Module: module, Days: true}, 24*time.Hour)
				}
			}
			if h.list[x][0].at > 5*time.Minute || n < 4*hours*3*9 {
				t.Errorf("node %d: %d bins in all", x.id, n)
			}
			all = append(all, h.ask(x, proto.BinScope{Place: -1, Module: -1})...)
		}
		return all
	}
	if a, b := day(), day(); !slices.Equal(a, b) {
		t.Error("another day with the same seed has other bins")
	}
}
