package agent

import (
	"time"

	"ringlight/agent/pm"
	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// records are the quarters of an hour and days of what the rounds read (package pm).
// A sample counts once, when its round ends.
type records struct {
	book    *pm.Book
	wall    func(now time.Duration) int64
	seen    time.Duration // samples until then are in the book
	places  int           // bundles, or ports of both sides
	modules int           // of a bundle
	samples []proto.Sample
	circuit []circuit.Circuit
}

// Series of one module, and of one bundle: the rails, a case, two taps and three receive
// paths; three quantities of four paths. Of a port of a switch.
const (
	seriesOfModule = 7
	seriesOfBundle = 3 * proto.NumPaths
	seriesOfPort   = 3
)

// newRecords takes up what was saved by slot; what of it is not whole is left out, and bad.
func newRecords(c *Config, saved [][]byte) (r records, bad int) {
	r.wall = c.Wall
	if r.wall == nil {
		r.wall = func(now time.Duration) int64 { return int64(now / time.Second) }
	}
	series := 0
	if c.isSwitch() {
		r.places = hal.NumSides * c.ports()
		series = r.places * seriesOfPort
	} else {
		r.places = len(c.Board.Bundles)
		for i := range c.Board.Bundles {
			n := len(c.Board.Bundles[i].Modules)
			r.modules = max(r.modules, n)
			series += seriesOfBundle + n*seriesOfModule
		}
	}
	r.book = pm.New(series)
	for slot, raw := range saved {
		if raw != nil && !r.book.Load(slot, raw) {
			bad++
		}
	}
	return r, bad
}

func (r *records) add(now time.Duration, key pm.Key, value int32) {
	r.book.Add(r.wall(now), key, value)
}

// took is how long something took.
func (r *records) took(now time.Duration, place uint32, path proto.Path, q proto.Quantity, d time.Duration) {
	r.add(now, pm.KeyOf(place, path, 0, q), int32(min(max(d, 0), maxPart*time.Microsecond)/time.Microsecond))
}

var quantityOf = [...]proto.Quantity{proto.SensorCase: proto.CaseTemperature, proto.SensorRail: proto.RailPower,
	proto.SensorUpperPath: proto.RxPower, proto.SensorLowerPath: proto.RxPower, proto.SensorTxTap: proto.TxPower}

// node takes what a node's modules were found to be since the last time.
func (r *records) node(now time.Duration, bundles []bundle) {
	for i := range bundles {
		o := bundles[i].optics
		s := o.Status()
		r.samples = o.Health.Samples(now, r.seen, r.samples[:0])
		for _, x := range r.samples {
			path := s.Path
			if x.Sensor > proto.SensorTxTap {
				continue
			}
			if x.Sensor <= proto.SensorRail {
				path = proto.Dark
			}
			r.add(now, pm.KeyOf(uint32(i), path, int(x.Module), quantityOf[x.Sensor]), x.Value)
		}
		if len(r.samples) > 0 && s.Measured != proto.NoPower && s.Expected != proto.NoPower {
			r.add(now, pm.KeyOf(uint32(i), s.Path, 0, proto.ExcessLoss), int32(s.Expected-s.Measured))
		}
	}
}

// sides takes how the ports of a switch are, and the circuits that they are in.
func (r *records) sides(now time.Duration, x crossbar, ports int) {
	r.circuit = x.Circuits(r.circuit[:0])
	for i := range r.circuit {
		if c := &r.circuit[i]; c.State == proto.Tuned && c.Loss != proto.NoPower {
			for side, port := range [hal.NumSides]uint16{c.Pair.A, c.Pair.B} {
				r.add(now, pm.KeyOf(portPlace(side, port), 0, 0, proto.InsertionLoss), int32(c.Loss))
			}
		}
	}
	for side := range hal.NumSides {
		for port := range ports {
			if p, err := x.Power(side, port); err == nil && p != proto.NoPower {
				r.add(now, pm.KeyOf(portPlace(side, uint16(port)), 0, 0, proto.PortPower), int32(p))
			}
		}
	}
}

// portPlace is a port of a switch in a key.
func portPlace(side int, port uint16) uint32 { return uint32(port)*hal.NumSides + uint32(side) }

// watched ends a round of so much time at most: what was longer, nobody watched.
func (r *records) watched(now, round time.Duration, out []Output) []Output {
	r.book.Watched(r.wall(now), min(now-r.seen, 2*round))
	r.seen = now
	return r.save(now, false, out)
}

func (r *records) save(now time.Duration, all bool, out []Output) []Output {
	r.book.Save(r.wall(now), all, func(slot int, raw []byte) {
		out = append(out, Output{Kind: OutBins, ID: uint64(slot), Record: raw})
	})
	return out
}

// asked answers with the records of a scope from a bin on.
func (r *records) asked(now time.Duration, scope *proto.BinScope, next uint32) ([]proto.Bin, uint32, error) {
	if scope == nil {
		scope = &proto.BinScope{Place: -1, Module: -1}
	}
	switch place := int(scope.Place); {
	case place >= r.places && r.modules > 0:
		return nil, 0, noSuch("bundle", 0, r.places-1, place)
	case place >= r.places:
		return nil, 0, noSuch("port", 1, r.places/hal.NumSides, place/hal.NumSides+1)
	case scope.Module >= 0 && int(scope.Module) >= r.modules:
		return nil, 0, noSuch("module", 0, r.modules-1, int(scope.Module))
	}
	bins, more := r.book.Bins(r.wall(now), *scope, next, nil)
	return bins, more, nil
}

func noSuch(what string, first, last, got int) error {
	return &proto.Error{Code: proto.NotFound, Field: what, Limit: itoa(first) + " to " + itoa(last), Reason: "no " + what + " " + itoa(got)}
}
