package ocs_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/script"
)

// Goal: whatever is wrong with a chip, a bus or a module ends in its own error
// or in recovery, blocks nothing longer than its deadline, and leaves the other
// bundle at work.
// Method: scripts in testdata/faults, as package script plays them; commands
// are in faultScript.command.
func TestFaultScripts(t *testing.T) {
	script.Run(t, "testdata/faults/*.txt", func(t *testing.T) func([]string) string { return (&faultScript{t: t}).command })
}

// faultScript is one case: a board of two bundles.
type faultScript struct {
	t *testing.T
	r *rig
}

// chip is a place by its name, such as guard(0/1): of module 1 of bundle 0.
var chip = regexp.MustCompile(`(latch|guard|lanes|eeprom|temp|mci)\((\d+)/(\d+)\)`)

func (s *faultScript) place(text string) string {
	return chip.ReplaceAllStringFunc(text, func(name string) string {
		p := chip.FindStringSubmatch(name)
		b, _ := strconv.Atoi(p[2])
		m, _ := strconv.Atoi(p[3])
		mod := &s.r.board.Bundles[b].Modules[m]
		bus, addr := mod.ADC, mod.Guard
		switch p[1] {
		case "latch":
			l := s.r.board.Latches[s.r.board.Bundles[b].Latch]
			bus, addr = l.Bus, l.Addr
		case "lanes":
			addr = mod.LaneADC
		case "eeprom":
			bus, addr = mod.Slow, mod.EEPROM
		case "temp":
			bus, addr = mod.Slow, mod.Temp
		case "mci":
			bus, addr = mod.MCI, hal.MCIAddr
		}
		return fmt.Sprintf("%d/%#x", bus, addr)
	})
}

// command does one line and gives what came of it:
//
//	board chips|own|mux|slow MODULES   two bundles with their true codes
//	board found MODULES                two bundles of chips, calibrated from nothing
//	plant FAULT, mend FAULT            a fault of the simulator; places by name
//	select BUNDLE PATH
//	health BUNDLE ROUNDS
//	calibrate BUNDLE, start BUNDLE
//	page BUNDLE/MODULE PAGE            another host selects a page of a module
//	run TIME
//	status BUNDLE
func (s *faultScript) command(w []string) string {
	num := func(i int) int {
		n, err := strconv.Atoi(w[i])
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return n
	}
	if w[0] == "board" {
		return s.make(w[1], num(2))
	}
	r := s.r
	now := r.world.Now()
	var err error
	wait := time.Millisecond
	switch w[0] {
	case "plant", "mend":
		var f sim.Fault
		if f, err = sim.ParseFault(s.place(w[1])); err == nil && w[0] == "plant" {
			err = r.world.Inject(r.id, f)
		} else if err == nil {
			err = r.world.Repair(r.id, f)
		}
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
	case "select":
		p, bad := proto.ParsePath(w[2])
		if bad != nil {
			s.t.Fatalf("%q: %v", w, bad)
		}
		err = r.optics[num(1)].Select(now, p)
	case "health":
		for range num(2) {
			r.optics[num(1)].Health.Round(r.world.Now())
			s.run(50 * time.Millisecond)
		}
	case "calibrate":
		err = r.optics[num(1)].Calibrate(now)
	case "start":
		r.optics[num(1)].Start(now)
	case "page":
		var b, m, page int
		if _, bad := fmt.Sscanf(w[1]+" "+w[2], "%d/%d %d", &b, &m, &page); bad != nil {
			s.t.Fatalf("%q: %v", w, bad)
		}
		mod := r.board.Bundles[b].Modules[m]
		op := &hal.Op{Msgs: []hal.Msg{{Addr: hal.MCIAddr, W: []byte{126, 0, byte(page)}}}}
		if mod.Mux != 0 {
			op.Msgs = append([]hal.Msg{{Addr: mod.Mux, W: []byte{1 << mod.MuxChannel}}}, op.Msgs...)
		}
		err = r.world.Submit(now, r.id, mod.MCI, op)
	case "run":
		if wait, err = time.ParseDuration(w[1]); err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
	case "status":
		return s.status(num(1))
	default:
		s.t.Fatalf("%q: no such command", w)
	}
	out := ""
	if err != nil {
		out = fmt.Sprintf("refused: %v\n", err)
	}
	s.run(wait)
	return out + s.said()
}

func (s *faultScript) make(kind string, modules int) string {
	r := &rig{}
	switch kind {
	case "chips":
		r = newRig(s.t, 2, modules)
	case "found":
		r = newRig(s.t, 2, modules)
		s.find(r)
	case "own", "mux":
		r = newCMISRigOf(s.t, 2, modules, kind == "mux", sim.DefaultMCITiming())
	case "slow":
		r = newCMISRigOf(s.t, 2, modules, true, sim.SlowMCITiming())
	default:
		s.t.Fatalf("board %q", kind)
	}
	s.r = r
	s.run(5 * time.Second)
	return s.said()
}

// find boots without calibrations and finds them.
func (s *faultScript) find(r *rig) {
	r.boot(make([]*ocs.Calibration, len(r.optics)))
	r.run(100 * time.Millisecond)
	for b, o := range r.optics {
		if err := o.Calibrate(r.world.Now()); err != nil {
			s.t.Fatal(err)
		}
		if !r.until(r.world.Now()+time.Minute, func() bool { return o.Status().Ready }) {
			s.t.Fatalf("bundle %d: %+v", b, r.events[b])
		}
		r.events[b] = nil
	}
	r.over = nil // a calibration has deadlines of its own
}

// run lets time go on. No operation may take longer than its deadline.
func (s *faultScript) run(d time.Duration) {
	s.r.run(d)
	for _, c := range s.r.over {
		s.t.Errorf("bus %d: an operation took %v", c.Bus, c.End-c.Start)
	}
	s.r.over = nil
}

// said is what the optics told since it was last asked, a finding a line; the
// same again is counted.
func (s *faultScript) said() string {
	var out strings.Builder
	for b := range s.r.events {
		last, n := "", 0
		flush := func() {
			if n > 1 {
				last += fmt.Sprintf(" (%d times)", n)
			}
			if n > 0 {
				out.WriteString(last + "\n")
			}
		}
		for i := range s.r.events[b] {
			if line := findingOf(b, &s.r.events[b][i]); line == last {
				n++
			} else {
				flush()
				last, n = line, 1
			}
		}
		flush()
		s.r.events[b] = nil
	}
	return out.String()
}

func findingOf(b int, e *ocs.Event) string {
	line := fmt.Sprintf("bundle %d %v %v", b, e.Kind, e.Path)
	for _, at := range []struct {
		name string
		n    uint8
	}{{"module", e.Module}, {"cell", e.Cell}, {"lane", e.Lane}} {
		if at.n != ocs.None && e.Kind != ocs.Verified && e.Kind != ocs.Switched {
			line += fmt.Sprintf(" %s %d", at.name, at.n)
		}
	}
	if e.Err != nil {
		line += ": " + cause(e.Err)
	} else if e.Kind == ocs.Degraded || e.Kind == ocs.PathFailed {
		line += ": " + decibels.ReplaceAllString(e.Text, "")
	}
	return line
}

// decibels are left out of a trace: how much is for the physics' own tests.
var decibels = regexp.MustCompile(`[0-9.]+ dB `)

// cause is the one cause of a bus error, or the error's own words.
func cause(err error) string {
	for _, c := range []error{hal.ErrAddressNACK, hal.ErrByteNACK, hal.ErrClockStretch, hal.ErrTimeout, hal.ErrBusStuck, hal.ErrArbitrationLost, hal.ErrCRC} {
		if errors.Is(err, c) {
			return c.Error()
		}
	}
	return err.Error()
}

func (s *faultScript) status(b int) string {
	st := s.r.optics[b].Status()
	line := fmt.Sprintf("bundle %d %v, on %v %v", b, st.Machine, st.Path, st.State)
	if path, shining := s.r.world.Selected(s.r.id, b); shining {
		line += ", shines on " + (proto.Loopback + proto.Path(path)).String()
	}
	if st.Err != nil {
		line += ": " + cause(st.Err)
	}
	return line + "\n"
}
