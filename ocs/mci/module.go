package mci

import (
	"encoding/binary"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/diode"
	"ringlight/ocs/work"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// Module is one module's controller and what it is being asked.
type Module struct {
	set     *Set
	index   int
	hw      *hal.Module
	segment *segment
	clock   physic.Frequency // of its bus
	port    *cmis.Port
	Flags   *cmis.Flags // which Health reads

	op      hal.Op
	class   hal.Class
	queue   []cmis.Request
	at      int
	started bool
	wait    time.Duration
	then    func(now time.Duration, err error)

	Advert  cmis.Advert
	Control cmis.Control  // what it can do
	Status  cmis.Status   // its newest account
	Lock    cmis.Lock     // as Health read it last
	limit   time.Duration // of what is being waited for
	tries   int
	staged  bool // by this life
	asked   ask  // of its data paths, by this life
	doubts  int  // looks at a status that is not what was asked for
	doubted byte // what it was

	warm    [4]byte
	hold    [1]byte
	held    [cmis.LockBytes]byte
	bias    [cmis.BiasBytes]byte
	rounds  uint8   // of Health
	biased  bool    // the last of them asks for bias
	trigger [1]byte // for this module alone
	head    [8]byte
	raw     [cmis.StatusBytes]byte
	service [diode.BlockBytes]byte
	page    [128]byte
	codes   pages
	reads   [2]cmis.Request // of its account
}

// Ask asks a module something, request by request.
func (m *Module) Ask(class hal.Class, then func(time.Duration, error), queue ...cmis.Request) {
	m.class, m.queue, m.at, m.started, m.wait, m.then = class, queue, 0, false, hal.Never, then
}

// Wait lets a module be until a time.
func (m *Module) Wait(until time.Duration, then func(time.Duration)) {
	m.queue, m.at, m.started, m.wait = nil, 0, false, until
	m.then = func(now time.Duration, _ error) { then(now) }
}

// Drop ends what modules are being asked; nobody hears of it.
func (s *Set) Drop() {
	for i := range s.Modules {
		s.Modules[i].then = nil
	}
}

// Idle reports whether a module is being asked nothing.
func (m *Module) Idle() bool { return m.then == nil }

// Forget leaves open which page a module is on.
func (m *Module) Forget() { m.port.Forget() }

// advance lets a module's requests go on.
func (m *Module) advance(now time.Duration) {
	for m.then != nil && !m.port.Busy() {
		if m.wait != hal.Never {
			if now < m.wait {
				return
			}
			m.wait = hal.Never
		}
		var err error
		if m.started {
			m.started, err = false, m.port.Err()
		}
		if err != nil || m.at == len(m.queue) {
			then := m.then
			m.then = nil
			then(now, err)
			continue
		}
		m.port.Start(now, m.queue[m.at])
		m.at++
		m.started = true
	}
}

func (m *Module) next() time.Duration {
	if m.then == nil {
		return hal.Never
	}
	return min(m.wait, m.port.Next())
}

// Fired is when the newest trigger ended on the module's segment.
func (m *Module) Fired() time.Duration { return m.segment.end }

// levels is the request for the channels that tell of a path's own light: the
// lanes' in loopback, else the guard's.
func (m *Module) levels(p proto.Path) cmis.Request {
	q := cmis.Request{Page: cmis.PageService, Offset: cmis.Levels, Data: m.service[:]}
	if p == proto.Loopback {
		q.Offset = cmis.LaneLevels
	}
	return q
}

// Block is the levels last read, in the form of the ADCs' reply. It may be taken
// once.
func (m *Module) Block() []byte {
	from := m.service[:]
	for i := 0; i < len(from); i += 2 {
		binary.LittleEndian.PutUint16(from[i:], binary.BigEndian.Uint16(from[i:]))
	}
	return from
}

// Read reads the module's account and the levels last asked for.
func (m *Module) Read(then func(now time.Duration, err error)) {
	m.Ask(hal.ClassVerify, func(now time.Duration, err error) {
		if err == nil {
			m.Status, err = cmis.ParseStatus(m.raw[:])
		}
		then(now, err)
	}, m.reads[:]...)
}

// Account asks what the module did about the newest trigger, and the levels of a
// path. It goes in after whatever the module is being asked. missed: something
// else is in force, and no newer trigger has come.
func (m *Module) Account(p proto.Path, then func(now time.Duration, missed bool, err error)) {
	fired := m.set.fired
	m.reads[1] = m.levels(p)
	m.Read(func(now time.Duration, err error) {
		missed := err == nil && m.Status.InForce != fired
		if missed && m.doubts < work.MaxTries && (m.doubts == 0 || m.doubted != m.Status.InForce) {
			// Nothing guards these bytes: believed is what two looks agree about.
			m.doubts, m.doubted = m.doubts+1, m.Status.InForce
			m.Account(p, then)
			return
		}
		m.doubts = 0
		then(now, missed && fired == m.set.fired, err)
	})
}

// Alone gives the newest trigger to a module that missed it, unless it had it
// often enough; then follows when it has had the time to carry it out.
func (m *Module) Alone(then func()) bool {
	if m.tries++; m.tries >= work.MaxTries {
		return false
	}
	m.Forget() // who made it be away may have changed its page
	m.Ask(hal.ClassSwitch, func(now time.Duration, err error) {
		m.Wait(now+m.set.Settle(), func(time.Duration) { then() })
	}, cmis.Request{Write: true, Offset: cmis.Trigger, Data: m.trigger[:]})
	return true
}

// Health reads the module's temperature, flags and levels, and how its lock stands where
// that is asked. It writes nothing and
// changes no page, so that no module is away when a trigger comes.
func (m *Module) Health(lock bool, then func(now time.Duration, millicelsius int32, err error)) {
	counters := m.Control.Counters
	queue := []cmis.Request{{Offset: cmis.Temperature, Data: m.warm[:]}, m.levels(proto.External1)}
	if counters {
		queue = append(queue, m.Flags.InService()...)
	}
	if lock = lock && m.Control.Lock; lock {
		queue = append(queue, cmis.Request{Offset: cmis.LockMode, Data: m.held[:]})
	}
	m.rounds++
	if m.biased = m.Control.Bias && m.rounds%biasEvery == 1; m.biased {
		queue = append(queue, cmis.Request{Offset: cmis.Bias, Data: m.bias[:]})
	}
	m.Ask(hal.ClassHousekeeping, func(now time.Duration, err error) {
		if err == nil && counters {
			m.Flags.Taken()
		}
		if err == nil && lock {
			m.Lock, err = cmis.ParseLock(m.held[:])
		}
		then(now, cmis.MilliCelsius(m.warm[:]), err)
	}, queue...)
}

// biasEvery is how many rounds of Health read the lasers' bias once. chosen: it goes in weeks.
const biasEvery = 16

// BiasOf is the highest laser bias of either half of the light, in microampere; false: this
// round of Health did not read it.
func BiasOf(m *Module) (upper, lower int32, ok bool) {
	half := len(m.bias) / 2
	return cmis.BiasMicroamp * int32(slices.Max(m.bias[:half])), cmis.BiasMicroamp * int32(slices.Max(m.bias[half:])), m.biased
}

// Hold lets the module hold the cells of the path in force, or no more. The write
// may keep it away as any other.
func (m *Module) Hold(on bool, then func()) {
	m.hold[0] = 0
	if on {
		m.hold[0] = 1
	}
	m.Ask(hal.ClassHousekeeping, func(time.Duration, error) { then() }, // the next reading tells what came of it
		cmis.Request{Write: true, Offset: cmis.LockMode, Data: m.hold[:]})
}

// Again reads the levels of the guard once more.
func (m *Module) Again(then func(now time.Duration, err error)) {
	m.Ask(hal.ClassHousekeeping, then, m.levels(proto.External1))
}

// Home brings a module back to the service page, where it stays.
func (m *Module) Home() {
	m.Ask(hal.ClassHousekeeping, func(time.Duration, error) {}, m.reads[1])
}
