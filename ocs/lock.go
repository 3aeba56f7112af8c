package ocs

import (
	"math"
	"strconv"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/proto"
)

// The lock holds MZI1 and MZI2 of the path in use where they send the least
// light the wrong way, without taking traffic off it: the codes of all sixteen
// cells go to and fro by a few tens of milliradian at the same time, each in a
// pattern of its own (rows of a Hadamard matrix), and the module's two Tx taps
// tell for each pattern on which side of its extremum the cell stands: together
// for MZI1, against each other for MZI2.
//
// LTC2688's own dither would do the same without frames, but its amplitude lies
// in register B, which holds the other path of these cells, and its clock pins
// are the toggle nets. So the steps are written, some two milliseconds apart.
//
// What the lock finds is a change of a cell's phase without heat; the codes of
// all paths are composed again with it. The matrix is not locked: lanes that are
// all lit trade light there that no diode can tell apart. One module of a bundle
// is under way at a time; a Select or a verification freezes the lock at once.

// LockMode says when a bundle is locked.
type LockMode uint8

const (
	LockOff     LockMode = iota // never
	LockOnDrift                 // a module of which a health round finds light on the wrong side, until it is quiet
	LockAlways                  // every module, seldom while it is quiet
)

// LockConfig is how a bundle is locked.
type LockConfig struct {
	Mode   LockMode      `json:"mode"`
	Period time.Duration `json:"period_ns"` // between two looks at a module that moves; 0: a second
	Rest   time.Duration `json:"rest_ns"`   // between two at one that does not; 0: 64 seconds
}

const (
	// chosen: a cell that walks by 5 mrad/sqrt(s) has gone 5 mrad, a fifteenth
	// of what costs it 25 dB of 28.
	lockPeriod = time.Second
	// chosen: a module that is quiet drifts by a milliradian in ten minutes.
	lockRest = 64 * time.Second
	// A look that finds no cell off by more doubles the period. chosen: four
	// deviations of what a look cannot tell.
	lockQuiet = 0.012
	// chosen: at the null it costs 0.6 dB of 28 while a look lasts.
	lockDither = 0.030
	// lockWalk is the drift that the lock reckons with, radian^2 a second: the
	// walk of the board page.
	lockWalk = 25e-6
	// lockNoise is what an averaged reading is believed to be off by, of a step
	// of twelve bits. chosen: twice what 128 conversions leave.
	lockNoise = 0.1
	// lockLost is the error that takes a cell of 28 dB below 25.
	lockLost = 0.0795
	// lockDone quiet looks at full rest end it.
	lockDone = 4
)

// lock is the lock of a bundle.
type lock struct {
	modules []lockModule // nil: never engaged
	act     *lockAct     // nil: none. A frozen one is the bus's until its work ends
	gen     uint8        // of the work under way: a freeze makes it void
}

// lockModule is the state of the lock of one module.
type lockModule struct {
	engaged  bool
	blind    bool       // the last look failed on the bus
	favours  proto.Path // in its codes; Dark: none
	rests    int        // quiet looks at full rest
	period   time.Duration
	next     time.Duration
	looked   time.Duration
	offset   [mzi.Cells]float64 // radian, against the calibration
	variance [mzi.Cells]float64 // radian^2, of offset
	hold     Hold
}

// Hold is how well a module is held.
type Hold struct {
	Engaged         bool   `json:"engaged"`
	Looks           uint32 `json:"looks"`         // that were finished
	LastMicrorad    int32  `json:"last_microrad"` // largest error that the last look found and trimmed
	LastCell        uint8  `json:"last_cell"`
	RMSMicrorad     int32  `json:"rms_microrad"`     // over its cells
	LargestMicrorad int32  `json:"largest_microrad"` // of all looks but the first, which finds what happened before
	Lost            uint32 `json:"lost"`             // cells that a look found beyond what 25 dB allow
	Turns           uint32 `json:"turns"`            // cells that came to the end of their heat and went to another turn: some 20 us of their lane's light misrouted
}

// Held is what the lock holds of the path in service, and what keeps it from
// holding all of it.
func (t *Transceiver) Held() (held proto.Held, why string) {
	switch {
	case t.path == proto.Dark:
		return proto.HeldNothing, ""
	case t.cfg.Lock.Mode == LockOff:
		return proto.HeldNothing, "the lock is off"
	case t.state != Idle || t.cfg.Calibration == nil:
		return proto.HeldNothing, "the bundle is not ready"
	}
	if why := t.drive.lockless(); why != "" {
		return proto.HeldNothing, why
	}
	for i := range t.bundle.Modules {
		hold, why := t.drive.hold(i)
		misrouted := t.misroutes(i) // whatever its lock says
		switch {
		case hold.Engaged && hold.Looks > 0 && why == "" && !misrouted:
			continue
		case t.cfg.Lock.Mode == LockOnDrift && !misrouted:
			return proto.HeldOnDrift, "lock: drift"
		case why == "" && misrouted:
			why = "lets light to the wrong side"
		case why == "":
			why = notLooked
		}
		return proto.HeldNothing, "module " + strconv.Itoa(i) + " " + why
	}
	if t.path == proto.Loopback {
		return proto.HeldMZIs, "no diode tells the lanes of the matrix apart"
	}
	return proto.HeldAll, ""
}

// Holds tells how the bundle's modules are held, nil where nothing ever was.
func (t *Transceiver) Holds() []Hold {
	holds, any := make([]Hold, len(t.bundle.Modules)), false
	for i := range holds {
		holds[i], _ = t.drive.hold(i)
		any = any || holds[i] != Hold{}
	}
	if !any {
		return nil
	}
	return holds
}

func (t *chipDrive) lockless() string {
	if t.scan.differ {
		return "codes were found that are none of ours"
	}
	return ""
}

const notLooked = "could not be looked at"

func (t *chipDrive) hold(module int) (h Hold, why string) {
	if module >= len(t.lock.modules) {
		return h, ""
	}
	m := &t.lock.modules[module]
	h = m.hold
	h.Engaged = m.engaged
	if m.blind {
		why = notLooked
	}
	return h, why
}

func (l *lock) step() lockStep {
	if l.act == nil {
		return lockIdle
	}
	return l.act.step
}

func (l *lock) reset() {
	l.gen++
	l.act = nil
	for i := range l.modules {
		l.modules[i].next = 0
	}
}

// trimmed reports whether any cell stands elsewhere than its calibration says.
func (l *lock) trimmed() bool {
	for i := range l.modules {
		if l.modules[i].hold.Looks > 0 {
			return true
		}
	}
	return false
}

// forget drops what was learned against a calibration that is no longer in
// force.
func (l *lock) forget() {
	l.reset()
	l.modules = nil
}

// calibrated is a module's calibration as the lock has it by now.
func (l *lock) calibrated(t *chipDrive, module int) *ModuleCalibration {
	m := t.cfg.Calibration.Modules[module]
	if module >= len(l.modules) {
		return m
	}
	moved := *m
	for k, d := range l.modules[module].offset {
		moved.Cells[k].OffsetMicrorad = int32(math.Floor(float64(mzi.Wrap(float64(m.Cells[k].OffsetMicrorad)/1e6+d)*1e6) + 0.5))
	}
	return &moved
}

// engage begins to hold a module.
func (l *lock) engage(t *chipDrive, now time.Duration, module int) {
	if l.modules == nil {
		l.modules = make([]lockModule, len(t.bundle.Modules))
	}
	m := &l.modules[module]
	if m.engaged {
		return
	}
	m.engaged, m.rests, m.period, m.next, m.looked = true, 0, t.lockPeriod(), now, now
	for k := range m.variance {
		m.variance[k] = 1 // nothing is known
	}
}

func (t *chipDrive) lockPeriod() time.Duration {
	if p := t.cfg.Lock.Period; p > 0 {
		return p
	}
	return lockPeriod
}

func (t *chipDrive) lockRest() time.Duration {
	if r := t.cfg.Lock.Rest; r > 0 {
		return r
	}
	return lockRest
}

// lockReady reports whether a look may begin or go on.
func (t *chipDrive) lockReady() bool {
	// Where codes were found that are none of ours, nothing is touched. A verification
	// or a health reading under way comes first: until its first average is made, the
	// ADC has nothing to tell.
	return t.verify.out == 0 && !t.readings.busy && t.state == Idle && !t.scan.differ && t.path != proto.Dark && t.target == t.path && t.cfg.Calibration != nil && !t.sw.busy() &&
		t.lanes.step == laneIdle
}

// next is when the lock wants its turn.
func (l *lock) next(t *chipDrive) time.Duration {
	if l.step() == lockWait {
		return l.act.at
	}
	if l.step() != lockIdle || t.cfg.Lock.Mode == LockOff || !t.lockReady() {
		return hal.Never
	}
	if l.modules == nil {
		if t.cfg.Lock.Mode == LockAlways {
			return 0
		}
		return hal.Never
	}
	at := hal.Never
	for i := range l.modules {
		if m := &l.modules[i]; m.engaged && m.hold.Looks > 0 && m.favours != t.path {
			return 0
		} else if m.engaged {
			at = min(at, m.next)
		}
	}
	return at
}

// due begins the look that is due, or goes on with the one under way.
func (l *lock) due(t *chipDrive, now time.Duration) {
	if l.step() == lockWait {
		if now >= l.act.at {
			l.read(t)
		}
		return
	}
	if l.step() != lockIdle || t.cfg.Lock.Mode == LockOff || !t.lockReady() {
		return
	}
	if l.modules == nil && t.cfg.Lock.Mode == LockAlways {
		for i := range t.bundle.Modules {
			l.engage(t, now, i)
		}
	}
	first := -1
	for i := range l.modules {
		if m := &l.modules[i]; m.engaged && m.hold.Looks > 0 && m.favours != t.path {
			// The path has changed: MZI1 is to be right on this one, and what is
			// known tells how.
			l.gen++
			l.act = &lockAct{module: i, path: t.path, lit: litOf(t.path)}
			l.compose(t)
			return
		}
		if m := &l.modules[i]; m.engaged && m.next <= now && (first < 0 || m.next < l.modules[first].next) {
			first = i
		}
	}
	if first >= 0 {
		l.open(t, now, first)
	}
}

// learn takes the errors that a look found, in radian with their variances, and
// says what to do about them: the period of the next look.
func (m *lockModule) learn(t *chipDrive, now time.Duration, found []lockFinding) {
	walk := float64(lockWalk * (float64(now-m.looked) / float64(time.Second)))
	for k := range m.variance {
		m.variance[k] = min(m.variance[k]+walk, 1)
	}
	m.looked = now
	largest, square := 0.0, 0.0
	h := &m.hold
	for _, f := range found {
		gain := m.variance[f.cell] / (m.variance[f.cell] + f.variance)
		m.offset[f.cell] = mzi.Wrap(m.offset[f.cell] + float64(gain*f.off))
		m.variance[f.cell] *= 1 - gain
		square += float64(f.off * f.off)
		if x := math.Abs(f.off); x >= largest {
			largest = x
			h.LastCell = uint8(f.cell)
		}
		if math.Abs(f.off) > lockLost {
			h.Lost++
		}
	}
	h.LastMicrorad = int32(largest * 1e6)
	h.RMSMicrorad = int32(math.Sqrt(square/float64(len(found))) * 1e6)
	if h.Looks > 0 {
		h.LargestMicrorad = max(h.LargestMicrorad, h.LastMicrorad)
	}
	h.Looks++
	m.blind = false
	switch {
	case largest > lockQuiet:
		m.period, m.rests = t.lockPeriod(), 0
	case m.period < t.lockRest():
		m.period = min(2*m.period, t.lockRest())
	default:
		if m.rests++; m.rests >= lockDone && t.cfg.Lock.Mode == LockOnDrift {
			m.engaged = false
		}
	}
	m.next = now + m.period
}

// lockFinding is the result of a look for one cell.
type lockFinding struct {
	cell          int
	off, variance float64 // radian, radian^2
}

func litOf(p proto.Path) mzi.Lit { return mzi.Lit(p - proto.Loopback) }

// milliwattOf is the power of a level.
func milliwattOf(l proto.MilliDBm) float64 { return fromMilliDBm(int32(l)) }
