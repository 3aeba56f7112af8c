package bench

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// BringUp says what a bring-up is to do.
type BringUp struct {
	Origin Origin
	// Calibrate calibrates bundles that are not; without it their light is not
	// looked at.
	Calibrate bool
	// Force goes on where a bundle is not dark: its light goes.
	Force bool
	// Expected fibres; nil: the map is only shown.
	Expected []Fibre
	// Calibrated is told of new calibrations; may be nil.
	Calibrated func(station, bundle int, c *ocs.Calibration)
	// Say is told what is being done; may be nil.
	Say func(text string)
}

// ErrInService is a board that carries light.
var ErrInService = errors.New("carries light")

// Run brings up the boards at a bench and reports on the first of them; the
// others take part in the map of fibres. It leaves every bundle dark.
func (b BringUp) Run(field Field, stations []Station) (*Report, error) {
	if len(stations) == 0 || len(stations[0].Board.Bundles) == 0 {
		return nil, fmt.Errorf("%w: a board without bundles has no bring-up", hal.ErrUnsupported)
	}
	began := field.Now()
	r := &Report{Origin: b.Origin, Node: stations[0].Node}
	say := func(format string, args ...any) {
		if b.Say != nil {
			b.Say(fmt.Sprintf(format, args...))
		}
	}
	l := newLab(field, stations)
	say("reading the hardware back")
	// A bundle that cannot be read is a finding, not the end.
	if err := l.start(); err != nil && !errors.Is(err, errPatience) {
		return nil, err
	}
	for _, d := range l.all() {
		if p := d.optics.Status().Path; p != proto.Dark && !b.Force {
			return nil, fmt.Errorf("node %d bundle %d is on %v: it %w; a bring-up would take it", stations[d.station].Node, d.bundle, p, ErrInService)
		}
	}
	h := &direct{field: field, other: l.hear}
	board := stations[0].Board
	say("looking at every bus")
	scan(h, board, r)
	for i := range board.Bundles {
		for m := range board.Bundles[i].Modules {
			say("bundle %d module %d: memory, rails, heaters, lasers", i, m)
			electrical(h, board, i, m, r)
		}
	}
	b.optical(l, r, say)
	sort.SliceStable(r.Checks, func(i, j int) bool {
		return slices.Index(sections, r.Checks[i].Section) < slices.Index(sections, r.Checks[j].Section)
	})
	r.Took = field.Now() - began
	return r, nil
}

// optical calibrates what must be, looks at each bundle's own light, and maps
// the fibres.
func (b BringUp) optical(l *lab, r *Report, say func(string, ...any)) {
	// What the electrical part did to the DACs is staged anew.
	if err := l.start(); err != nil && !errors.Is(err, errPatience) {
		r.add("optics", "all", Fail, "%v", err)
		return
	}
	var ready []*driven
	for s, row := range l.bundles {
		for _, d := range row {
			where := fmt.Sprintf("bundle %d", d.bundle)
			if s > 0 {
				where = fmt.Sprintf("node %d bundle %d", l.stations[s].Node, d.bundle)
			}
			st := d.optics.Status()
			if !st.Calibrated && st.Machine == ocs.Idle && b.Calibrate {
				say("%s: calibrating", where)
				b.calibrate(l, d, r, where)
				st = d.optics.Status()
			}
			switch {
			case st.Machine != ocs.Idle:
				r.add("optics", where, Fail, "%v", reasonOf(&st))
			case !st.Calibrated:
				r.add("optics", where, Skip, "not calibrated")
			default:
				ready = append(ready, d)
				if s == 0 {
					say("%s: loopback", where)
					loop(l, d, r, where)
				}
			}
		}
	}
	if len(ready) == 0 {
		r.add("fibres", "all", Skip, "no bundle can emit light")
		return
	}
	if n := len(l.all()); len(ready) < n {
		r.add("fibres", "all", Skip, "%d of %d bundles cannot emit light: their fibres show no light, or light one way", n-len(ready), n)
	}
	say("mapping the fibres by coded light")
	m, err := l.fibreMap(ready)
	if err != nil {
		r.add("fibres", "all", Fail, "%v", err)
		return
	}
	r.Fibres = m
	if b.Expected != nil {
		m.compareWith(b.Expected)
	}
	text := fmt.Sprintf("%s found in %s, %d one way, %s without light", proto.Count(len(m.Found), "fibre"), proto.Count(m.Slots, "slot"), len(m.OneWay), proto.Count(len(m.Dark), "port"))
	for _, odd := range m.Odd {
		r.add("fibres", "all", Fail, "%s", odd)
	}
	switch {
	case b.Expected == nil:
		r.add("fibres", "all", Pass, "%s; nothing is expected", text)
	case len(m.Missing)+len(m.Extra) == 0:
		r.add("fibres", "all", Pass, "%s, all as expected", text)
	default:
		r.add("fibres", "all", Fail, "%s; %d of %d expected are missing, %d not expected: %s", text, len(m.Missing), len(m.Expected),
			len(m.Extra), proto.Count(len(m.Steps), "step"))
	}
}

func reasonOf(s *ocs.Status) string {
	if s.Err == nil {
		return "hardware not read"
	}
	return s.Err.Error()
}

func (b BringUp) calibrate(l *lab, d *driven, r *Report, where string) {
	d.events = d.events[:0]
	began := l.field.Now()
	err := d.optics.Calibrate(began)
	if err == nil {
		d.due = true
		err = l.run(calibratePatience, func() bool {
			return d.has(ocs.CalibrationFailed) || d.has(ocs.Calibrated) && d.optics.Status().Ready
		})
	}
	if e := d.event(ocs.CalibrationFailed); err == nil && e != nil {
		module, cell := e.Named()
		if err = e.Err; err == nil {
			err = fmt.Errorf("module %d cell %d: %s", module, cell, e.Text)
		}
	}
	if err != nil {
		r.add("optics", where, Fail, "calibration: %v", err)
		return
	}
	s := d.optics.Status()
	r.add("optics", where, Pass, "calibrated from nothing in %.1f s of the board's time", (l.field.Now() - began).Seconds())
	if b.Calibrated != nil {
		b.Calibrated(d.station, d.bundle, s.Calibration)
	}
}
