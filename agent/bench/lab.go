package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// Station is one board at the bench.
type Station struct {
	Node  proto.NodeID
	Board *hal.Board
	// Calibrations by bundle; nil or missing: not calibrated.
	Calibrations []*ocs.Calibration
	Seed         uint64
}

// lab drives the optics of all boards at the bench by the production code, a
// Transceiver a bundle.
type lab struct {
	field    Field
	stations []Station
	bundles  [][]*driven // by station
	under    map[*hal.Op]*driven
}

// driven is one bundle.
type driven struct {
	station, bundle int
	optics          *ocs.Transceiver
	done            []*hal.Completion
	next            time.Duration
	due             bool
	events          []ocs.Event // since they were last looked at
}

// Patience with the optics, on the board's clock.
const (
	adoptPatience     = 2 * time.Second
	selectPatience    = 500 * time.Millisecond
	calibratePatience = 10 * time.Minute
)

// newLab makes the optics of every bundle and tells them how their light
// stands; nothing is driven yet.
func newLab(field Field, stations []Station) *lab {
	l := &lab{field: field, stations: stations, under: map[*hal.Op]*driven{}}
	for s := range stations {
		st := &stations[s]
		latch := ocs.NewLatch(st.Board)
		var row []*driven
		for i := range st.Board.Bundles {
			d := &driven{station: s, bundle: i, next: hal.Never}
			var cal *ocs.Calibration
			if i < len(st.Calibrations) {
				cal = st.Calibrations[i]
			}
			d.optics = ocs.New(ocs.Config{Board: st.Board, Bundle: proto.BundleID(i), Latch: latch, Calibration: cal, Seed: st.Seed + uint64(i)})
			row = append(row, d)
		}
		l.bundles = append(l.bundles, row)
	}
	return l
}

// all are the bundles of all stations.
func (l *lab) all() []*driven {
	return slices.Concat(l.bundles...)
}

// start lets every bundle read its hardware, and waits for it.
func (l *lab) start() error {
	for _, d := range l.all() {
		d.events = d.events[:0]
		d.optics.Start(l.field.Now())
		for p, line := range l.stations[d.station].Board.Bundles[d.bundle].LOS {
			high, err := l.field.Level(d.station, line)
			if err != nil {
				return fmt.Errorf("node %d bundle %d: line %d: %w", l.stations[d.station].Node, d.bundle, line, err)
			}
			d.optics.Light(l.field.Now(), l.field.Now(), proto.Loopback+proto.Path(p), high)
		}
		d.due = true
	}
	return l.run(adoptPatience, func() bool {
		return !slices.ContainsFunc(l.all(), func(d *driven) bool { return !d.has(ocs.Ready) })
	})
}

// has reports whether an event has come since events were last cleared.
func (d *driven) has(kind ocs.EventKind) bool { return d.event(kind) != nil }

func (d *driven) event(kind ocs.EventKind) *ocs.Event {
	if i := slices.IndexFunc(d.events, func(e ocs.Event) bool { return e.Kind == kind }); i >= 0 {
		return &d.events[i]
	}
	return nil
}

// hear takes an event of a board.
func (l *lab) hear(board int, ev hal.Event) {
	if c := ev.Completion; c != nil {
		if d := l.under[c.Op]; d != nil { // else somebody else's
			delete(l.under, c.Op)
			d.done, d.due = append(d.done, c), true
		}
	}
	if e := ev.Edge; e != nil {
		for i := range l.stations[board].Board.Bundles {
			for p, line := range l.stations[board].Board.Bundles[i].LOS {
				if line == e.Line {
					d := l.bundles[board][i]
					d.optics.Light(l.field.Now(), e.At, proto.Loopback+proto.Path(p), e.High)
					d.due = true
				}
			}
		}
	}
}

// errPatience ends a run whose end did not come.
var errPatience = errors.New("it did not come to an end in time")

// run lets the optics work until done says so, for at most so long. A nil done
// lets the time pass.
func (l *lab) run(atMost time.Duration, done func() bool) error {
	limit := l.field.Now() + atMost
	for {
		until := limit
		for _, d := range l.all() {
			if d.due || d.next <= l.field.Now() {
				if err := l.turn(d); err != nil {
					return err
				}
			}
			until = min(until, d.next)
		}
		if done != nil && done() {
			return nil
		}
		board, ev, ok := l.field.Advance(max(until, l.field.Now()))
		switch {
		case ok:
			l.hear(board, ev)
		case l.field.Now() >= limit && done == nil:
			return nil
		case l.field.Now() >= limit:
			return errPatience
		}
	}
}

// turn polls one bundle.
func (l *lab) turn(d *driven) error {
	d.due = false
	now := l.field.Now()
	var ops []hal.BusOp
	ops, d.next = d.optics.Poll(now, d.done, nil)
	d.done = d.done[:0]
	for _, op := range ops {
		l.under[op.Op] = d
		if err := l.field.Submit(d.station, op.Bus, op.Op); err != nil {
			delete(l.under, op.Op)
			d.done, d.due = append(d.done, &hal.Completion{Bus: op.Bus, Op: op.Op, Start: now, End: now, Err: err}), true
		}
	}
	d.events = d.optics.TakeEvents(d.events)
	if d.due {
		d.next = now
	}
	return nil
}

// sel puts bundles on paths at once and waits until all have settled.
func (l *lab) sel(which []*driven, path func(*driven) proto.Path) error {
	var moving []*driven
	for _, d := range which {
		d.events = d.events[:0]
		p := path(d)
		if s := d.optics.Status(); s.Path == p && s.Target == p {
			continue
		}
		if err := d.optics.Select(l.field.Now(), p); err != nil {
			return fmt.Errorf("node %d bundle %d to %v: %w", l.stations[d.station].Node, d.bundle, p, err)
		}
		d.due = true
		moving = append(moving, d)
	}
	err := l.run(selectPatience, func() bool {
		return !slices.ContainsFunc(moving, func(d *driven) bool { return !d.has(ocs.Switched) && !d.has(ocs.PathFailed) })
	})
	if err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	return nil
}
