package sim

import (
	"encoding/binary"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/mzi/detmath"
)

// Receivers, and the bits that go through the light. chosen: docs/qualify.md.
const (
	bitsPerLane = 106 // in a nanosecond: 53.125 GBd PAM4, cut down
	// A receiver limited by its own noise has a Q that follows the power: at its
	// sensitivity, of a lane on its diode, 7.03, which is one wrong bit in 1e12.
	sensitivityDBm = -11.5
	sensitivityQ   = 7.03
	// Of four levels the eye is a third of the swing, and stray light closes it by all of its own.
	strayWeight = 3
)

// patterns makes and checks bit patterns on the lanes of a module: the media side of
// pages 13h and 14h.
type patterns struct {
	page, at uint8 // of a retimer on the board
	control  [128]byte
	selector byte
	lane     [hal.Lanes]struct{ from, upTo, errors int64 } // nanoseconds; since the checker was enabled
	draws    uint64
}

func (m *module) patterned() *patterns {
	if m.patterns == nil {
		m.patterns = new(patterns)
	}
	return m.patterns
}

func (x *patterns) generates() byte { return x.control[cmis.Generator-128] }
func (x *patterns) checks() byte    { return x.control[cmis.Checker-128] }

// pattern takes a byte of page 13h.
func (m *module) pattern(at, v byte) {
	x, now := m.patterned(), int64(m.board.now)
	before := x.checks()
	x.control[at-128] = v
	for l := range x.lane {
		if x.checks()&^before>>l&1 != 0 {
			x.lane[l].from, x.lane[l].upTo, x.lane[l].errors = now, now, 0
		}
	}
}

// tally fills page 14h: what the checkers have counted until now.
func (m *module) tally(page *[128]byte) {
	x, now := m.patterned(), int64(m.board.now)
	page[cmis.Selector-128] = x.selector
	if x.selector != cmis.SelectUpper && x.selector != cmis.SelectLower {
		return
	}
	ratio := m.bitErrorRatios(true)
	for l := range x.lane {
		c := &x.lane[l]
		if x.checks()>>l&1 != 0 {
			x.draws++
			c.errors += poisson(float64((now-c.upTo)*bitsPerLane)*ratio[l], derive(m.seed^seedPattern, x.draws))
			c.upTo = now
		}
		if l/hal.HalfLanes == int(x.selector-cmis.SelectUpper) {
			at := page[cmis.Counts-128+16*(l%hal.HalfLanes):]
			binary.LittleEndian.PutUint64(at, uint64(c.errors))
			binary.LittleEndian.PutUint64(at[8:], uint64((c.upTo-c.from)*bitsPerLane))
		}
	}
}

const seedPattern = 0x7072_6273

// poisson draws a number of events of which so many are expected.
func poisson(mean float64, seed uint64) (n int64) {
	r := detmath.Stream(seed, 0)
	if mean > 30 { // as good as normal: the sum of twelve draws
		sum := -6.0
		for range 12 {
			sum += float64(r.Next()>>11) / (1 << 53)
		}
		return max(0, int64(mean+float64(sqrt(mean)*sum)+0.5))
	}
	for p, least := 1.0, detmath.Exp(-mean); ; n++ {
		if p *= float64(r.Next()>>11) / (1 << 53); p <= least {
			return n
		}
	}
}

// bitErrorRatios are those of the lanes that a module receives on the path that it is
// on, of the light as it is now: one half where no bits come, or, if only patterns count,
// none of those.
func (m *module) bitErrorRatios(patterns bool) (ratio [hal.Lanes]float64) {
	for l := range m.wired.LaneCount {
		ratio[l] = 0.5
	}
	bu, now := m.bundle, int64(m.board.now)
	if !bu.nets[0] {
		return ratio
	}
	ext := boolToInt(bu.nets[1])
	end := &bu.ends[ext]
	src := end.sender(m.place)
	if src == nil || end.cut || patterns && src.patterns == nil || !src.onto(end.ext) {
		return ratio
	}
	var own, sent instant
	m.refresh()
	m.emit(now, &own)
	src.refresh()
	src.emit(now, &sent)
	for l, p := range sent.ext[end.ext] {
		at, has := m.wired.arrives(l, end.crossed)
		if !has || patterns && src.patterns.generates()>>l&1 == 0 {
			continue
		}
		signal := float64(float64(p*src.outGain(end.ext, l)) * float64(end.gain*float64(m.per.rxGain[ext][at]*m.clean(ext))))
		// Own light that leaks into the loopback comes to the receiver of the other half.
		from := m.wired.Opposite(at)
		ratio[at] = m.errorRatio(signal - float64(strayWeight*float64(own.in[from]*m.per.loopGain[at])))
	}
	return ratio
}

// onto: the module sends on this external path.
func (m *module) onto(ext int) bool {
	return m.bundle.nets[0] && boolToInt(m.bundle.nets[1]) == ext
}

// errorRatio of an eye that is open by so many milliwatts: half the complementary error
// function of Q over the root of two, by Börjesson and Sundberg (1979), within 1 %.
func (m *module) errorRatio(milliwatt float64) float64 {
	q := float64(max(milliwatt, 0) / detmath.FromDB(sensitivityDBm) * sensitivityQ)
	if m.planted != nil && m.planted.deaf != 0 {
		q *= m.planted.deaf
	}
	if q > 37 {
		return 0
	}
	return detmath.Exp(-q*q/2) / (2.5066282746310002 * (float64(0.661*q) + float64(0.339*sqrt(float64(q*q)+5.51))))
}

// outGain is what is left of a lane's light in the fibre.
func (m *module) outGain(ext, lane int) float64 { return float64(m.per.txGain[lane] * m.clean(ext)) }

// clean is what the connector of an external path lets through, besides its own loss.
func (m *module) clean(ext int) float64 {
	if m.planted == nil || m.planted.dirt[ext] == 0 {
		return 1
	}
	return m.planted.dirt[ext]
}

// write takes the bytes of one to a retimer.
func (x *patterns) write(m *module, in []byte) {
	x.at = in[0]
	for _, v := range in[1:] {
		switch at := x.at; {
		case at == cmis.PageSelect:
			x.page = v
		case at < 128:
		case x.page == cmis.PagePattern:
			if f, known := cmis.At(x.page, at); known && f.Access.Writable() {
				m.pattern(at, v)
			}
		case x.page == cmis.PageCounts && at == cmis.Selector:
			x.selector = v
		}
		x.at = next(x.at)
	}
}

// read fills one of it.
func (x *patterns) read(m *module, r []byte) {
	page := x.control
	if x.page == cmis.PageCounts {
		page = [128]byte{}
		m.tally(&page)
	}
	for i := range r {
		r[i] = 0
		if x.at >= 128 && (x.page == cmis.PagePattern || x.page == cmis.PageCounts) {
			r[i] = page[x.at-128]
		} else if x.at == cmis.PageSelect {
			r[i] = x.page
		}
		x.at = next(x.at)
	}
}

// Inside is what no agent can see of a module; for reports and tests.
type Inside struct {
	Makes, Checks  uint8              // lanes that make bit patterns, and that check them
	BitErrorRatios [hal.Lanes]float64 // of what it receives, if the other end sends patterns
	PreFEC         [hal.Lanes]float64 // of a host's bits
	Firmware       cmis.Firmware
	Alive          bool // it has firmware that starts
	Upgrading      bool // it takes other firmware, or has not committed what it runs
}

// Inside looks into a module.
func (w *World) Inside(id BoardID, bundle, mod int) Inside {
	m := w.module(id, bundle, mod)
	x := Inside{BitErrorRatios: m.bitErrorRatios(true), PreFEC: m.bitErrorRatios(false), Alive: true}
	if p := m.patterns; p != nil {
		x.Makes, x.Checks = p.generates(), p.checks()
	}
	if m.mci != nil {
		f := &m.mci.fw
		x.Firmware, x.Alive = f.info(), f.bank[f.running].valid
		x.Upgrading = f.load != nil || f.next > 0 || f.running != f.committed
	}
	return x
}
