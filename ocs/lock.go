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
// all paths are composed again with it. The matrix is not looked at: lanes that are
// all lit trade light there that no diode can tell apart; it is carried along with
// what all cells have in common (lock_carry.go). One module of a bundle is under way
// at a time; a Select or a verification freezes the lock at once.

// LockMode says how often a bundle's modules are looked at. Light on the wrong side or
// another case temperature bring the next look at once, in every mode but LockOff.
type LockMode uint8

const (
	LockOff     LockMode = iota // never
	LockOnDrift                 // every ten minutes while a module is quiet
	LockAlways                  // every minute
)

// LockModes by the names that configurations and flags have for them.
var LockModes = map[string]LockMode{"off": LockOff, "drift": LockOnDrift, "always": LockAlways}

// LockConfig is how a bundle is locked.
type LockConfig struct {
	Mode   LockMode      `json:"mode"`
	Period time.Duration `json:"period_ns"` // between two looks at a module that moves; 0: a second
	Rest   time.Duration `json:"rest_ns"`   // between two at one that does not; 0: as the mode has it
}

func (c *LockConfig) period() time.Duration {
	if c.Period > 0 {
		return c.Period
	}
	return lockPeriod
}

func (c *LockConfig) rest() time.Duration {
	switch {
	case c.Rest > 0:
		return c.Rest
	case c.Mode == LockAlways:
		return lockRestAlways
	}
	return lockRestDrift
}

const (
	// chosen: a cell that walks by 5 mrad/sqrt(s) has gone 5 mrad, a fifteenth
	// of what costs it 25 dB of 28.
	lockPeriod = time.Second
	// chosen: in a minute the case of a busy board may change by .3 K, 6 mrad; in ten
	// minutes cells drift by 12 mrad rms, which costs .1 dB of 28, and the thermometer
	// tells of a case that changes.
	lockRestAlways = 64 * time.Second
	lockRestDrift  = 10 * time.Minute
	// A look that finds no cell off by more doubles the period. chosen: four
	// deviations of what a look cannot tell; it costs a tenth of a dB.
	lockQuiet = 0.018
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
)

// lock is the lock of a bundle.
type lock struct {
	modules []lockModule // nil: never engaged
	act     *lockAct     // nil: none. A frozen one is the bus's until its work ends
	gen     uint8        // of the work under way: a freeze makes it void
	feel    feeling
}

// lockModule is the state of the lock of one module.
type lockModule struct {
	blind    bool               // the last look failed on the bus
	refused  string             // why the last look was not believed, "": it was
	large    [lockCells]float64 // errors that the last look found and nobody has trimmed yet
	favours  proto.Path         // in its codes; Dark: none
	period   time.Duration
	next     time.Duration
	looked   time.Duration
	offset   [mzi.Cells]float64 // radian, against the calibration
	variance [mzi.Cells]float64 // radian^2, of offset
	sights   [lockCells]sight
	noise    [3]lightNoise // by mzi.Lit
	carry    carry
	hold     Hold
	dim      bool          // in the last look a lane may have been dark
	strayed  [3][2]strayed // by mzi.Lit, light of MZI2, of loopback of both, and of MZI1
}

// Hold is how well a module is held.
type Hold struct {
	Engaged         bool   `json:"engaged"`
	Looks           uint32 `json:"looks"`         // that were finished and believed
	Refused         uint32 `json:"refused"`       // that were finished and not believed
	LastMicrorad    int32  `json:"last_microrad"` // largest error that the last look found and trimmed
	LastCell        uint8  `json:"last_cell"`
	RMSMicrorad     int32  `json:"rms_microrad"`     // over its cells
	LargestMicrorad int32  `json:"largest_microrad"` // of all looks but the first, which finds what happened before
	Lost            uint32 `json:"lost"`             // cells that a look found beyond what 25 dB allow
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
		switch {
		case why != "":
		case t.Health.misroutes(i):
			why = misroutedText // whatever its lock says
		case !hold.Engaged || hold.Looks == 0:
			why = notLooked
		}
		if why != "" {
			return proto.HeldNothing, "module " + strconv.Itoa(i) + " " + why
		}
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

func (d *chipDrive) lockless() string {
	if d.scan.differ {
		return "codes were found that are none of ours"
	}
	return ""
}

const notLooked = "could not be looked at"

func (d *chipDrive) hold(module int) (h Hold, why string) {
	if module >= len(d.lock.modules) {
		return h, ""
	}
	m := &d.lock.modules[module]
	h = m.hold
	h.Engaged = true
	switch {
	case m.blind:
		why = notLooked
	case m.refused != "":
		why = "was looked at in vain: " + m.refused
	case float64(h.LastMicrorad) > lockLost*1e6 && h.Looks > 1:
		why = "was found off by " + strconv.Itoa(int(h.LastMicrorad/1000)) + " mrad in cell " + strconv.Itoa(int(h.LastCell)) + " by its last look"
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
	l.feel.out = false
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
func (l *lock) calibrated(d *chipDrive, module int) *ModuleCalibration {
	m := d.trx.cfg.Calibration.Modules[module]
	if module >= len(l.modules) {
		return m
	}
	moved := *m
	for k, off := range l.modules[module].offset {
		moved.Cells[k].OffsetMicrorad = int32(math.Floor(float64(mzi.Wrap(float64(m.Cells[k].OffsetMicrorad)/1e6+off)*1e6) + 0.5))
	}
	return &moved
}

// engage begins to hold all modules.
func (l *lock) engage(d *chipDrive, now time.Duration) {
	l.modules = make([]lockModule, len(d.trx.bundle.Modules))
	for i := range l.modules {
		m := &l.modules[i]
		m.period, m.next, m.looked = d.trx.cfg.Lock.period(), now, now
		m.carry.begin(d.trx.cfg.Calibration.Modules[i])
		for k := range m.variance {
			m.variance[k] = 1 // nothing is known
		}
	}
}

// hurry lets a module be looked at soon: something says that it moves.
func (l *lock) hurry(d *chipDrive, now time.Duration, module int) {
	if module < len(l.modules) {
		m := &l.modules[module]
		m.period = d.trx.cfg.Lock.period()
		m.next = min(m.next, max(now, m.looked+m.period))
	}
}

// ready reports whether a look may begin or go on.
func (l *lock) ready(d *chipDrive) bool {
	// Where codes were found that are none of ours, nothing is touched. A verification
	// or a health reading under way comes first: until its first average is made, the
	// ADC has nothing to tell.
	return d.trx.verify.out == 0 && !d.readings.busy && d.trx.state == Idle && !d.scan.differ && d.trx.path != proto.Dark && d.trx.target == d.trx.path && d.trx.cfg.Calibration != nil && !d.trx.sw.busy()
}

// next is when the lock wants its turn.
func (l *lock) next(d *chipDrive) time.Duration {
	if l.step() == lockWait {
		return l.act.at
	}
	if l.step() != lockIdle || d.trx.cfg.Lock.Mode == LockOff || !l.ready(d) {
		return hal.Never
	}
	if l.modules == nil {
		return 0
	}
	at := l.feel.next(d)
	for i := range l.modules {
		m := &l.modules[i]
		if m.stale(d.trx.path) {
			return 0
		}
		at = min(at, m.next)
	}
	return at
}

// stale says whether a module's codes are not those that what is known asks for: the path
// has changed, and MZI1 is to be right on this one, or all cells are known to have moved.
func (m *lockModule) stale(p proto.Path) bool {
	return m.hold.Looks > 0 && (m.favours != p || m.carry.fed)
}

// due begins the look that is due, or goes on with the one under way.
func (l *lock) due(d *chipDrive, now time.Duration) {
	if l.step() == lockWait {
		if now >= l.act.at {
			l.read(d)
		}
		return
	}
	if l.step() != lockIdle || d.trx.cfg.Lock.Mode == LockOff || !l.ready(d) {
		return
	}
	if l.modules == nil {
		l.engage(d, now)
	}
	l.feel.due(d, now)
	first := -1
	for i := range l.modules {
		if m := &l.modules[i]; m.stale(d.trx.path) {
			if m.favours != d.trx.path { // other cells have light now
				l.hurry(d, now, i)
			}
			l.gen++
			l.act = &lockAct{module: i, path: d.trx.path, lit: litOf(d.trx.path)}
			l.compose(d)
			return
		} else if m.next <= now && (first < 0 || m.next < l.modules[first].next) {
			first = i
		}
	}
	if first >= 0 {
		l.open(d, now, first)
	}
}

// learn takes the errors that a look found, in radian with their variances, and
// says what to do about them: the period of the next look.
func (m *lockModule) learn(c *LockConfig, now time.Duration, found []lockFinding) {
	walk := float64(lockWalk * (float64(now-m.looked) / float64(time.Second)))
	for k := range m.variance {
		m.variance[k] = min(m.variance[k]+walk, 1)
	}
	m.looked = now
	for i := range m.strayed {
		m.strayed[i][0].grown, m.strayed[i][1].grown = 0, 0
	}
	largest, square := 0.0, 0.0
	h := &m.hold
	sure, doubt := m.doubted(found)
	for _, f := range sure {
		gain := m.variance[f.cell] / (m.variance[f.cell] + f.variance)
		m.offset[f.cell] = mzi.Wrap(m.offset[f.cell] + float64(gain*f.off))
		m.variance[f.cell] *= 1 - gain
	}
	offs := make([]float64, len(found))
	for i, f := range found {
		offs[i] = f.off
	}
	middle := median(offs)
	for _, f := range found {
		left := min(f.variance, m.variance[f.cell])
		if m.large[f.cell] != 0 { // it was not trimmed
			left += float64(f.off * f.off)
		}
		m.sights[f.cell].found(now, f.off-middle, f.variance, left)
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
	m.period = min(2*m.period, c.rest())
	if largest > lockQuiet {
		m.period = c.period()
	}
	if m.next = now + m.period; doubt {
		m.next = now
	}
}

// lockFinding is the result of a look for one cell.
type lockFinding struct {
	cell          int
	off, variance float64 // radian, radian^2
}

func litOf(p proto.Path) mzi.Lit { return mzi.Lit(p - proto.Loopback) }
