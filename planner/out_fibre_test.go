package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/planner/job"
)

// Goal: a job that comes when a fibre carries no light, which nobody has said, is whole over
// others, or degraded by the circuit that did not come up; it stays in no state before.
// Method: fibres of every kind of core dark, one at a time, then a job that takes much of
// it, and one that takes all.
func TestJobThatComesLaterGoesRoundDarkFibres(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			told := map[job.State]int{}
			size := k.core().SwitchSize()
			step := 5
			if testing.Short() {
				step = 15
			}
			for at := 0; at < 2*size*k.core().Switches(); at += step {
				for _, wish := range []string{k.some, k.all} {
					w := startedWorld(t, k.core())
					s, side, port := at/2/size, at%2, at/2%size
					for other := range size {
						fibre := [2][2]uint16{{uint16(port), uint16(other)}, {uint16(other), uint16(port)}}[side]
						w.switches[s].broken[fibre] = true
					}
					w.put("a", wish)
					w.run(time.Minute)
					v := w.job("a")
					told[v.State]++
					degraded := v.State == job.Degraded && strings.HasPrefix(v.Cause, fmt.Sprintf("switch %d: port ", s)) && v.Confirmed < v.Links
					if v.State != job.Ready && !degraded {
						t.Errorf("%s, switch %d, side %d, port %d: %s %q, %d of %d links\n%s", wish, s, side, port, v.State, v.Cause, v.Confirmed, v.Links, w.heard("a"))
					}
					if text := w.unlit(); text != "" {
						t.Error(text)
					}
				}
			}
			t.Log(told)
		})
	}
}
