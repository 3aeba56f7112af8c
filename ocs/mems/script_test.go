package mems_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/script"
)

// Goal: what goes wrong with mirrors and their monitors ends in its own error
// or in recovery, and the other circuits stay.
// Method: the scripts in testdata.
func TestFaultScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func([]string) string { return (&mirrorScript{t: t}).command })
}

// mirrorScript is one case: a board of mirrors.
type mirrorScript struct {
	t *testing.T
	r *rig
}

// command does one line and gives what came of it:
//
//	mirrors PORTS SEED            a board of mirrors
//	connect A-B ..., cut A-B ...
//	creep SIDE/PORT RATE          microradian an hour, on both axes, from then on
//	stick SIDE/PORT, free SIDE/PORT
//	noise CODES                   of all monitors, rms
//	dark PORT, lit PORT           what comes in at side A
//	health ROUNDS, status
func (s *mirrorScript) command(w []string) string {
	num := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return n
	}
	if w[0] == "mirrors" {
		s.r = newRig(s.t, num(w[1]), uint64(num(w[2])))
		return s.said()
	}
	r := s.r
	place := func() (side, port int) {
		if _, err := fmt.Sscanf(w[1], "%d/%d", &side, &port); err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return side, port - 1
	}
	switch w[0] {
	case "connect", "cut":
		if err := r.x.Apply(r.world.Now(), s.change(w)); err != nil {
			return fmt.Sprintf("refused: %v\n", err)
		}
		r.until(2*time.Second, r.idle)
	case "creep":
		side, port := place()
		r.world.CreepMirror(r.id, side, port, int32(num(w[2])))
	case "stick", "free":
		side, port := place()
		r.world.StickMirror(r.id, side, port, w[0] == "stick")
	case "noise":
		r.world.NoisyMonitors(r.id, num(w[1]))
	case "dark", "lit":
		r.world.SetMirrorInput(r.id, num(w[1])-1, sim.InputLight{Lit: w[0] == "lit"})
	case "health":
		for range num(w[1]) {
			r.x.HealthRound(r.world.Now())
			r.until(time.Second, func() bool { return false })
		}
	case "status":
		return s.status()
	default:
		s.t.Fatalf("%q: no such command", w)
	}
	return s.said()
}

// change is what connect and cut ask for, as update; ports count from 1.
func (s *mirrorScript) change(w []string) (ch circuit.Change) {
	ch.Mode = circuit.Update
	for _, text := range w[1:] {
		var p circuit.Pair
		if _, err := fmt.Sscanf(text, "%d-%d", &p.A, &p.B); err != nil {
			s.t.Fatalf("%q: %v", text, err)
		}
		p.A, p.B = p.A-1, p.B-1
		if w[0] == "cut" {
			ch.Remove = append(ch.Remove, p)
		} else {
			ch.Create = append(ch.Create, p)
		}
	}
	return ch
}

// said is what happened since it was last asked.
func (s *mirrorScript) said() (out string) {
	for _, e := range s.r.events {
		line := fmt.Sprint(e.Kind)
		if e.Kind != circuit.Ready {
			line += " " + e.Pair.String()
		}
		if e.Err != nil {
			line += ": " + e.Err.Error()
		}
		out += line + "\n"
	}
	s.r.events = nil
	return out
}

func (s *mirrorScript) status() (out string) {
	if n := s.r.world.PulledIn(s.r.id); n > 0 {
		out = fmt.Sprintf("%d mirrors on their stops\n", n)
	}
	for _, c := range s.r.x.Circuits(nil) {
		line := fmt.Sprintf("%v %v", c.Pair, c.State)
		if c.Err != nil {
			line += ": " + c.Err.Error()
		}
		over := s.r.world.MirrorLoss(s.r.id, int(c.Pair.A), int(c.Pair.B)) - int32(c.Factory)
		if c.State == proto.Tuned && over > 550 {
			line += ", by the light itself too weak"
		}
		out += line + "\n"
	}
	return out
}
