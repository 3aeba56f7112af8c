package box_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/sonic"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim/boxes"
)

// sonicFaults are what happens to a box while changes are asked of it.
var sonicFaults = []struct {
	name string
	// does it, before a change; over ends it.
	does, over func(s *boxes.Sonic, r *rand.Rand)
}{
	{"nothing", nil, nil},
	{"states come late", func(s *boxes.Sonic, r *rand.Rand) { s.Lag = r.IntN(12) }, nil},
	{"bulk-update is not known", func(s *boxes.Sonic, _ *rand.Rand) { s.Plain = true }, nil},
	{"answers come in pieces", func(s *boxes.Sonic, r *rand.Rand) { s.Piece = 1 + r.IntN(300) }, nil},
	{"sets are reported as failed and done", func(s *boxes.Sonic, r *rand.Rand) { s.Failing = r.IntN(4) }, nil},
	{"sets are counted and not done", func(s *boxes.Sonic, r *rand.Rand) { s.Swallow = r.IntN(3) }, func(s *boxes.Sonic, _ *rand.Rand) { s.Swallow = 0 }},
	{"another user drives it too", func(s *boxes.Sonic, r *rand.Rand) {
		one := func() sonic.Connection {
			a, b := boxes.Name(0, r.IntN(s.Ports)), boxes.Name(1, r.IntN(s.Ports))
			return sonic.Connection{ID: fmt.Sprint(r.IntN(2), ":", a, b), A: a, B: b}
		}
		act := func(s *boxes.Sonic) {
			switch x, y := one(), one(); r.IntN(4) {
			case 0:
				_, _ = s.Update(nil, []sonic.Connection{x}) // invalid where it is in a way
			case 1, 2:
				if x.A != y.A && x.B != y.B {
					_, _ = s.Update(nil, []sonic.Connection{x, y})
				}
			default:
				_, _ = s.Update(keysOf(s, x.A), nil)
			}
		}
		if act(s); r.IntN(2) == 0 {
			s.Before = act
		}
	}, nil},
	{"it reboots", func(s *boxes.Sonic, r *rand.Rand) {
		if r.IntN(3) == 0 {
			s.Lag = r.IntN(6)
			s.Reboot(r.IntN(4) > 0)
		}
	}, nil},
	{"driver cards go out and in", func(s *boxes.Sonic, r *rand.Rand) {
		for side := range s.Cards {
			for port := range s.Cards[side] {
				s.Cards[side][port] = r.IntN(6) == 0
			}
		}
	}, func(s *boxes.Sonic, _ *rand.Rand) {
		for side := range s.Cards {
			clear(s.Cards[side])
		}
	}},
	{"ports are forced at the box", func(s *boxes.Sonic, r *rand.Rand) {
		word := []string{"", "force_blocked", "powered_off"}[r.IntN(3)]
		s.Override[boxes.Name(r.IntN(2), r.IntN(s.Ports))] = word
	}, func(s *boxes.Sonic, _ *rand.Rand) { clear(s.Override) }},
	{"another user has locked it", func(s *boxes.Sonic, r *rand.Rand) { s.Locked = []string{"", "bob"}[r.IntN(2)] }, func(s *boxes.Sonic, _ *rand.Rand) { s.Locked = "" }},
}

func keysOf(s *boxes.Sonic, port string) (keys []string) {
	for _, c := range s.Wanted {
		if c.A == port {
			keys = append(keys, c.ID)
		}
	}
	return keys
}

// Goal: at the end of every change what is lit is told and what is told is lit, whatever a
// box that runs SONiC does meanwhile; with the fault over, what is wanted is lit.
// Method: a hundred random changes, with RINGLIGHT_SONIC a thousand, updates and overwrites,
// with each fault, in either dialect; a look when the box is at rest, judged by its crossbar;
// every tenth time the fault ends and what has failed is asked for again. What keeps a
// circuit from its port is told by that one's cause, what does not go by an alarm.
func TestSonicBoxesTellWhatIsLit(t *testing.T) {
	changes := 100
	if os.Getenv("RINGLIGHT_SONIC") != "" {
		changes = 1000
	}
	for _, dialect := range []sonic.Dialect{sonic.Tables, sonic.States} {
		for n, fault := range sonicFaults {
			t.Run(fmt.Sprintf("%s, %s", fault.name, dialect), func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(n), 32))
				far := boxes.NewSonic(6, dialect)
				r := &rig{t: t, far: far, x: box.New(box.Config{Client: far.Client(), Ports: far.Ports})}
				r.x.Start(0)
				r.settle()
				lit := 0
				for i := range changes {
					if fault.does != nil {
						fault.does(far, random)
					}
					ch := randomChange(random, far.Ports)
					if err := r.x.Apply(r.now, ch); err != nil {
						t.Fatalf("change %d: %v", i, err)
					}
					r.rest()
					over := fault.does == nil || i%10 == 9
					if over && fault.over != nil {
						fault.over(far, random)
						r.rest()
					}
					if over {
						var again circuit.Change
						for _, c := range r.x.Circuits(nil) {
							if again.Mode = circuit.Update; c.State == proto.Failed {
								again.Create = append(again.Create, c.Pair)
							}
						}
						if len(again.Create) > 0 {
							r.apply(again)
							r.rest()
						}
					}
					if wrong := r.untrue(far.Lit()); wrong != "" {
						t.Fatalf("change %d, %+v: %s, lit %v\n%s", i, ch, wrong, far.Lit(), r.circuits())
					}
					for _, p := range ch.Create {
						if over && !slices.Contains(far.Lit(), p) && fault.name != "another user drives it too" {
							t.Fatalf("change %d: %v is wanted and not lit\n%s", i, p, r.circuits())
						}
					}
					lit += len(far.Lit())
				}
				if lit < changes {
					t.Errorf("%d lit in all: that shows nothing", lit)
				}
			})
		}
	}
}

// rest lets a box be looked at until nothing is being tuned, and two health rounds more.
func (r *rig) rest() {
	r.t.Helper()
	for range 3 {
		for range 100 {
			r.settle()
			_, next := r.x.Poll(r.now, nil, nil)
			if next == hal.Never {
				break
			}
			r.now = next
		}
		r.x.HealthRound(r.now)
		r.settle()
	}
}

func randomChange(r *rand.Rand, ports int) (ch circuit.Change) {
	ch.Mode = circuit.Update
	if r.IntN(5) == 0 {
		ch.Mode = circuit.Overwrite
	}
	outs := r.Perm(ports)
	for a := range ports {
		switch p := (circuit.Pair{A: uint16(a), B: uint16(outs[a])}); r.IntN(5) {
		case 0, 1:
			ch.Create = append(ch.Create, p)
		case 2:
			ch.Remove = append(ch.Remove, p)
		}
	}
	return ch
}

// untrue is what is told and not lit, or lit and told by nothing.
func (r *rig) untrue(lit []circuit.Pair) (wrong string) {
	told := r.x.Circuits(nil)
	stands := map[string]bool{}
	for _, e := range r.events {
		if e.Kind == circuit.AlarmRaised || e.Kind == circuit.AlarmCleared {
			stands[e.Err.Error()] = e.Kind == circuit.AlarmRaised
		}
	}
	for _, c := range told {
		if c.State.Lit() && !slices.Contains(lit, c.Pair) {
			wrong += fmt.Sprintf("%v is told and not lit; ", c.Pair)
		}
	}
	for _, p := range lit {
		accounted := slices.ContainsFunc(told, func(c circuit.Circuit) bool {
			return c.Pair == p && c.State.Lit() || c.State == proto.Failed && (c.Pair.A == p.A) != (c.Pair.B == p.B)
		})
		for text, on := range stands { // any order: either will do
			accounted = accounted || on && strings.Contains(text, p.String()+": is not taken away")
		}
		if !accounted {
			wrong += fmt.Sprintf("%v is lit and not told; ", p)
		}
	}
	return wrong
}
