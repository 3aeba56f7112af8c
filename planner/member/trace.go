package member

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// course is how one generation came into force, on the planner's clock. It is
// kept for people; nothing is decided by it.
type course struct {
	Gen     proto.Generation
	Text    string
	asked   time.Duration // something changed that it answers
	began   time.Duration
	decided time.Duration
	stored  time.Duration
	marks   []proto.TraceMark // of devices, as they came
}

// What is kept. chosen: a person asks about what has just happened; a course of
// a fabric of 10,000 nodes is some 2 MB.
const (
	maxCourses  = 64
	maxMarks    = 100_000 // of all courses together
	maxSwitched = 256     // ledgers
	// before is how long before the cause of a generation a switch may lie that
	// belongs to it. chosen: events wait for a disk and a broker.
	before = time.Second
)

// Courses are the last generations of a table, the newest last, and the switches
// that its devices told of.
type Courses struct {
	kept     []*course
	marks    int
	switched []proto.TraceMark
}

// begin opens the course of a generation that is prepared now.
func (c *Courses) begin(gen proto.Generation, text string, asked, now time.Duration) *course {
	x := &course{Gen: gen, Text: proto.Clip(text), asked: min(asked, now), began: now}
	c.kept = append(c.kept, x)
	for len(c.kept) > 1 && (len(c.kept) > maxCourses || c.marks > maxMarks) {
		c.marks -= len(c.kept[0].marks)
		c.kept[0] = nil
		c.kept = c.kept[1:]
	}
	return x
}

func (c *Courses) find(gen proto.Generation) *course {
	if at := slices.IndexFunc(c.kept, func(x *course) bool { return x.Gen == gen }); at >= 0 {
		return c.kept[at]
	}
	return nil
}

// mark notes a moment of a device in a generation, if that is still kept.
func (c *Courses) mark(gen proto.Generation, d *Device, stage proto.TraceStage, at time.Duration) {
	if x := c.find(gen); x != nil {
		c.marks++
		x.marks = append(x.marks, proto.TraceMark{Stage: stage, AtMicros: micros(at), Node: &d.ID})
	}
}

func micros(t time.Duration) uint64 { return uint64(max(0, t).Microseconds()) }

// told notes what a report says of a generation's course.
func (c *Courses) told(d *Device, pending bool, now time.Duration) {
	// A moment of a device's clock is put on the planner's: the quickest of its
	// reports has the least of the way in it.
	if x := now - d.Report.Uptime(); !d.timed || x < d.offset {
		d.timed, d.offset = true, x
	}
	if pending && !d.Pending() {
		c.mark(d.Want.Gen, d, proto.TraceConfirmed, now)
	}
}

// age is how long ago an event happened; 0: the device's clock is not known.
func (d *Device) age(m *proto.Event, now time.Duration) time.Duration {
	if !d.timed || m.Session != d.ReportOf() {
		return 0
	}
	return max(0, now-d.offset-time.Duration(m.AtMicros)*time.Microsecond)
}

// event notes what an event says of a generation's course.
func (c *Courses) event(d *Device, m *proto.Event, now time.Duration) {
	if !d.timed || m.Session != d.ReportOf() {
		return // its clock is not known
	}
	at := now - d.age(m, now)
	switch {
	case m.Kind == proto.EvApplied:
		c.mark(m.Generation, d, proto.TraceApplied, at)
	case m.Kind == proto.EvSwitched && m.Ledger != nil:
		l := *m.Ledger
		if len(c.switched) == maxSwitched {
			c.switched = c.switched[1:]
		}
		c.switched = append(c.switched, proto.TraceMark{Stage: proto.TraceSwitched, AtMicros: micros(at), Node: &d.ID, Ledger: &l, Peer: m.Peer, Side: m.Side})
	}
}

// Trace answers how a generation came into force, a page of marks from q.Page on.
func (c *Courses) Trace(q *proto.OpRequest, r *proto.OpReply) {
	x := c.find(q.Generation)
	if x == nil {
		limit := "none was given out since the planner's start"
		if n := len(c.kept); n > 0 {
			limit = fmt.Sprintf("one of the last %d, %d to %d", n, c.kept[0].Gen, c.kept[n-1].Gen)
		}
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "generation", Limit: limit, Reason: "its course is not kept"})
		return
	}
	all := []proto.TraceMark{{Stage: proto.TraceAsked, AtMicros: micros(x.asked), Text: x.Text}, {Stage: proto.TracePrepare, AtMicros: micros(x.began)}}
	if x.decided > 0 {
		all = append(all, proto.TraceMark{Stage: proto.TraceDecided, AtMicros: micros(x.decided)})
	}
	end := x.began
	if x.stored > 0 {
		all = append(all, proto.TraceMark{Stage: proto.TraceStored, AtMicros: micros(x.stored)})
		end = x.stored
	}
	all = append(all, x.marks...)
	for _, m := range x.marks {
		end = max(end, time.Duration(m.AtMicros)*time.Microsecond)
	}
	for _, m := range c.switched {
		if m.AtMicros >= micros(x.asked-before) && m.AtMicros <= micros(end) {
			all = append(all, m)
		}
	}
	all = all[min(q.Page, uint64(len(all))):]
	if len(all) > proto.MaxPage {
		all, r.Next = all[:proto.MaxPage], q.Page+proto.MaxPage
	}
	r.Trace = all
}
