package box_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim/boxes"
)

var runs = flag.Int("runs", 3, "boxes of random manners, of each protocol")

// attacked is a service with a box whose manners change at random.
type attacked struct {
	*service
	r      *rand.Rand
	wanted string // the plan in force
	killed bool   // the agent has been since then
	did    []string
}

func (a *attacked) pair() (uint16, uint16) {
	return uint16(a.r.IntN(fakePorts)), uint16(a.r.IntN(fakePorts))
}

// act does one thing at random and says what.
func (a *attacked) act() string {
	f := a.far
	switch what := a.r.IntN(16); what {
	case 0, 1, 2, 3:
		outs := a.r.Perm(fakePorts)
		var plan []string
		for in := range fakePorts {
			if a.r.IntN(2) == 0 {
				plan = append(plan, fmt.Sprintf("%d-%d", in+1, outs[in]+1))
			}
		}
		code, staged := a.planned(strings.Join(plan, " "))
		if staged {
			a.wanted, a.killed = strings.Join(plan, " "), false
		}
		return fmt.Sprintf("plan %v: %v", plan, code)
	case 4:
		f.mute = !f.mute
		return fmt.Sprint("mute ", f.mute)
	case 5:
		f.halfOpen = !f.halfOpen
		return fmt.Sprint("half-open ", f.halfOpen)
	case 6:
		f.refused = !f.refused
		return fmt.Sprint("refused ", f.refused)
	case 7:
		f.babble = !f.babble
		return fmt.Sprint("babble ", f.babble)
	case 8:
		f.delay = time.Duration(a.r.IntN(3)) * 3500 * time.Millisecond
		return fmt.Sprint("answers take ", f.delay)
	case 9:
		owner := []string{"", "bob"}[a.r.IntN(2)]
		f.Lock(owner)
		return "locked by " + owner
	case 10:
		x, y := a.pair()
		f.Cut(x, y)
		return fmt.Sprintf("cut at %dA %dB", x+1, y+1)
	case 11:
		x, y := a.pair()
		group := []string{"G", "other"}[a.r.IntN(2)]
		f.Join(x, y, group)
		return fmt.Sprintf("join %v of %s", circuit.Pair{A: x, B: y}, group)
	case 12:
		f.Restart()
		return "restart"
	case 13:
		n := a.r.IntN(8)
		if f.scpi() != nil {
			f.scpi().Swallow = n
		} else if f.sonic() != nil {
			f.sonic().Swallow, f.sonic().Failing, f.sonic().Lag = n/3, n%3, n
		} else {
			f.tl1().Swallow = n
		}
		return fmt.Sprint("swallow ", n)
	case 14:
		side, port := a.r.IntN(2), a.r.IntN(fakePorts)
		q := agent.Ask{Verb: agent.AskHold, Array: uint8(side), Port: uint16(port), Override: proto.Override(a.r.IntN(2))}
		err := a.hold(q)
		return fmt.Sprintf("hold %d%c %v: %v", port+1, 'A'+side, q.Override, err)
	}
	if a.r.IntN(3) > 0 {
		return "nothing"
	}
	a.killed = true
	a.boot()
	return "another life"
}

// calm ends all manners.
func (a *attacked) calm() {
	f := a.far
	f.mute, f.halfOpen, f.refused, f.babble, f.delay = false, false, false, false, 0
	f.Lock("")
	if f.sonic() != nil {
		f.sonic().Swallow, f.sonic().Failing, f.sonic().Lag = 0, 0, 0
		for _, c := range slices.Clone(f.sonic().Wanted) {
			if strings.HasPrefix(c.ID, "other") {
				_, _ = f.sonic().Update([]string{c.ID}, nil)
			}
		}
		return
	}
	if f.scpi() != nil {
		f.scpi().Swallow = 0
		return
	}
	f.tl1().Swallow = 0
	f.tl1().Made = slices.DeleteFunc(f.tl1().Made, func(c boxes.CrossConnection) bool { return c.Group == "other" })
}

// untrue is what is told and not so, or so and not told, "" nothing.
func (a *attacked) untrue() string {
	var r proto.Reported
	a.host.View().Report(&r)
	if st := a.host.Status(a.now).Switch; st.Reason != "" {
		return "out of service: " + st.Reason
	}
	told := map[string]bool{}
	for _, c := range r.Circuits {
		told[circuit.Pair{A: c.A, B: c.B}.String()] = c.State.Lit()
	}
	var wrong []string
	for _, p := range a.far.Lit() {
		w := p.String() // what keeps another from its port is told by that one's cause
		inWay := slices.ContainsFunc(r.Circuits, func(c proto.CircuitReport) bool { return c.State == proto.Failed && (c.A == p.A) != (c.B == p.B) })
		if !told[w] && !inWay && !slices.ContainsFunc(a.last.Alarms, func(x proto.Alarm) bool { return strings.Contains(x.Text, w+": is not taken away") }) {
			wrong = append(wrong, w+" is lit and not told")
		}
		delete(told, w)
	}
	for w, lit := range told { // any order: sorted below
		if lit {
			wrong = append(wrong, w+" is told and not lit")
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, ", ")
}

// Goal: at rest what is told is lit and what is lit is told, and what was wanted is there
// without anybody asking again, whatever a box did meanwhile.
// Method: forty acts at random to a fake box of each protocol, its agent and its planner;
// judged by the box's crossbar at the end, and in between where nothing is wrong with it.
func TestBoxesOfRandomManners(t *testing.T) {
	plans, rests := 0, 0
	for _, protocol := range protocols {
		for seed := range uint64(*runs) {
			a := &attacked{service: newService(t, protocol, nil), r: rand.New(rand.NewPCG(seed, 29))}
			for range 40 {
				a.did = append(a.did, fmt.Sprintf("%v %s", a.now, a.act()))
				a.run(time.Duration(a.r.IntN(20_000)) * time.Millisecond)
				if a.r.IntN(4) == 0 {
					a.calm()
					a.run(40 * time.Second) // silent for the slowest answer, and read twice
					rests++
					if wrong := a.untrue(); wrong != "" {
						t.Errorf("%s, seed %d, %v: %s\ntold %s\nlit %s\n%s", protocol, seed, a.now, wrong, a.told(), a.lit(), strings.Join(a.did, "\n"))
					}
				}
			}
			a.calm()
			a.run(40 * time.Second)
			for side := range 2 {
				for port := range fakePorts {
					if err := a.hold(agent.Ask{Verb: agent.AskHold, Array: uint8(side), Port: uint16(port)}); err != nil {
						t.Errorf("%s, seed %d: %v", protocol, seed, err)
					}
				}
			}
			a.run(15 * time.Minute) // the longest wait for another try, three times
			if a.killed {           // a life that finds another light leaves it to the planner
				if code, staged := a.planned(a.wanted); !staged {
					t.Errorf("%s, seed %d: a plan at rest: %v", protocol, seed, code)
				}
				a.run(time.Minute)
			}
			wrong := a.untrue()
			for w := range strings.FieldsSeq(a.wanted) {
				var p circuit.Pair
				if _, err := fmt.Sscanf(w, "%d-%d", &p.A, &p.B); err != nil {
					t.Fatal(err)
				}
				p.A, p.B = p.A-1, p.B-1
				if plans++; !slices.Contains(strings.Fields(a.lit()), p.String()) {
					wrong += fmt.Sprintf(", %v is wanted and not lit", p)
				}
			}
			if wrong != "" {
				t.Errorf("%s, seed %d, at the end: %s\ntold %s\nlit %s\n%s", protocol, seed, wrong, a.told(), a.lit(), strings.Join(a.did, "\n"))
			}
			if t.Failed() {
				return
			}
		}
	}
	if plans == 0 || rests == 0 {
		t.Errorf("%d circuits wanted, %d rests: that shows nothing", plans, rests)
	}
}
