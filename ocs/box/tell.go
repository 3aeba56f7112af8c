package box

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// others takes up what the box does and nobody here asked for. What was to be taken away
// and was not is taken away with the next round.
func (x *Box) others(now time.Duration, goal request, opening bool) {
	has := func(p hal.PortPair) bool { return slices.Contains(x.report.Map, p) }
	for p := range x.unwanted { // any order: independent
		if !has(p) {
			delete(x.unwanted, p)
		} else if said, refused := x.report.Refused[p]; refused {
			x.unwanted[p] = ": " + said.Error()
		}
	}
	was := len(x.circuits)
	x.circuits = slices.DeleteFunc(x.circuits, func(c circuit.Circuit) bool {
		return slices.Contains(x.foreign, c.Pair) && !has(hal.PortPair{In: c.Pair.A, Out: c.Pair.B})
	})
	changed := len(x.circuits) < was
	for _, p := range x.report.Map {
		_, unwanted := x.unwanted[p]
		if unwanted || slices.ContainsFunc(x.circuits, func(c circuit.Circuit) bool { return c.Pair.A == p.In || c.Pair.B == p.Out }) {
			continue
		}
		pair := circuit.Pair{A: p.In, B: p.Out}
		x.insert(pair)
		x.judge(now, &x.circuits[x.find(pair)], goal, nil)
		x.foreign, changed = append(x.foreign, pair), changed || !opening
	}
	x.foreign = slices.DeleteFunc(x.foreign, func(p circuit.Pair) bool { return !has(hal.PortPair{In: p.A, Out: p.B}) })
	if changed {
		x.events = append(x.events, circuit.Event{Kind: circuit.Changed, At: now})
	}
}

// tellAlarms tells what is new of the box's alarms, and what is gone.
func (x *Box) tellAlarms(now time.Duration) {
	alarms := slices.Clone(x.report.Alarms)
	block, free := (&hal.BoxGoal{Block: x.block, Free: x.free}).WrongPorts(x.report.Blocked)
	for _, p := range append(block, free...) {
		alarms = append(alarms, hal.BoxAlarm{Text: "box, port " + x.portName(p) + ": shutter does not do what it is told", Grave: true})
	}
	for _, p := range x.report.Map {
		if said, unwanted := x.unwanted[p]; unwanted {
			alarms = append(alarms, hal.BoxAlarm{Text: fmt.Sprintf("box, circuit %v: is not taken away%s", circuit.Pair{A: p.In, B: p.Out}, said), Grave: true})
		}
	}
	for _, list := range [...]struct {
		kind     circuit.EventKind
		of, from []hal.BoxAlarm
	}{{circuit.AlarmCleared, x.alarms, alarms}, {circuit.AlarmRaised, alarms, x.alarms}} {
		for _, a := range list.of {
			if !slices.Contains(list.from, a) {
				x.events = append(x.events, circuit.Event{Kind: list.kind, At: now, Err: errors.New(a.Text), Grave: a.Grave})
			}
		}
	}
	x.alarms = alarms
}

// portName is how an operator calls a port that a goal numbers.
func (x *Box) portName(p int) string {
	return fmt.Sprintf("%d%c", p%x.cfg.Ports+1, "AB"[p/x.cfg.Ports])
}

// judge compares a circuit with what the box reports.
func (x *Box) judge(now time.Duration, c *circuit.Circuit, goal request, err error) {
	pair := hal.PortPair{In: c.Pair.A, Out: c.Pair.B}
	if slices.ContainsFunc(x.goals, func(g request) bool { return slices.Contains(g.Create, pair) }) {
		return // its turn comes
	}
	was, why := c.State, fmt.Sprint(c.Err)
	c.Took = now - goal.at
	switch said, refused := x.report.Refused[pair]; {
	case slices.Contains(x.report.Map, pair):
		x.measure(c, slices.Contains(goal.Create, pair))
	case refused:
		c.State, c.Err = proto.Failed, said
	default:
		if slices.Contains(x.report.Stale, pair) {
			c.Err = fmt.Errorf("%w: the box lists the connection and has not made it", hal.ErrBoxNotMade)
		} else if slices.Contains(goal.Create, pair) && err != nil {
			c.Err = err
		} else if was != proto.Failed || c.Err == nil {
			c.Err = fmt.Errorf("%w: the connection was removed at the box", hal.ErrBoxNotMade)
		}
		c.State = proto.Failed
		if i := slices.IndexFunc(x.report.Map, func(p hal.PortPair) bool { return p.In == pair.In || p.Out == pair.Out }); i >= 0 {
			other := circuit.Pair{A: x.report.Map[i].In, B: x.report.Map[i].Out}
			c.Err = fmt.Errorf("%w: %v has a port of it", hal.ErrBoxNotMade, other)
		}
	}
	if c.State == was && fmt.Sprint(c.Err) == why {
		return
	}
	kind := map[proto.PortState]circuit.EventKind{proto.Tuned: circuit.Tuned, proto.Unproven: circuit.Unproven, proto.Failed: circuit.Failed, proto.Tuning: circuit.Unlit, proto.Blocked: circuit.Unlit}
	x.events = append(x.events, circuit.Event{Kind: kind[c.State], At: now, Pair: c.Pair, Loss: c.Loss, Err: c.Err})
}

// measure judges a circuit that the box has by its shutters and meters, or, where it has
// none, by its word. What was made just now is waited for.
func (x *Box) measure(c *circuit.Circuit, fresh bool) {
	a, b := int(c.Pair.A), x.report.In+int(c.Pair.B)
	light, told := x.report.Lights[hal.PortPair{In: c.Pair.A, Out: c.Pair.B}]
	if told {
		c.Loss = proto.MilliDBm(light.MilliDB)
	}
	switch {
	case told && light.Lit:
		c.State, c.Err = proto.Tuned, nil
	case told && (light.Tuning || fresh && light.Failed()):
		if c.State != proto.Tuning {
			c.State, c.Err = proto.Tuning, errTunes
		}
		x.tuning = true
	case told && light.Failed():
		c.State, c.Err = proto.Failed, fmt.Errorf("%w: %s", errNoLight, light.Text)
	case told:
		c.State, c.Err = proto.Blocked, nil
	case slices.Contains(x.report.Blocked, a) || slices.Contains(x.report.Blocked, b):
		c.State, c.Err = proto.Blocked, nil
	case !x.report.HasMeters:
		c.State, c.Err = proto.Unproven, ErrNoMeters
	case len(x.report.Powers) == x.report.In+x.report.Out:
		in, out := x.report.Powers[a], x.report.Powers[b]
		c.Loss = proto.MilliDBm(in - out)
		switch {
		case proto.MilliDBm(in) < circuit.LeastInput:
			c.State, c.Err = proto.Tuning, circuit.ErrNoInput
		case c.Loss > boxLost:
			c.State, c.Err = proto.Failed, circuit.ErrNotTuned
		default:
			c.State, c.Err = proto.Tuned, nil
		}
	}
}
