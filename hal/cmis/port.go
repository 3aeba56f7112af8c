package cmis

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
)

// Why a request fails besides the bus's own errors.
var (
	ErrNoPage   = errors.New("page not implemented")
	errMoved    = errors.New("another host moves the page")
	errHoldOff  = errors.New("module holds off longer than it may")
	ErrLatched  = errors.New("latched flags have one reader")
	errReadOnly = errors.New("not writable")
	ErrRange    = errors.New("beyond the page")
)

// Request is one access. Data is what is written or what the read fills.
type Request struct {
	Write              bool
	Bank, Page, Offset uint8
	Data               []byte
	// Patience, when not 0, is how long the module may hold off after it: the
	// duration of a foreground command.
	Patience time.Duration

	flags *Flags // of their one reader
}

// step is what a Port's current op is for.
type step uint8

const (
	stepSelect  step = iota // writing bank and page
	stepConfirm             // reading them back, until acknowledged
	stepData                // the next part of the data
	stepSettle              // after a write: asking until acknowledged
)

// maxMoves bounds how often a page that another host moved is selected again for
// one request. chosen: twice is chance.
const maxMoves = 3

// A module that holds off is asked again after pollFirst, then after twice that
// and so on, at last every pollEvery. chosen: a question is 40 us on a bus at
// 1 MHz, so that eight modules that hold off for long leave it half free.
const (
	pollFirst = 50 * time.Microsecond
	pollEvery = 500 * time.Microsecond
)

// Port is one module's management interface: one request at a time.
type Port struct {
	Limits   Limits
	Cache    Cache
	mux      uint16
	channel  uint8
	bank     uint8
	page     uint8
	known    bool // bank and page are what the module has selected, unless another host wrote
	fresh    bool // this request has selected and confirmed them itself
	moves    int  // selections that another host undid
	claimed  *Flags
	busy     bool
	req      Request
	step     step
	at       int  // bytes of req.Data done
	part     int  // bytes of the op under way
	out      bool // op under way
	due      time.Duration
	limit    time.Duration // of the hold-off
	pause    time.Duration // until the next question
	asked    time.Duration // when the last one was
	held     bool          // a hold-off runs
	err      error
	fromRAM  bool
	msgs     [3]hal.Msg
	w        [1 + 128]byte
	r        [2]byte
	sel      [1]byte
	ask      [1]byte
	Holdoffs uint32 // address NACKs that were waited out
}

// NewPort is the port of a module behind a channel of a mux, or without one
// when mux is 0.
func NewPort(mux uint16, channel uint8) *Port {
	return &Port{mux: mux, channel: channel, Limits: DefaultLimits(), due: hal.Never}
}

// Start begins a request; the one before must be over.
func (p *Port) Start(now time.Duration, r Request) {
	if p.busy {
		panic("cmis: request started while one is under way")
	}
	if !Banked(r.Page) {
		r.Bank = 0
	}
	p.busy, p.req, p.at, p.err, p.out, p.held, p.fromRAM, p.fresh, p.moves = true, r, 0, nil, false, false, false, false, 0
	p.due = now
	end := int(r.Offset) + len(r.Data)
	switch {
	case len(r.Data) == 0 || end > 256 || r.Offset < 128 && end > 128:
		p.finish(fmt.Errorf("%w: %d bytes at %d", ErrRange, len(r.Data), r.Offset))
		return
	case r.Write:
		if _, ok := writable(r.Page, r.Offset, len(r.Data)); !ok {
			p.finish(fmt.Errorf("%w: page %02xh, %d bytes at %d", errReadOnly, r.Page, len(r.Data), r.Offset))
			return
		}
	case latched(r.Page, r.Offset, len(r.Data)) && (r.flags == nil || r.flags != p.claimed):
		p.finish(fmt.Errorf("%w: page %02xh, %d bytes at %d", ErrLatched, r.Page, len(r.Data), r.Offset))
		return
	case p.Cache.get(r.Bank, r.Page, r.Offset, r.Data):
		p.fromRAM = true
		p.finish(nil)
		return
	}
	p.step = stepData
	switch {
	case r.Offset < 128:
	case !p.known || p.page != r.Page || p.bank != r.Bank:
		p.step = stepSelect
	case r.Write:
		p.step = stepConfirm // what is written to a page that moved cannot be taken back
	}
}

// finish ends the request.
func (p *Port) finish(err error) { p.busy, p.out, p.due, p.err = false, false, hal.Never, err }

// Busy reports whether a request is under way.
func (p *Port) Busy() bool { return p.busy }

// Err is how the last request ended.
func (p *Port) Err() error { return p.err }

// Forget drops what is known of the module's selection: it was reset, or
// somebody else wrote.
func (p *Port) Forget() { p.known = false }

// Next is when Poll has bus work.
func (p *Port) Next() time.Duration {
	if !p.busy || p.out {
		return hal.Never
	}
	return p.due
}

// Poll is the bus work that is due now, nil for none. The messages are the
// bus's until Completed.
func (p *Port) Poll(now time.Duration) []hal.Msg {
	if !p.busy || p.out || now < p.due {
		return nil
	}
	p.out, p.asked = true, now
	msgs := p.msgs[:0]
	if p.mux != 0 {
		p.sel[0] = 1 << p.channel
		msgs = append(msgs, hal.Msg{Addr: p.mux, W: p.sel[:]})
	}
	m := hal.Msg{Addr: hal.MCIAddr}
	switch p.step {
	case stepSelect:
		m.W = append(p.w[:0], BankSelect, p.req.Bank, p.req.Page)
	case stepConfirm:
		m.W, m.R = append(p.w[:0], BankSelect), p.r[:2]
	case stepSettle: // asked by what tells whether the next part goes to the same page
		m.W, m.R = append(p.w[:0], BankSelect), p.r[:2]
	case stepData:
		at := p.req.Offset + uint8(p.at)
		rest := p.req.Data[p.at:]
		if p.req.Write {
			p.part = min(len(rest), p.Limits.Write)
			m.W = append(append(p.w[:0], at), rest[:p.part]...)
		} else {
			p.part = min(len(rest), p.Limits.Read)
			m.W, m.R = append(p.w[:0], at), rest[:p.part]
			if at >= 128 && !p.fresh { // whose page is this?
				msgs = append(msgs, hal.Msg{Addr: hal.MCIAddr, W: append(p.ask[:0], BankSelect), R: p.r[:2]})
			}
		}
	}
	return append(msgs, m)
}

// Completed takes how the work of Poll went: which message failed, and why.
func (p *Port) Completed(now time.Duration, msg int, err error) {
	if !p.out {
		return
	}
	p.out = false
	if err != nil {
		p.failed(now, msg, err)
		return
	}
	p.held = false
	switch p.step {
	case stepSelect:
		p.known, p.fresh = false, true
		p.holdOff(now, p.Limits.PageChange)
		p.step = stepConfirm
	case stepConfirm:
		if !p.fresh && p.moved(now) {
			return
		}
		p.bank, p.page, p.known = p.r[0], p.r[1], true
		if p.page != p.req.Page || p.bank != p.req.Bank {
			p.finish(fmt.Errorf("%w: bank %d page %02xh reads back as bank %d page %02xh", ErrNoPage, p.req.Bank, p.req.Page, p.bank, p.page))
			return
		}
		p.step, p.due = stepData, now
	case stepData:
		if p.req.Offset >= 128 && !p.req.Write && !p.fresh && p.moved(now) {
			return
		}
		p.dataDone(now)
	case stepSettle:
		if p.at == len(p.req.Data) {
			p.finish(nil)
		} else if p.req.Offset < 128 || !p.moved(now) {
			p.step, p.due = stepData, now
		}
	}
}

// moved looks at the bank and page that the module said it has, and selects
// again where another host has moved them.
func (p *Port) moved(now time.Duration) bool {
	if p.r[0] == p.req.Bank && p.r[1] == p.req.Page {
		return false
	}
	p.known = false
	if p.moves++; p.moves > maxMoves {
		p.finish(fmt.Errorf("%w: bank %d page %02xh where bank %d page %02xh was selected", errMoved, p.r[0], p.r[1], p.req.Bank, p.req.Page))
		return true
	}
	p.step, p.due = stepSelect, now
	return true
}

func (p *Port) dataDone(now time.Duration) {
	at := p.req.Offset + uint8(p.at)
	part := p.req.Data[p.at : p.at+p.part]
	p.at += p.part
	p.fresh = false
	if !p.req.Write {
		p.Cache.put(p.req.Bank, p.req.Page, at, part)
		p.due = now
		if p.at == len(p.req.Data) {
			p.finish(nil)
		}
		return
	}
	p.Cache.forget(p.req.Bank, p.req.Page, at, len(part))
	most := p.Limits.Volatile
	if slow, _ := writable(p.req.Page, at, len(part)); slow == NV {
		most = p.Limits.NonVolatile
	}
	if p.at == len(p.req.Data) {
		most = max(most, p.req.Patience)
	}
	if at <= ModuleControl && at+uint8(len(part)) > ModuleControl && part[ModuleControl-at]&SoftwareReset != 0 {
		p.known = false
		p.Cache.Clear()
	}
	p.holdOff(now, most)
	p.step = stepSettle
}

// holdOff lets a module be away for at most a time; it is asked at once.
func (p *Port) holdOff(now, most time.Duration) {
	p.held, p.due, p.limit, p.pause = true, now, now+most, pollFirst
}

// failed asks again as long as the module may hold off.
func (p *Port) failed(now time.Duration, msg int, err error) {
	if p.mux != 0 && msg == 0 || !errors.Is(err, hal.ErrAddressNACK) {
		p.known = false
		p.finish(err)
		return
	}
	if !p.held {
		// Away for what somebody else did before: it has the longest time that
		// one of the usual reasons takes.
		p.holdOff(now, max(p.Limits.PageChange, p.Limits.Volatile))
	}
	if p.asked >= p.limit { // a host that hears late asks once more
		p.known = false
		p.finish(fmt.Errorf("%w: %w", errHoldOff, err))
		return
	}
	p.Holdoffs++
	p.due = min(now+p.pause, p.limit)
	p.pause = min(2*p.pause, pollEvery)
}
