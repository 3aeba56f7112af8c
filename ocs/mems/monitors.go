package mems

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/tmp102"
	"ringlight/mzi/detmath"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// monitorWindow is how long a result takes to hold nothing of before: 16
// conversions are averaged, all eight channels in 128 us.
const (
	monitorOversample = 4
	monitorWindow     = 300 * time.Microsecond
)

// monitors are the chips that measure the power at every port, and the
// thermometer of the mirrors' carrier.
type monitors struct {
	hw           *hal.Mirrors
	chips        []chip
	of           [hal.NumSides][]int // the chip of a port
	milliCelsius int32
}

// chip is one ADS7138.
type chip struct {
	bus   hal.BusID
	addr  uint16
	side  int
	port  [ads7138.Channels]int // -1: none
	power [ads7138.Channels]proto.MilliDBm
	read  bool // in this look
	brown bool // has been without power since a change last saw to the mirrors
	dark  bool // every channel showed nothing, as when it does not scan
	stops bool // it does not scan: it has lost its supply since it was told to
	err   error
}

func newMonitors(hw *hal.Mirrors) monitors {
	m := monitors{hw: hw}
	for side := range hw.Monitors {
		for port, at := range hw.Monitors[side] {
			i := slices.IndexFunc(m.chips, func(c chip) bool { return c.bus == at.Bus && c.addr == at.Addr })
			if i < 0 {
				i = len(m.chips)
				m.chips = append(m.chips, chip{bus: at.Bus, addr: at.Addr, side: side, port: [ads7138.Channels]int{-1, -1, -1, -1, -1, -1, -1, -1}})
			}
			m.chips[i].port[at.Channel] = port
			m.of[side] = append(m.of[side], i)
		}
	}
	return m
}

// scan makes every chip scan. It returns how many operations.
func (m *monitors) scan(q *work.Queue) int {
	for i := range m.chips {
		c := &m.chips[i]
		c.err = nil
		q.Put(c.bus, &hal.Op{Token: q.Token(scanTask, i), Class: hal.ClassSafety, Msgs: scanMessages(c.addr)})
	}
	return len(m.chips)
}

// scanMessages read the status and make a chip scan with averages.
func scanMessages(addr uint16) []hal.Msg {
	msgs := ads7138.ScanMessages(addr, 0)
	over := hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, ads7138.RegOversample, monitorOversample)}
	msgs = slices.Insert(msgs, len(msgs)-1, over)
	status := hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, ads7138.RegStatus), R: make([]byte, 1)}
	return slices.Insert(msgs, 0, status)
}

// scans takes the reply to scan.
func (m *monitors) scans(i int, done *hal.Completion) {
	c := &m.chips[i]
	c.err, c.dark, c.stops = done.Err, false, false
	c.brown = c.err == nil && done.Op.Msgs[0].R[0]&ads7138.StatusBrownOut != 0
}

// silent reports whether no chip answers, and why.
func (m *monitors) silent() (bool, error) {
	return !slices.ContainsFunc(m.chips, func(c chip) bool { return c.err == nil }), m.chips[0].err
}

// lostPower tells whether the board has been without power since a change
// last saw to the mirrors: then they stand at rest, whatever was saved, and
// light that passes by chance proves nothing. One monitor alone may have been
// exchanged.
func (m *monitors) lostPower() bool {
	return !slices.ContainsFunc(m.chips, func(c chip) bool { return c.err == nil && !c.brown })
}

// seen clears the brown-outs: all mirrors are where they should be.
func (m *monitors) seen(q *work.Queue) {
	for i := range m.chips {
		if c := &m.chips[i]; c.brown {
			c.brown = false
			q.Put(c.bus, &hal.Op{Token: q.Token(seenTask, i), Class: hal.ClassSafety, Msgs: []hal.Msg{
				{Addr: c.addr, W: ads7138.AppendWrite(nil, ads7138.RegStatus, ads7138.StatusBrownOut)}}})
		}
	}
}

// begin begins a look at everything, or at what ask names.
func (m *monitors) begin(all bool) {
	for i := range m.chips {
		m.chips[i].read = all
	}
}

// ask makes this look one at a port.
func (m *monitors) ask(side, port int) { m.chips[m.of[side][port]].read = true }

// darkened reports whether a chip shows nothing at all though light was to be
// seen at one of its ports.
func (m *monitors) darkened(lit func(side, port int) bool) bool {
	return slices.ContainsFunc(m.chips, func(c chip) bool {
		return c.read && c.err == nil && c.dark && slices.ContainsFunc(c.port[:], func(port int) bool { return port >= 0 && lit(c.side, port) })
	})
}

// stopped reports whether a chip does not scan.
func (m *monitors) stopped() bool {
	return slices.ContainsFunc(m.chips, func(c chip) bool { return c.stops })
}

// look reads what was asked for, and how warm it is if all was; with doubt, also
// whether the chips scan. It returns how many operations.
func (m *monitors) look(q *work.Queue, all, doubt bool) (n int) {
	if all {
		q.Put(m.hw.Temp.Bus, &hal.Op{Token: q.Token(tempTask, len(m.chips)), Class: hal.ClassSafety, Msgs: []hal.Msg{
			{Addr: m.hw.Temp.Addr, W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: make([]byte, 2)}}})
		n++
	}
	for i := range m.chips {
		c := &m.chips[i]
		if !c.read {
			continue
		}
		msgs := []hal.Msg{{Addr: c.addr, W: ads7138.AppendReadBlock(nil, ads7138.RegRecent), R: make([]byte, ads7138.BlockBytes)}}
		if doubt {
			msgs = append(msgs, hal.Msg{Addr: c.addr, W: ads7138.AppendRead(nil, ads7138.RegStatus), R: make([]byte, 1)})
		}
		q.Put(c.bus, &hal.Op{Token: q.Token(lookTask, i), Class: hal.ClassVerify, Msgs: msgs})
		n++
	}
	return n
}

// looked takes the powers out of a block of results.
func (m *monitors) looked(i int, done *hal.Completion) {
	c := &m.chips[i]
	if c.err = done.Err; c.err != nil {
		return
	}
	c.dark = true
	for ch := range c.power {
		code := ads7138.Code16(done.Op.Msgs[0].R, ch)
		c.power[ch], c.dark = monitorPower(code), c.dark && code == 0
	}
	if msgs := done.Op.Msgs; len(msgs) > 1 {
		c.stops = msgs[1].R[0]&ads7138.StatusRunning == 0
	}
}

func (m *monitors) warmth(done *hal.Completion) {
	if done.Err == nil {
		m.milliCelsius = tmp102.Millicelsius(done.Op.Msgs[0].R)
	}
}

// power of a port, as the last look found it.
func (m *monitors) power(side, port int) (proto.MilliDBm, error) {
	c := &m.chips[m.of[side][port]]
	return c.power[m.hw.Monitors[side][port].Channel], c.err
}

// each calls f for every port that this look was at.
func (m *monitors) each(f func(side, port int, power proto.MilliDBm)) {
	for i := range m.chips {
		c := &m.chips[i]
		if !c.read || c.err != nil {
			continue
		}
		for ch, port := range c.port {
			if port >= 0 {
				f(c.side, port, c.power[ch])
			}
		}
	}
}

// monitorFullScale is the power of a code of all ones, in milliwatts.
var monitorFullScale = detmath.FromDB(hal.MonitorFullScaleMilliDBm / 1000.0)

// monitorPower is a 16-bit result as a power.
func monitorPower(code uint16) proto.MilliDBm {
	if code == 0 {
		return hal.DarkMilliDBm
	}
	return proto.MilliDBm(1000 * detmath.DB(float64(code)*monitorFullScale/(16*ads7138.CodeFull)))
}
