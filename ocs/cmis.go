package ocs

import (
	"errors"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/cmis"
	"ringlight/proto"
)

// mciDrive is what a Transceiver has instead of latch and chips when its
// modules are of kind cmis: a port to each controller, and one trigger byte for
// all.
//
// prepare: codes staged and applied, data paths initialised, by bring-up
// arm:     every module on the service page, nothing written any more
// fire:    the trigger byte, once to all modules of a segment
// verify:  LOS pins; then each module's own account and its levels
// A module that missed the byte, because it held off just then, is given it
// alone.
type mciDrive struct {
	t    *Transceiver
	mods []mciModule
	segs []mciSegment
	left int // modules that have not come to the end of the round

	fireOut   int
	fireAgain time.Duration // when segments that held off are asked again
	fireLimit time.Duration
	fired     byte          // the trigger
	longest   time.Duration // of all work on the segments in service
	latency   time.Duration // longest from byte to drive, of all modules
	settle    time.Duration
	staging   bool
	differ    bool
	trials    mciTrials
	cal       *mciCalibration // a search under way
	lanes     mciLanes
	dump      *mciDump // under way
	image     []byte   // of the last dump
	imageErr  error
}

// mciModule is one module's port and what it is being asked.
type mciModule struct {
	hw      *hal.Module
	segment int
	port    *cmis.Port
	flags   *cmis.Flags
	op      hal.Op
	class   hal.Class
	queue   []cmis.Request
	at      int
	started bool
	wait    time.Duration
	then    func(now time.Duration, err error)

	advert  cmis.Advert
	control cmis.Control
	status  cmis.Status
	limit   time.Duration // of what is being waited for
	tries   int
	staged  bool // by this life
	doubts  int  // looks at a status that is not what was asked for
	doubted byte // what it was
	warm    [4]byte
	lone    [1]byte // the trigger, for this module alone
	head    [8]byte
	raw     [cmis.StatusBytes]byte
	service [ads7138.BlockBytes]byte
	page    [128]byte
	codes   [2][2 * hal.CellsPerMod]byte
	reads   [2]cmis.Request // of a verification
}

// mciSegment is one I2C segment, with the fire made ready.
type mciSegment struct {
	bus   hal.BusID
	op    hal.Op
	msgs  [2]hal.Msg
	sel   [1]byte
	buf   [2]byte
	want  bool // to be put out
	held  bool // nobody on it answered
	out   bool
	try   int
	pause time.Duration // until it is asked again
	end   time.Duration // of the newest trigger on it
}

// Numbers of a CMIS bundle's tokens: segments count from here.
const mciSegmentToken = 0x100

func newMCIDrive(t *Transceiver) *mciDrive {
	d := &mciDrive{t: t, fireAgain: Never}
	d.mods = make([]mciModule, len(t.bundle.Modules))
	for i := range d.mods {
		m := &d.mods[i]
		m.hw = &t.bundle.Modules[i]
		m.port = cmis.NewPort(m.hw.Mux, m.hw.MuxChannel)
		m.flags = cmis.NewFlags(m.port)
		m.wait = Never
		m.segment = d.addSegment(m.hw)
	}
	for i := range d.segs {
		s := &d.segs[i]
		s.op = hal.Op{Class: hal.ClassSwitch}
		s.buf[0] = cmis.Trigger
		if s.sel[0] == 0 {
			s.op.Msgs = s.msgs[1:]
		} else {
			s.op.Msgs = s.msgs[:]
		}
	}
	return d
}

// mci is the drive of a bundle of CMIS modules, nil of any other.
func (t *Transceiver) mci() *mciDrive {
	d, _ := t.drive.(*mciDrive)
	return d
}

// addSegment notes the segment of a module: those behind one mux share it.
func (d *mciDrive) addSegment(hw *hal.Module) int {
	for i := range d.segs {
		if s := &d.segs[i]; s.bus == hw.MCI && hw.Mux != 0 && s.msgs[0].Addr == hw.Mux {
			s.sel[0] |= 1 << hw.MuxChannel
			return i
		}
	}
	s := mciSegment{bus: hw.MCI}
	s.msgs[1].Addr = hal.MCIAddr
	if hw.Mux != 0 {
		s.sel[0] = 1 << hw.MuxChannel
		s.msgs[0].Addr = hw.Mux
	}
	d.segs = append(d.segs, s)
	return len(d.segs) - 1
}

// run asks a module something, request by request.
func (m *mciModule) run(class hal.Class, then func(time.Duration, error), queue ...cmis.Request) {
	m.class, m.queue, m.at, m.started, m.wait, m.then = class, queue, 0, false, Never, then
}

// pause lets a module be until a time.
func (m *mciModule) pause(until time.Duration, then func(time.Duration, error)) {
	m.queue, m.at, m.started, m.wait, m.then = nil, 0, false, until, then
}

// idle reports whether a module is being asked nothing.
func (m *mciModule) idle() bool { return m.then == nil }

// advance lets a module's requests go on.
func (m *mciModule) advance(now time.Duration) {
	for m.then != nil && !m.port.Busy() {
		if m.wait != Never {
			if now < m.wait {
				return
			}
			m.wait = Never
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

func (m *mciModule) next() time.Duration {
	if m.then == nil {
		return Never
	}
	return min(m.wait, m.port.Next())
}

// due lets the requests of every module go on.
func (d *mciDrive) due(now time.Duration) (next time.Duration) {
	t := d.t
	d.settled(t, now)
	d.trials.due(t, now)
	d.lanes.due(t, now)
	for i := range d.mods {
		if t.state == Faulted {
			break // whatever they were being asked is of no use any more
		}
		m := &d.mods[i]
		m.advance(now)
		for d.dump != nil && d.dump.module == i && m.idle() {
			d.dumps(t, now)
			m.advance(now)
		}
		if msgs := m.port.Poll(now); msgs != nil {
			m.op = hal.Op{Token: t.token(taskMCI, i, 0), Class: m.class, Msgs: msgs}
			t.put(m.hw.MCI, &m.op)
		}
	}
	d.fire(t)
	next = min(t.sw.next(), d.fireAgain, d.trials.next())
	for i := range d.mods {
		if t.state != Faulted {
			next = min(next, d.mods[i].next())
		}
	}
	return next
}

func (d *mciDrive) completed(now time.Duration, c *hal.Completion, _ task, module, n int) {
	t := d.t
	if n >= mciSegmentToken {
		d.fireDone(t, now, c, &d.segs[n-mciSegmentToken])
		return
	}
	if c.Err != nil && !errors.Is(c.Err, hal.ErrAddressNACK) {
		t.busErrors++
	}
	d.longest = max(d.longest, c.End-c.Start)
	m := &d.mods[module]
	m.port.Completed(now, c.Msg, c.Err)
	m.advance(now)
}

// triggerOf is the trigger for a path; a dark bundle keeps the way set that it
// has, for the next light to find.
func triggerOf(p proto.Path, before byte) byte {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	if p == proto.Dark {
		return cmis.TriggerValid | before&cmis.TriggerPath
	}
	return cmis.TriggerValid | lasers | byte(p-proto.Loopback)
}

// pathOfTrigger is the inverse.
func pathOfTrigger(b byte) proto.Path {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	if !cmis.ValidTrigger(b) || b&lasers != lasers {
		return proto.Dark // one half alone is of no use either
	}
	return proto.Loopback + proto.Path(b&cmis.TriggerPath)
}
