package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// The top bits of an op's token name the bundle, from 1; the rest is the
// optics' own.
const (
	tokenShift = 56
	tokenMask  = 1<<tokenShift - 1
)

// keptSwitches is how many of a bundle's last switches stay known for
// ledgers. chosen: the first switch of a search is told at its end, and a
// search makes some ten of all bundles together.
const keptSwitches = 8

// laserSkew is W, the time between the first and the last laser of a node
// that dies. It is a duty of the board's power design and cannot be measured
// by the node itself. docs/board.md.
const laserSkew = 500 * time.Microsecond

// bundle is what the agent knows of one bundle. What every turn of the agent reads
// stands together, in front.
type bundle struct {
	optics  *ocs.Transceiver
	done    []*hal.Completion
	next    time.Duration
	retry   time.Duration // when a bundle whose bus or chips failed is read again
	stopAt  time.Duration // when patterns that are to stop are told again; Never: none are
	failure error         // a Select that was refused, for the machine's next turn
	dump    uint64        // ID of the question that wants a module's memory, 0: none
	due     bool          // wants a turn now
	refused proto.Path    // that of failure
	lit     uint8
	read    bool // the optics have read the hardware, well or not
	alarmed bool // that they could not was told
	ready   bool // as the machine knows it

	remedy     bool       // failed optics are being tried again
	remedyPath proto.Path // that they are tried on
	held       proto.Held // as the last health round had it
	unproven   bool       // that was reported
	doubted    bool       // an alarm says so
	pattern    bool       // its modules may make bit patterns
	weak       uint8      // bit p: path p has a signal degrade

	silent   string               // why it is Faulted, as the machine knows it
	losses   [proto.NumPaths]loss // last, by path
	switches [keptSwitches]switching
	newest   int
	settled  time.Duration // last Switched

	calibration *ocs.Calibration // that digest names
	digest      proto.Digest
}

// loss is the end of light on one path.
type loss struct {
	heard  time.Duration // when it was delivered
	noted  time.Duration // when the host noted its edge
	origin time.Duration // when the light went, 0: not known
}

// switching is one switch of a bundle.
type switching struct {
	asked  time.Duration // Select
	onBus  time.Duration // the write that moves the light began
	wrote  time.Duration // it ended
	filled bool
}

func (b *bundle) record() BundleRecord {
	return BundleRecord{Path: b.optics.Status().Path, Lit: b.lit, Pattern: b.pattern}
}

func (o *nodeOptics) open(now time.Duration) {
	for i := range o.bundles {
		b := &o.bundles[i]
		b.optics.Start(now)
		for p := range proto.NumPaths {
			b.optics.Light(now, now, proto.Path(p), b.lit&(1<<p) != 0)
		}
		b.due = true
	}
}

// edge takes the filtered light of one path, and says what the machine is to hear of it.
func (o *nodeOptics) edge(now time.Duration, e *hal.Edge, use lineUse) (_ node.Event, told bool) {
	b := &o.bundles[use.bundle]
	bit := uint8(1) << use.path
	if e.High == (b.lit&bit != 0) {
		return node.Event{}, false // told twice
	}
	b.lit ^= bit
	if !e.High {
		b.losses[use.path] = loss{heard: now, noted: min(e.At, now), origin: e.Origin}
	}
	if !o.agent.started {
		return node.Event{}, false
	}
	b.optics.Light(now, e.At, use.path, e.High)
	b.due = true
	if e.High {
		o.manual.shone(now, proto.BundleID(use.bundle), use.path)
	}
	o.agent.persist.saveLight()
	o.agent.report(now)
	return node.Event{Kind: node.Light, Bundle: proto.BundleID(use.bundle), Path: use.path, Lit: e.High, Noted: e.At}, o.agent.adopted
}

// drive turns a bundle to a path: at once, as protection does, since what it leaves has
// no light, or break before make, as what is planned may wait for.
func (o *nodeOptics) drive(now time.Duration, id proto.BundleID, p proto.Path, atOnce bool) {
	b := &o.bundles[id]
	sel := b.optics.Select
	if atOnce {
		sel = b.optics.SelectAtOnce
	}
	b.newest = (b.newest + 1) % keptSwitches
	b.switches[b.newest] = switching{asked: now}
	b.due = true
	o.agent.persist.saveLight()
	if err := sel(now, p); err != nil {
		b.failure, b.refused = err, p
	}
}

// refusedSelect tells the machine of a Select that the optics did not take.
// Not from within the machine's own actions: it is asked again.
func (o *nodeOptics) refusedSelect(now time.Duration, i int) {
	b := &o.bundles[i]
	err := b.failure
	b.failure = nil
	o.agent.step(now, node.Event{Kind: node.PathFailed, Bundle: proto.BundleID(i), Path: b.refused,
		Module: ocs.None, Lane: ocs.None, Text: proto.Clip(err.Error())})
}

// optical passes on what the optics of bundle i found.
func (o *nodeOptics) optical(now time.Duration, i int, ev *ocs.Event) {
	b := &o.bundles[i]
	id := proto.BundleID(i)
	o.agent.report(now)
	o.agent.persist.saveLight()
	if ev.Kind == ocs.Switched {
		s := &b.switches[b.newest]
		if s.asked > 0 && !s.filled {
			o.agent.pm.took(now, uint32(i), ev.Path, proto.SwitchTime, now-s.asked)
		}
		s.onBus, s.wrote, s.filled = ev.BusStart, ev.BusEnd, true
		b.settled = now
	}
	if o.manual.progress(now, i, ev) {
		return
	}
	switch ev.Kind {
	case ocs.Ready:
		b.read = true
		o.faulted(now, i, ev)
		o.setReady(now, i, ev.Err)
		o.remedied(now, id, ev)
	case ocs.Switched:
		if o.agent.adopted {
			o.agent.step(now, node.Event{Kind: node.Switched, Bundle: id, Path: ev.Path})
		}
	case ocs.PathFailed:
		o.remedied(now, id, ev)
		if o.agent.adopted {
			o.agent.step(now, node.Event{Kind: node.PathFailed, Bundle: id, Path: ev.Path, Module: ev.Module, Lane: ev.Lane, Text: proto.Clip(text(ev))})
			switch { // what is looked at until it is over: no try tells anything before
			case hal.Silent(ev.Err): // what has lost its supply says so, and does not know it
				b.retry = now + restartAfter
				o.setReady(now, i, ev.Err)
			case errors.Is(ev.Err, ocs.ErrTooHot):
				b.retry = now + coolsWithin
				o.setReady(now, i, fmt.Errorf("%w: %s", ev.Err, ev.Text))
			}
		} else {
			o.agent.log(2, named(i, text(ev)))
		}
	case ocs.Cooled:
		b.retry = Never
		o.setReady(now, i, b.optics.Status().Err)
	case ocs.Adopted:
		// The file is lost or of another module: keep what the EEPROMs say.
		o.agent.put(Output{Kind: OutCalibrate, Bundle: id, Calibration: b.optics.Status().Calibration})
		o.agent.log(1, named(i, text(ev)))
	case ocs.Verified:
		o.degrade(now, id, ev)
		o.remedied(now, id, ev)
	case ocs.Degraded:
		o.degrade(now, id, ev)
		o.agent.note(now, proto.Event{Kind: proto.EvAlarm, Severity: proto.SeverityWarning, AtMicros: micros(now), Bundle: id, Path: ev.Path,
			Cause: proto.CauseOwnFault, Measured: ev.Measured, Expected: ev.Expected, Module: unit(ev.Module), Lane: unit(ev.Lane),
			Text: proto.Clip(text(ev))})
		o.remedied(now, id, ev)
	}
}

// text is an event in words. The error and the text of one say the same more
// often than not.
func text(ev *ocs.Event) string {
	switch {
	case ev.Err == nil && ev.Text == "":
		return ev.Kind.String()
	case ev.Err == nil || strings.Contains(ev.Text, ev.Err.Error()):
		return ev.Text
	case ev.Text == "" || strings.Contains(ev.Err.Error(), ev.Text):
		return ev.Err.Error()
	}
	return ev.Text + ": " + ev.Err.Error()
}

// named is a text that says which bundle it is about.
func named(i int, text string) string {
	if prefix := "bundle " + itoa(i); !strings.HasPrefix(text, prefix) {
		return prefix + ": " + text
	}
	return text
}

// unit is a module or lane on the wire, where 0 stands for the first and for
// none alike: the text tells them apart.
func unit(n uint8) uint8 {
	if n == ocs.None {
		return 0
	}
	return n
}

// restartAfter is when a bundle that failed for its bus or chips is read
// again. chosen: nobody waits longer for a supply that is back, and reading takes
// some milliseconds of a bus that others use.
const restartAfter = time.Second

// coolsWithin is how often a module that is too warm is read again. chosen: a case cools
// in minutes, and its node is out until it is known to have.
const coolsWithin = 5 * time.Second

// faulted tells that the bus or the chips of a bundle fail, or work again, and
// makes sure that it is tried again.
func (o *nodeOptics) faulted(now time.Duration, i int, ev *ocs.Event) {
	b := &o.bundles[i]
	bad := b.optics.Status().Machine == ocs.Faulted
	b.retry = Never
	if bad {
		b.retry = now + restartAfter
	}
	if bad == b.alarmed {
		return
	}
	b.alarmed = bad
	x := Alarm{Bundle: proto.BundleID(i), Path: ev.Path, Module: unit(ev.Module), Text: text(ev), Resolved: !bad}
	if !bad {
		x.Text = "bus and chips answer again"
	}
	o.agent.alarm(now, x)
}

// setReady tells the machine whether a bundle can switch, when that changed.
func (o *nodeOptics) setReady(now time.Duration, i int, why error) {
	b := &o.bundles[i]
	s := b.optics.Status()
	silent := ""
	switch {
	case s.Machine == ocs.Faulted || hal.Silent(why) || why == errUnread:
		silent = proto.Clip("its bus or chips do not answer: " + reason(why))
	case errors.Is(why, ocs.ErrTooHot):
		silent = proto.Clip(reason(why))
	}
	ready := why == nil
	if !o.agent.adopted || b.ready == ready && b.silent == silent {
		b.ready = ready
		return
	}
	b.ready, b.silent = ready, silent
	kind := node.Unready
	if ready {
		kind = node.Ready
	} else {
		o.agent.log(1, "bundle "+itoa(i)+" is not ready: "+reason(why))
	}
	o.agent.step(now, node.Event{Kind: kind, Bundle: proto.BundleID(i), Path: s.Path, Text: silent})
}

// errUnread is the fault of a bundle whose optics have not reported yet.
var errUnread = errors.New("hardware not read")

// tryAdopt takes the hardware as it was found, once every bundle has been
// read, or cannot be, or has had its time. Of one that says nothing the journal says
// where it was; it is taken as it is found when it has been read.
func (o *nodeOptics) tryAdopt(now time.Duration) {
	if now < o.agent.adoptBy {
		for i := range o.bundles {
			if !o.bundles[i].read {
				return
			}
		}
	}
	lits := make([]node.BundleLight, len(o.bundles))
	dark := true
	for i := range o.bundles {
		b := &o.bundles[i]
		s := b.optics.Status()
		b.ready = s.Ready
		lits[i] = node.BundleLight{Bundle: proto.BundleID(i), Path: s.Path, Lit: b.lit, Ready: s.Ready, Unread: !b.read}
		dark = dark && b.read && s.Path == proto.Dark
		if b.read && !s.Ready && s.Machine != ocs.Faulted {
			o.agent.log(1, "bundle "+itoa(i)+" is not ready: "+reason(s.Err))
		}
	}
	o.compareLight(now)
	o.agent.adopt(now, node.Event{Lits: lits}, dark)
	for i := range o.bundles {
		if s := o.bundles[i].optics.Status(); s.Machine == ocs.Faulted {
			o.setReady(now, i, s.Err)
		} else if !o.bundles[i].read {
			o.setReady(now, i, errUnread)
		}
	}
	o.manual.stopPatterns(now)
	o.health.start(o, now)
}

func reason(err error) string {
	if err == nil {
		return errUnread.Error()
	}
	return err.Error()
}

// compareLight tells each path whose light is not what the last life left;
// paths that a bundle is set to are the machine's to compare.
func (o *nodeOptics) compareLight(now time.Duration) {
	for i, was := range o.agent.journal.Light {
		if i >= len(o.bundles) {
			return
		}
		for p := proto.Loopback; int(p) < proto.NumPaths; p++ {
			bit := uint8(1) << p
			if lit := o.bundles[i].lit & bit; lit != was.Lit&bit {
				o.agent.note(now, own(now, proto.Event{Kind: proto.EvAdopted, Bundle: proto.BundleID(i), Path: p, FromPath: p,
					Cause: proto.CauseAdopted, Resolved: lit != 0, Text: "light changed while the agent was away"}))
			}
		}
	}
}
