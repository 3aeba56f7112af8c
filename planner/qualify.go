package planner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// The bit errors of a fibre are counted while it is tried: both ends send a pattern and
// check the other's. Each lane is put to Wald's sequential test [Wald 1945] of a ratio p0,
// a tenth of what is allowed, against p1, what is allowed. After n bits and k errors, which
// are Poisson, the logarithm of the likelihood ratio is
//
//	L = k ln(p1/p0) - n (p1 - p0)
//
// and the lane is good at L <= ln b, bad at L >= ln(1/a). Whatever is looked at how often,
// a lane of p1 is called good with probability b at most, one of p0 bad with a at most.
// Without an error that is n = -ln(b) / (p1 - p0) bits: the known -ln(1-C)/BER, and a ninth
// more. A fibre has most lanes that must all be good, so a is shared among them.

const (
	perDecade = 2303 // thousandths of ln(p1/p0)
	// bitsRest is how long bits go over between two looks at the counts. chosen: a look
	// at eight modules behind a slow mux takes longer.
	bitsRest = 10 * time.Millisecond
	// bitsMost ends a count that comes to no result: the checkers stand.
	bitsMost = time.Minute
	// agedLaser is how much less light than at calibration is told. chosen: warmth and
	// drift may cost as much.
	agedLaser = 400
	// prefixQualified is of the store: the last Qualification of a fibre, by its name.
	prefixQualified = "qualified/"
)

// bounds of L in thousandths, for b = 1 - C and a = (1 - C) / 128.
func bounds(percent int) (good, bad int64) {
	if percent == 90 {
		return -2303, 7155
	}
	return -4605, 9457
}

// likelihood is L in thousandths, at so many errors in n bits against p1 in 1e-12.
func likelihood(errors, n uint64, p1 int) int64 {
	hi, lo := bits.Mul64(n, uint64(p1))
	expected, _ := bits.Div64(hi, lo, 1_000_000_000) // of p1, in thousandths
	return int64(min(errors, 1<<32))*perDecade - int64(expected/10*9)
}

// bitTest counts the bit errors of the fibres of a trial.
type bitTest struct {
	limit fabric.Qualify
	of    []counted // by fibre
	asked bool      // by an operator: what cannot be tried is told, and not held to be dark
}

// counted is what is known of a fibre's bits.
type counted struct {
	proto.Qualification
	done  bool
	skip  bool // it is not even lit
	never bool // an end has nothing that counts bits
	begun time.Duration
	ends  [2][]proto.ModuleBits
	lanes [2][]int // by end and module: lanes that receive too many errors
}

func newBitTest(f *fabric.Fabric, fibres []tried, asked bool) *bitTest {
	b := &bitTest{limit: f.Qualifies(), of: make([]counted, len(fibres)), asked: asked}
	for i := range fibres {
		x := &b.of[i]
		x.Fibre, x.Loss = hbd.FibreName(&fibres[i].Fibre), proto.NoPower
		if fibres[i].looks != [2]bool{} {
			x.not("one of its nodes carries a ring")
		}
	}
	return b
}

// not tells that nothing was found out of a fibre.
func (x *counted) not(why string) {
	if !x.done {
		x.done, x.Result, x.Text = true, proto.NotTried, proto.Clip(why)
	}
}

// wants: a fibre takes part in a phase.
func (b *bitTest) wants(t *trial, i int) bool {
	x := &b.of[i]
	if why := t.p.edits.engaged(&t.fibres[i].Fibre); t.phase == lighting && b.asked && why != "" {
		x.skip = true
		x.not("meanwhile " + why)
	}
	return t.phase == lighting && !x.skip || !x.done
}

// open: bits of fibres of the round are to be counted still.
func (b *bitTest) open(t *trial) bool {
	return slices.ContainsFunc(t.rounds[t.round], func(i int) bool { return t.lit[i] && t.dark[i] == nil && !b.of[i].done })
}

// refused takes that an end does not do what it was asked.
func (b *bitTest) refused(x lamp, end proto.NodeID, why string) {
	b.of[x.fibre].not(fmt.Sprintf("node %d: %s", end, why))
}

// answer takes an end's answer, and reports whether that is all there is to it.
func (b *bitTest) answer(t *trial, x lamp, m *proto.Ack) bool {
	f := &b.of[x.fibre]
	switch {
	case t.phase == ending:
		return false
	case t.phase == lighting:
		if !b.asked || m.Code == proto.OK || m.Code == proto.HardwareFailed {
			return false
		}
		f.skip = true
		b.refused(x, m.Node, m.Reason)
	case m.Code != proto.OK:
		f.never = f.never || m.Code == proto.Unsupported
		b.refused(x, m.Node, m.Reason)
	case t.phase == checking:
		f.begun, f.ends = t.p.j.Now, [2][]proto.ModuleBits{}
	case t.phase == counting && len(m.Bits) == 0:
		f.never = true
		b.refused(x, m.Node, "its agent counts no bits")
	case t.phase == counting:
		if f.ends[x.end] = m.Bits; f.ends[1-x.end] != nil {
			b.judge(t, x.fibre)
		}
	}
	return true
}

// judge looks whether a fibre's counts say enough.
func (b *bitTest) judge(t *trial, i int) {
	x, good, worst := &b.of[i], true, int64(-1<<62)
	least, most := bounds(b.limit.ConfidencePercent)
	bad := ""
	x.lanes = [2][]int{}
	for end := range x.ends {
		for m := range x.ends[end] {
			got, wrong := &x.ends[end][m], 0
			for lane := range min(len(got.Errors), len(got.Bits)) {
				l := likelihood(got.Errors[lane], got.Bits[lane], b.limit.ErrorsPer1e12)
				if l >= most {
					wrong++
				}
				if good = good && l <= least; l > worst {
					worst, x.Errors, x.Bits = l, got.Errors[lane], got.Bits[lane]
					bad = fmt.Sprintf("lane %d of module %d of node %d", lane, m, t.fibres[i].ends()[end].Node)
				}
			}
			x.lanes[end] = append(x.lanes[end], wrong)
		}
	}
	x.Micros = uint64((t.p.j.Now - x.begun).Microseconds())
	sure := fmt.Sprintf("%d errors in %d bits of %s", x.Errors, x.Bits, bad)
	if x.Errors == 0 {
		sure = fmt.Sprintf("no error in %d bits of any lane", x.Bits)
	}
	switch {
	case worst >= most:
		x.Result, x.Text = proto.Bad, sure
	case good:
		x.Result, x.Text = proto.Good, sure
	case t.p.j.Now >= x.begun+bitsMost:
		x.not("the checkers come to no result: " + sure)
		return
	default:
		x.ends = [2][]proto.ModuleBits{}
		return
	}
	x.done, x.Percent, x.Budget = true, uint8(b.limit.ConfidencePercent), proto.MilliDBm(b.limit.BudgetMDB)
	b.light(t, i)
	x.Text = proto.Clip(x.Text)
}

// light holds the light of a fibre against its budget, and says what the errors come from.
func (b *bitTest) light(t *trial, i int) {
	x, f := &b.of[i], &t.fibres[i]
	var over [2]uint8 // modules by direction, as seen from the receiver
	var where []string
	for end := range x.ends {
		for m := range min(len(x.ends[0]), len(x.ends[1])) {
			to, from := &x.ends[end][m], &x.ends[1-end][m]
			for _, got := range [2]proto.MilliDBm{to.Upper, to.Lower} {
				if got == proto.NoPower || from.Launched == proto.NoPower {
					continue
				}
				loss := from.Launched - got
				if x.Loss == proto.NoPower || loss > x.Loss {
					x.Loss = loss
				}
				if loss > x.Budget {
					over[end] |= 1 << m
				}
			}
			if to.Lost > agedLaser {
				why := "its lasers age"
				switch far, own := x.lanes[1-end][m], x.lanes[end][m]; {
				case far > 0 && far < len(to.Errors):
					why = proto.Count(far, "lane") + " of it, a dead laser or one that a cell leads astray"
				case own > 0 && own < len(to.Errors):
					why = "a cell leads it astray, as stray light into " + proto.Count(own, "lane") + " of its own receiver"
				}
				where = append(where, fmt.Sprintf("module %d of node %d launches %.1f dB less than at its calibration: %s", m, f.ends()[end].Node, float64(to.Lost)/1000, why))
			}
		}
	}
	all, any := uint8(1<<len(x.ends[0])-1), over[0]|over[1]
	switch {
	case any == 0:
	case any == all && len(x.ends[0]) > 1:
		where = append(where, "all modules lose it: the fibre is bent or damaged")
	case over[0]&over[1] != 0:
		where = append(where, fmt.Sprintf("module %d loses it both ways: a dirty connector at one end", bits.TrailingZeros8(over[0]&over[1])))
	default:
		where = append(where, fmt.Sprintf("module %d loses it one way: a dirty or damaged facet", bits.TrailingZeros8(any)))
	}
	if any != 0 {
		x.Text += fmt.Sprintf("; loss %.1f dB of %.1f", float64(x.Loss)/1000, float64(x.Budget)/1000)
		x.Result = proto.Bad
	} else if x.Result == proto.Bad && len(where) == 0 {
		if where = append(where, "its light is within the budget: stray light of its own matrix, or a noisy receiver"); 3*x.Errors > x.Bits {
			where[0] = "what arrives is not what the other end sends: light of another fibre, or of a simulated board in another process, which carries no bits"
		}
	}
	if x.Result == proto.Bad {
		x.Text += "; " + strings.Join(where, "; ")
	}
}

// qualification is a count that an operator asked for.
type qualification struct {
	names []string // of all fibres, in their order
	trial *trial   // nil: it has not begun
	tried []tried
}

// qualify begins to count the bit errors of fibres, or tells what the last count came to.
func (e *edits) qualify(q *proto.OpRequest, r *proto.OpReply) {
	busy := ""
	switch {
	case q.DryRun:
		e.qualifiedPage(q, r)
		return
	case e.p.state != serving:
		busy = "the planner is " + e.p.state.String()
	case e.bits != nil:
		busy = "bits are being counted"
	case e.now != nil:
		busy = "an edit of " + e.now.author + " is under way"
	}
	if busy != "" {
		r.Refuse(&proto.Error{Code: proto.Busy, Limit: "one count at a time", Reason: busy})
		return
	}
	run := &qualification{}
	fibres := map[string]*fabric.Fibre{}
	all := e.p.Fabric.AllFibres()
	for i := range all {
		name := hbd.FibreName(&all[i])
		fibres[name] = &all[i]
		run.names = append(run.names, name)
	}
	for i, name := range q.Names {
		if fibres[name] == nil {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: fmt.Sprintf("fibre[%d]", i), Limit: "one of ocsctl link list", Reason: fmt.Sprintf("fibre %q is not in the description", proto.Clip(name))})
			return
		}
	}
	if len(q.Names) > 0 {
		run.names = slices.Compact(slices.Sorted(slices.Values(q.Names)))
	}
	e.qualified = map[string]*proto.Qualification{}
	for _, name := range run.names {
		f := fibres[name]
		if why := e.engaged(f); why != "" {
			e.qualified[name] = &proto.Qualification{Fibre: name, Result: proto.NotTried, Loss: proto.NoPower, Text: proto.Clip(why)}
		} else {
			run.tried = append(run.tried, tried{Fibre: *f})
		}
	}
	e.counted, e.bits = run.names, run
}

// engaged is why a fibre is not to be lit, "" where it may be.
func (e *edits) engaged(f *fabric.Fibre) string {
	return cmp.Or(e.p.Rings.Placed.Engaged(f.A.Node), e.p.Rings.Placed.Engaged(f.B.Node))
}

// qualifiedPage tells what the last count came to.
func (e *edits) qualifiedPage(q *proto.OpRequest, r *proto.OpReply) {
	r.Running = e.bits != nil
	for i := min(q.Page, uint64(len(e.counted))); i < uint64(len(e.counted)); i++ {
		if len(r.Bits) == proto.MaxPage {
			r.Next = i
			return
		}
		if x := e.qualified[e.counted[i]]; x != nil {
			r.Bits = append(r.Bits, *x)
		}
	}
}

// count moves an operator's count on.
func (e *edits) count() {
	run := e.bits
	if run.trial == nil {
		run.trial = e.trial(run.tried, newBitTest(e.p.Fabric, run.tried, true))
	}
	t := run.trial
	if e.p.state != serving {
		for i := range t.bits.of {
			t.bits.of[i].not("the planner went out of service meanwhile")
		}
		t.round = len(t.rounds)
	}
	if t.step(); !t.done() {
		return
	}
	e.bits = nil
	for i := range t.fibres {
		x := &t.bits.of[i]
		if why := t.why(i); why != "" {
			x.Result, x.Text, x.Percent = proto.Bad, why, 0
		}
		e.found(&t.fibres[i].Fibre, x)
	}
}

// found keeps what came of a fibre, and tells both of its nodes.
func (e *edits) found(f *fabric.Fibre, x *counted) {
	x.AtMillis = e.p.j.Wall
	e.qualified[x.Fibre] = &x.Qualification
	if x.Result != proto.NotTried {
		e.last[x.Fibre] = &x.Qualification
		e.p.j.Persist(journal.Encode(prefixQualified+x.Fibre, &x.Qualification))
	}
	level := Info
	if x.Result == proto.Bad {
		level = Warn
	}
	for _, at := range [2]proto.NodeID{f.A.Node, f.B.Node} {
		e.p.j.Note(level, "bit errors counted", journal.Note{Rule: "qualify", Node: int64(at), Cause: proto.CauseOperator, Text: "fibre " + x.Fibre + " is " + strings.ReplaceAll(x.Result.String(), "_", " ") + ": " + x.Text})
	}
}

// restoreQualified takes what a former planner found out of a fibre.
func (e *edits) restoreQualified(raw []byte) error {
	x := new(proto.Qualification)
	if err := json.Unmarshal(raw, x); err != nil {
		return err
	}
	e.last[x.Fibre] = x
	return nil
}

// keepQualified forgets what was found out of fibres that another description has not, or
// elsewhere, and gives what the store forgets of them.
func (e *edits) keepQualified(to *fabric.Fabric) (records []Record) {
	keep := map[string]bool{}
	for _, f := range to.AllFibres() {
		keep[hbd.FibreName(&f)] = true
	}
	for _, f := range to.NewFibres(e.p.Fabric) {
		delete(keep, hbd.FibreName(&f))
	}
	for _, name := range slices.Sorted(maps.Keys(e.last)) {
		if !keep[name] {
			delete(e.last, name)
			records = append(records, Record{Key: prefixQualified + name})
		}
	}
	return records
}

// links adds to what is said of fibres what their last count came to.
func (e *edits) links(r *proto.OpReply) {
	for i := range r.Links {
		r.Links[i].Qualified = e.last[r.Links[i].Fibre]
	}
}
