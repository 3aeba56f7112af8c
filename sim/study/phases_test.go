package study

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/planner/model"
)

func TestNoIterationByPhaseIsLongerThanOnOneTopology(t *testing.T) {
	c := DefaultPhases()
	c.Servers, c.Models, c.Dark = 16, nil, []time.Duration{0, 10 * time.Microsecond, time.Millisecond, 20 * time.Millisecond, time.Second}
	for _, name := range model.Names() {
		c.Models = append(c.Models, model.Named(name))
	}
	r, err := Phases(c)
	if err != nil {
		t.Fatal(err)
	}
	shorter := 0
	for i, x := range r.Rows {
		if x.PhasesMS > x.OneMS || x.IdealMS > x.PhasesMS*1.000001 || x.WaitMS > x.PhasesMS {
			t.Errorf("%+v: ideal, by phase and one topology are not in this order", x)
		}
		if i > 0 && x.DarkMS > r.Rows[i-1].DarkMS && x.PhasesMS < r.Rows[i-1].PhasesMS {
			t.Errorf("%+v: a slower switch is faster than %+v", x, r.Rows[i-1])
		}
		if x.DarkMS == 1000 && x.Changes > 0 {
			t.Errorf("%+v: a second of darkness is worth no change here", x)
		}
		if x.Gain < .95 {
			shorter++
		}
	}
	if shorter < 5 {
		t.Errorf("%d of %d rows gain a twentieth: phases are not followed", shorter, len(r.Rows))
	}
}

// Goal: a model that cannot have the stages asked for is named, and the comparison names
// the model that its figure is of.
// Method: one with tables beside one without, and the one alone.
func TestPhasesSayWhatHasNoRow(t *testing.T) {
	c := DefaultPhases()
	c.Dark = c.Dark[:1]
	for _, models := range [][]string{{"dlrm", "gpt-moe"}, {"dlrm"}} {
		c.Models = nil
		for _, name := range models {
			c.Models = append(c.Models, model.Named(name))
		}
		r, err := Phases(c)
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(r.Report)
		for _, want := range []string{"DLRM has no rows with stages of 4", "the most is of " + r.Rows[len(r.Rows)-1].Model} {
			if !strings.Contains(said, want) {
				t.Errorf("%v: no %q in %s", models, want, said)
			}
		}
	}
}
