package box_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim/boxes"
)

// farEnd is the other end of a text line: it takes what was sent and answers when
// it likes.
type farEnd interface {
	Say(b []byte)
	Hear() []byte
}

// rig steps a Box against a far end.
type rig struct {
	t      *testing.T
	x      *box.Box
	far    farEnd
	now    time.Duration
	dead   bool
	events []circuit.Event
}

// settle goes on until the box has nothing more to do.
func (r *rig) settle() {
	r.t.Helper()
	var done []*hal.Completion
	for range 10_000 {
		ops, _ := r.x.Poll(r.now, done, nil)
		done = nil
		r.events = r.x.TakeEvents(r.events)
		if len(ops) == 0 {
			return
		}
		for _, op := range ops {
			c := &hal.Completion{Bus: op.Bus, Op: op.Op}
			m := &op.Op.Msgs[0]
			if r.dead {
				c.Err = hal.ErrTimeout
			} else {
				r.far.Say(m.W)
				var reply []byte
				for tries := 0; len(reply) == 0 && tries < 10_000; tries++ {
					reply = r.far.Hear()
				}
				if len(reply) == 0 { // as the transport does: silence is a timeout, and the line is opened anew
					c.Err = hal.ErrTimeout
					if far, ok := r.far.(*tornEnd); ok {
						far.rest = nil
					}
				}
				copy(m.R, reply)
			}
			r.now += time.Millisecond
			done = append(done, c)
		}
	}
	r.t.Fatal("the box never comes to rest")
}

func (r *rig) apply(ch circuit.Change) {
	r.t.Helper()
	if err := r.x.Apply(r.now, ch); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
}

func (r *rig) circuits() (s string) {
	for _, c := range r.x.Circuits(nil) {
		s += fmt.Sprintf("%v %v;", c.Pair, c.State)
	}
	return s
}

// Circuits through a box that chatters, and one
// that swallows, denies and dies.
func TestBoxOverTL1(t *testing.T) {
	far := boxes.NewTL1(8, false)
	far.Chatter = "REPT EVT CRS"
	r := &rig{t: t, far: far, x: box.New(box.Config{Client: far.Client(), End: ';'})}
	if err := r.x.Apply(0, circuit.Change{}); !errors.Is(err, circuit.ErrNotReady) {
		t.Errorf("before start: %v", err)
	}
	r.x.Start(0)
	r.settle()
	far.Swallow = 4
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 0, B: 4}, {A: 1, B: 5}, {A: 2, B: 6}}})
	if got, want := r.circuits(), "1A-5B tuned;2A-6B tuned;3A-7B tuned;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	far.Deny = 1000
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 3, B: 3}}})
	if c := r.x.Circuits(nil)[3]; c.State != proto.Failed || !errors.Is(c.Err, hal.ErrBoxDenied) {
		t.Errorf("denied: %+v", c)
	}
	if got := r.circuits()[:45]; got != "1A-5B tuned;2A-6B tuned;3A-7B tuned;4A-4B fai" {
		t.Errorf("the others: %s", got)
	}
	far.Deny = 0
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: []circuit.Pair{{A: 0, B: 0}}})
	if got, want := r.circuits(), "1A-1B tuned;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// It dies in the middle, and comes back: fail static, found as it is.
	r.dead = true
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 5, B: 5}}})
	if link, _, err := r.x.Link(); link != box.LinkSilent || !errors.Is(err, hal.ErrTimeout) {
		t.Errorf("dead: %v %v", link, err)
	}
	if err := r.x.Apply(r.now, circuit.Change{}); !errors.Is(err, circuit.ErrOutOfService) {
		t.Errorf("dead: %v", err)
	}
	r.dead = false
	r.x.Start(r.now)
	r.settle()
	if got, want := r.circuits(), "1A-1B tuned;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

var _ circuit.Switch = (*box.Box)(nil)

// oddEnd is a scripted Polatis that answers one question in its own way.
type oddEnd struct {
	*boxes.SCPI
	to, with string
	odd      bool
}

func (e *oddEnd) Say(b []byte) {
	e.odd = e.to != "" && bytes.Contains(b, []byte(e.to))
	e.SCPI.Say(b)
}

func (e *oddEnd) Hear() []byte {
	b := e.SCPI.Hear()
	if e.odd && len(b) > 0 {
		e.odd = false
		return []byte(e.with + "\n")
	}
	return b
}

// Goal: a box whose light cannot be measured is switched all the same, and its circuits are
// unproven.
// Method: a box without meters, and one that answers a question for powers oddly; each
// makes two circuits, and another in place of one.
func TestBoxWithoutMetersIsSwitched(t *testing.T) {
	for name, odd := range map[string]*oddEnd{ // any order: independent
		"no meters":   {SCPI: boxes.NewSCPI(4)},
		"odd reading": {SCPI: boxes.NewSCPI(4), to: "pmon:pow", with: "(-1.0,OVERLOAD)"},
	} {
		odd.SCPI.Box.HasMeters = odd.to != ""
		if odd.to == "" {
			odd.SCPI.Box.Identity = "Polatis,I-OST-4x4-LA1,1,6.5"
		}
		r := &rig{t: t, far: odd, x: box.New(box.Config{Client: scpi.NewClient(), End: '\n'})}
		r.x.Start(0)
		r.settle()
		r.apply(circuit.Change{Create: []circuit.Pair{{A: 0, B: 1}, {A: 1, B: 2}}})
		r.apply(circuit.Change{Remove: []circuit.Pair{{A: 0, B: 1}}, Create: []circuit.Pair{{A: 0, B: 3}}})
		if got, want := r.circuits(), "1A-4B unproven;2A-3B unproven;"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		told := 0
		for _, e := range r.events {
			if e.Kind == circuit.Unproven && errors.Is(e.Err, box.ErrNoMeters) {
				told++
			}
		}
		if link, _, err := r.x.Link(); told != 3 || link != box.LinkQuiet || err != nil {
			t.Errorf("%s: told %d times; %v, %v", name, told, link, err)
		}
		odd.to = "" // its meters are read again
		if odd.SCPI.Box.HasMeters {
			r.x.HealthRound(r.now)
			r.settle()
			if got, want := r.circuits(), "1A-4B tuned;2A-3B tuned;"; got != want {
				t.Errorf("%s, and well again: %s, want %s", name, got, want)
			}
		}
	}
}
