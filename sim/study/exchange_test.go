package study

import (
	"errors"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: the plan is never slower than neighbours that never switch, nor than a bit a step;
// slower transceivers never help, and compute hides what it can.
// Method: all rows, with and without compute.
// Reference: [IHBD] sec 7
func TestExchangePlans(t *testing.T) {
	c := DefaultExchange()
	c.Groups, c.Dark = []int{4, 8, 16}, []time.Duration{0, 80 * time.Microsecond, time.Millisecond, time.Second}
	c.Compute = 0
	bare, err := Exchanges(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Compute = 2 * time.Second
	hidden, err := Exchanges(c)
	if err != nil {
		t.Fatal(err)
	}
	switched, saved := 0, 0
	for i, x := range bare.Rows {
		h := hidden.Rows[i]
		if x.BestMS > x.RingMS || x.BestMS > x.StepMS || h.BestMS > x.BestMS || x.SwitchMS > x.BestMS {
			t.Errorf("%+v, %+v with compute: switch, plan and the others are not in this order", x, h)
		}
		if i > 0 && x.DarkMS > bare.Rows[i-1].DarkMS && x.BestMS < bare.Rows[i-1].BestMS {
			t.Errorf("%+v: slower transceivers are faster than %+v", x, bare.Rows[i-1])
		}
		if x.DarkMS == 1000 && (x.WaitMS > 0 || x.BestSteps > 1 && x.BestMS < x.RingMS*.999) {
			t.Errorf("%+v: a second of darkness is worth no switching here", x)
		}
		if x.BestSteps > 1 && x.WaitMS > 0 {
			switched++
			if h.WaitMS < x.WaitMS {
				saved++
			}
		}
		if x.K == 2 && x.DarkMS == 0 && x.Group <= 8 && x.BestMS > x.BruckMS*1.001 {
			t.Errorf("%+v: as fast as Bruck's to 8 nodes", x)
		}
	}
	if switched == 0 || saved == 0 {
		t.Errorf("%d rows wait for a switch, compute hides some of %d: nothing is shown", switched, saved)
	}
	for field, change := range map[string]func(*ExchangeConfig){ // any order: each by itself
		"groups": func(c *ExchangeConfig) { c.Groups = []int{12} },
		"k":      func(c *ExchangeConfig) { c.Ks = []int{5} },
		"bytes":  func(c *ExchangeConfig) { c.Bytes = 0 },
	} {
		c := DefaultExchange()
		change(&c)
		var wrong *proto.Error
		if _, err := Exchanges(c); !errors.As(err, &wrong) || wrong.Field != field || wrong.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}
