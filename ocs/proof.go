package ocs

import (
	"fmt"
	"math"
	"time"

	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// A calibration is true where it was made. Cells drift, and move with their case, so
// light counts as tuned only as long as somebody has looked at it: a lock at MZI1 and
// MZI2 (claim.go), and nobody ever at the matrix, which a lock carries along. What was not looked at
// for too long, or is too far from the temperature at which it was, is unproven: it
// shines, and whether it is good light nobody can say.

const (
	// matrixAge is how long the matrix counts as good since its calibration, or since the
	// life began that found it. chosen: in two hours cells drift by 38 mrad rms, of which one
	// in twenty goes twice as far.
	matrixAge = 2 * time.Hour
	// proofKelvin is how far from the temperature of the last look, and proofAlone from that
	// of the calibration, with what a case that no lock follows will move until it is read
	// again, whatever a claim says. chosen: at 20 mrad a kelvin.
	proofKelvin = 2.0
	proofAlone  = 1.5
	// proofShare is what the worst way through a matrix may lose by its cells, as an error of
	// one, beyond what those that are looked at have moved each by itself, rms: of 20,000
	// drawn matrices 99 in 100 lose less, though two cells of a way may add up and the
	// spread of eight is a poor guess.
	proofShare = 6.5
	// proofSpread is what those may have moved where a calibration did not note how much
	// light comes out elsewhere. chosen: what drift comes to.
	proofSpread = 0.03
)

// spreads is how far the cells of a module that are looked at may have moved each by
// itself, radian rms, for its matrix, at which nobody looks, to be good with them: what
// its calibration left of 20 dB is the worst cell's, which sends sin^2(e/2) the wrong way.
func (m *ModuleCalibration) spreads() float64 {
	if m.Paths[0] == 0 {
		return proofSpread
	}
	room := detmath.FromDB(-float64(mzi.LeastPath)/1000) - detmath.FromDB(-float64(m.Paths[0])/1000)
	return 2 * math.Sqrt(max(room, 0)) / proofShare
}

// proof is how a module's light was last found to be good.
type proof struct {
	since   time.Duration      // MZIs were looked at; 0: never
	sights  *[lockCells]sight  // each; nil: as all
	moved   *ModuleCalibration // how they stand by now; nil: as their lock has trimmed them
	slope   float64            // radian a kelvin, how far a case moves them that nobody knows
	kelvin  float64            // of the case then, 0: not known
	found   float64            // radian rms, what it left them off; 0: what a calibration does
	dim     bool               // with a lane that may have been dark
	carried bool               // the matrix, with what was found
	spread  float64            // radian, of the cells that were looked at
}

const notInThisLife = "not looked at since this life began"

// proof of a module whose lock is here.
func (d *chipDrive) proof(module int) (p proof) {
	if module < len(d.lock.modules) {
		if m := &d.lock.modules[module]; m.hold.Looks > 0 && m.looked > d.trx.calibrated {
			p = proof{since: m.looked, sights: &m.sights, moved: d.lock.calibrated(d, module), kelvin: m.carry.kelvin, dim: m.dim, carried: true, spread: m.carry.spread}
			p.slope = m.carry.doubts()
		}
	}
	return p
}

// judge says whether the light of a module is proven by the last health rounds, and if not,
// why.
func (t *Transceiver) judge(now time.Duration, module int) string {
	p := t.drive.proof(module)
	switch _, why := t.drive.hold(module); {
	case p.since == 0 && t.foundIt:
		return notInThisLife
	case p.dim:
		return "not looked at since a lane was dark, or may have been"
	case why != "" && t.cfg.Lock.Mode != LockOff && t.drive.lockless() == "": // what does not look says nothing
		return why
	}
	cal := t.cfg.Calibration.Modules[module]
	kelvin, made := t.Health.temperature(module), 0.0
	if c := cal.CaseMillicelsius; c != 0 {
		made = float64(c+zeroCelsiusMillikelvin) / 1000
	}
	if p.slope == 0 {
		p.slope = claimKelvin
	}
	from, what, moves, limit := p.kelvin, "its last look", t.Health.moves(module), proofKelvin
	if p.sights != nil { // and its case is read between rounds
		moves = 0
	} else if p.since == 0 {
		p.since, p.moved = t.calibrated, cal
		from, what, limit = made, "its calibration", proofAlone
	}
	away := func(from float64, what string, moves, limit float64) string {
		d := math.Abs(kelvin - from)
		switch {
		case kelvin == 0 || from == 0 || d+moves <= limit:
			return ""
		case d <= limit:
			return fmt.Sprintf("not looked at since %s, and its case has just moved by %.1f K", what, moves)
		}
		return fmt.Sprintf("not looked at since %s, %.1f K away", what, d)
	}
	if why := away(from, what, moves, limit); why != "" {
		return why
	}
	off := 0.0
	if kelvin != 0 && from != 0 {
		off = math.Abs(kelvin-from) + moves
	}
	if why := p.claim(t, now, module, off); why != "" {
		return why
	}
	if t.path != proto.Loopback {
		return ""
	}
	if !p.carried {
		if why := away(made, "its calibration", moves, proofKelvin); why != "" {
			return "matrix " + why
		}
	}
	if now-t.calibrated > matrixAge {
		return "matrix not looked at for over " + matrixAge.String()
	}
	if p.spread > t.cfg.Calibration.Modules[module].spreads() {
		return fmt.Sprintf("matrix not looked at, and other cells have moved by %.0f mrad each", 1000*p.spread)
	}
	return ""
}

// prove judges a module after a health round has read it.
func (t *Transceiver) prove(now time.Duration, module int) {
	t.Health.last[module].doubt = ""
	if t.path != proto.Dark && t.cfg.Calibration != nil && t.state == Idle {
		why := t.judge(now, module)
		if a := &t.Health.last[module].misrouted; why == "" && a.path == t.path && a.rounds > 0 {
			why = misroutedText
		}
		t.Health.last[module].doubt = why
	}
}

// Unproven is why the light of the path in use is not known to be good, "" where it is:
// see proto.Unproven.
func (t *Transceiver) Unproven() string {
	if t.path == proto.Dark || t.state != Idle {
		return ""
	}
	for i := range t.bundle.Modules {
		why := ""
		if i < len(t.Health.last) {
			why = t.Health.last[i].doubt
		} else if t.foundIt && t.cfg.Lock.Mode != LockOff && t.drive.proof(i).since == 0 { // and no health round has come by
			why = notInThisLife
		}
		if why != "" {
			return fmt.Sprintf("module %d: %s", i, why)
		}
	}
	return ""
}

// portState is what the light says.
func (t *Transceiver) portState() proto.PortState {
	if t.port == proto.Tuned && t.Unproven() != "" {
		return proto.Unproven
	}
	return t.port
}
