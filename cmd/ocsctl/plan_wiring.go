package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/wiring"
)

const (
	defaultDeadline = time.Second
	maxDeadline     = 24 * time.Hour                 // chosen: beyond it somebody has mistaken the unit
	maxSteps        = min(int64(1)<<50, math.MaxInt) // chosen: years of one core
	// maxWiringPorts bounds memory, which a short text could ask for without
	// end; chosen: sixty times the largest core of the literature.
	maxWiringPorts = 1 << 24
	firstPortion   = 4096 // steps of every block between two looks at the clock, at first
	// looks at the clock there are at least in a deadline; chosen so that the
	// last portion overdraws it by little.
	looks = 40
)

type wiringInput struct {
	Pods, SpinePorts  int
	Groups            []json.RawMessage
	DeadlineMS, Steps *int64
	Seed              uint64
	Method            string

	groups []wiring.Group
}

func readWiring(data []byte) (*wiringInput, error) {
	in := &wiringInput{Method: "search"}
	if err := decodePlan(data, []planKey{
		{"pods", &in.Pods, "an integer"}, {"spine_ports", &in.SpinePorts, "an even integer"},
		{"groups", &in.Groups, "an array of objects"},
		{"deadline_ms", &in.DeadlineMS, "an integer of milliseconds"}, {"steps", &in.Steps, "an integer"},
		{"seed", &in.Seed, "an integer from 0"}, {"method", &in.Method, "search, published or split"},
	}); err != nil {
		return nil, err
	}
	switch d, n := in.DeadlineMS, in.Steps; {
	case in.Method != "search" && in.Method != "published" && in.Method != "split":
		return nil, wrongUsage("method", "search, published or split", "%q", cli.Clip(in.Method))
	case d != nil && n != nil:
		return nil, wrongUsage("steps", "deadline_ms or steps", "both are there")
	case d != nil && (*d < 0 || *d > maxDeadline.Milliseconds()):
		return nil, wrongUsage("deadline_ms", fmt.Sprintf("0 to %d", maxDeadline.Milliseconds()), "%d", *d)
	case n != nil && (*n < 0 || *n > maxSteps):
		return nil, wrongUsage("steps", fmt.Sprintf("0 to %d", maxSteps), "%d", *n)
	}
	if err := wiring.ValidateSize(in.Pods, in.SpinePorts); err != nil {
		return nil, usageAt("", err)
	}
	if in.Groups == nil {
		return nil, wrongUsage("groups", "an array of objects", "there is none")
	}
	if most := maxWiringPorts / (in.Pods * in.SpinePorts); len(in.Groups) > most {
		return nil, wrongUsage("groups", fmt.Sprintf("pods x spine_ports x groups of at most %d, here %d groups", maxWiringPorts, most), "%d groups", len(in.Groups))
	}
	for n, raw := range in.Groups {
		g, err := in.group(fmt.Sprintf("groups[%d].", n), raw)
		if err != nil {
			return nil, err
		}
		in.groups = append(in.groups, g)
	}
	return in, nil
}

func (in *wiringInput) group(at string, raw []byte) (g wiring.Group, err error) {
	var links, old intLists
	if err := decodePlan(raw, []planKey{
		{"links", &links, "[[i,j,count],..]"}, {"old_even", &old, "spine_ports/2 rows of pods"},
	}); err != nil {
		return g, usageAt(at, err)
	}
	if !links.there {
		return g, wrongUsage(at+"links", "[[i,j,count],..]", "there is none")
	}
	if err := cmp.Or(links.sound(at+"links"), old.sound(at+"old_even")); err != nil {
		return g, err
	}
	list := make([]wiring.Link, len(links.lists))
	for n, l := range links.lists {
		if len(l) != 3 {
			return g, wrongUsage(fmt.Sprintf("%slinks[%d]", at, n), "[i,j,count]", "%d numbers", len(l))
		}
		list[n] = wiring.Link{I: int32(l[0]), J: int32(l[1]), Count: int32(l[2])}
	}
	if g.Topology, err = wiring.NewTopology(in.Pods, list); err != nil {
		return g, usageAt(at, err)
	}
	if g.Old = wiring.NewHalf(in.Pods, in.SpinePorts/2); old.there {
		if g.Old, err = wiring.HalfFrom("old_even", in.Pods, in.SpinePorts/2, old.lists); err != nil {
			return g, usageAt(at, err)
		}
	}
	return g, usageAt(at, g.Validate())
}

type wiringGroup struct {
	Even       [][]int32 `json:"even"`
	KeptEven   int       `json:"kept_even"`
	UpperBound int       `json:"upper_bound"`
}

type wiringOutput struct {
	Groups []wiringGroup `json:"groups"`
	MS     int64         `json:"ms"` // rounded up
	Steps  int64         `json:"steps"`
}

func planWiring(text []byte, _ func() ([]byte, error)) (any, error) {
	in, err := readWiring(text)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	halves, bounds, steps, err := in.configure(start)
	if err != nil {
		return nil, err
	}
	o := wiringOutput{Groups: make([]wiringGroup, len(halves)), Steps: steps}
	for n, h := range halves {
		o.Groups[n] = wiringGroup{make([][]int32, h.Switches), h.Kept(in.groups[n].Old), bounds[n]}
		for k := range h.Switches {
			o.Groups[n].Even[k] = h.Row(k)
		}
	}
	o.MS = (time.Since(start) + time.Millisecond - 1).Milliseconds()
	return o, nil
}

// configure runs the method over all groups; bounds are of the circuits that
// can stay in each. The first step is the first answer, the others are the
// search's.
func (in *wiringInput) configure(start time.Time) (halves []wiring.Half, bounds []int, steps int64, err error) {
	bounds = make([]int, len(in.groups))
	for n, g := range in.groups {
		bounds[n] = g.UpperBound()
	}
	blind := in.Method == "split" || in.Steps != nil && *in.Steps == 0 || in.Steps == nil && in.deadline() == 0
	switch {
	case in.Method == "published":
		halves, err = in.each(wiring.CrossRewire)
		return halves, bounds, 0, err
	case blind:
		halves, err = in.each(wiring.Group.Split)
		return halves, bounds, 0, err
	case in.Steps != nil && *in.Steps == 1:
		halves, err = in.each(wiring.Group.First)
		return halves, bounds, 1, err
	}
	rewirings := make([]*wiring.Rewiring, len(in.groups))
	errs := make([]error, len(in.groups))
	sideBySide(len(in.groups), func(n int) {
		rewirings[n], errs[n] = wiring.NewRewiring(in.groups[n], wiring.Seed(in.Seed, n))
	})
	if err := errors.Join(errs...); err != nil {
		return nil, nil, 0, err
	}
	var blocks []*wiring.Block
	for _, r := range rewirings {
		if r.Block != nil {
			blocks = append(blocks, r.Block)
		}
	}
	if in.Steps != nil {
		steps = *in.Steps
		sideBySide(len(blocks), func(n int) { blocks[n].Run(wiring.Share(int(steps-1), len(blocks), n)) })
	} else {
		steps = 1 + in.until(start, blocks)
	}
	halves = make([]wiring.Half, len(rewirings))
	if steps == 1 {
		for n, r := range rewirings {
			halves[n] = r.AtOnce
		}
		return halves, bounds, steps, nil
	}
	sideBySide(len(rewirings), func(n int) { halves[n], bounds[n] = rewirings[n].Half(), rewirings[n].UpperBound() })
	return halves, bounds, steps, nil
}

// until turns the deadline into steps: every block gets the same number,
// portion by portion, until the next portion would be too late or nothing is
// left to find. The first portion is one step, which brings what can stay
// without a search. What it gives back leads to the same answer as steps.
func (in *wiringInput) until(start time.Time, blocks []*wiring.Block) (steps int64) {
	deadline := in.deadline()
	portion, last := 1, time.Duration(0)
	for {
		before := time.Now()
		if before.Sub(start)+last >= deadline-deadline/looks {
			return steps
		}
		if !slices.ContainsFunc(blocks, func(b *wiring.Block) bool { return !b.Settled() }) {
			return steps
		}
		sideBySide(len(blocks), func(n int) { blocks[n].Run(portion) })
		steps += int64(portion) * int64(len(blocks))
		if last = time.Since(before); portion == 1 {
			portion, last = firstPortion, 0
		} else if last < deadline/(2*looks) {
			portion *= 2
			last *= 2
		}
	}
}

func (in *wiringInput) deadline() time.Duration {
	if in.DeadlineMS == nil {
		return defaultDeadline
	}
	return time.Duration(*in.DeadlineMS) * time.Millisecond
}

// each runs a method that needs no budget.
func (in *wiringInput) each(method func(wiring.Group) (wiring.Half, error)) ([]wiring.Half, error) {
	halves := make([]wiring.Half, len(in.groups))
	errs := make([]error, len(in.groups))
	sideBySide(len(in.groups), func(n int) { halves[n], errs[n] = method(in.groups[n]) })
	return halves, errors.Join(errs...)
}

// sideBySide calls do for 0 to n-1 on all cores. The order does not matter to
// what is done.
func sideBySide(n int, do func(n int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
