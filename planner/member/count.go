package member

import (
	"time"

	"ringlight/planner/journal"
)

// What is counted of devices, for people and their alarms. It decides nothing.

// signs are the periodic telemetry of one life of a device: one that stops
// sending it is silent, whatever the broker says of its presence.
type signs struct {
	last time.Duration
	gap  time.Duration // between the last two, 0: there was one at most
	seq  uint64        // number of the last one
}

// silentAfter is how long at least a device says nothing to be silent; chosen:
// three rounds of telemetry and a half, of which one is 10 s where nobody
// configured another.
const silentAfter = 35 * time.Second

// beat takes one. A broker may hand the same one over twice, which says nothing of the
// time between two.
func (s *signs) beat(seq uint64, now time.Duration) {
	switch {
	case *s == (signs{}):
	case seq <= s.seq:
		return
	default:
		s.gap = now - s.last
	}
	s.last, s.seq = now, seq
}

// Telemetry is when it last came, and how long after the one before, 0: there was one
// at most.
func (d *Device) Telemetry() (at, gap time.Duration) { return d.signs.last, d.signs.gap }

// quiet: telemetry came twice and has stopped. The time before since, when
// nobody could be heard, does not count.
func (s *signs) quiet(since, now time.Duration) bool {
	return s.gap > 0 && now-max(s.last, since) > max(silentAfter, s.gap*7/2)
}

// Counts are how many devices are in which state.
type Counts struct {
	States [Disputed + 1]int
	Silent int // nobody speaks for them, or not any more
}

// Mute: somebody should speak for the device, and nothing comes. Who answers when it is
// asked is there, however seldom its telemetry comes.
func (t *Table) Mute(d *Device, linkSince time.Duration) bool {
	return d.state == Silent || t.j.LinkUp && d.Online() && d.signs.quiet(max(linkSince, d.ReportAt), t.j.Now)
}

// Hush leaves out whose telemetry has stopped though the broker has it online: its agent
// hangs, or its key counts no more. It is asked until it speaks.
func (t *Table) Hush(linkSince time.Duration) {
	for i := range t.Devices {
		if d := &t.Devices[i]; d.state == Present && t.Mute(d, linkSince) {
			hush(t, d)
		}
	}
}

// Revoked leaves out a device whose key counts no more, until it speaks with another.
func (t *Table) Revoked(d *Device) {
	if d.state == Present {
		hush(t, d)
	}
}

func hush(t *Table, d *Device) {
	before := d.Standing()
	d.become(Silent)
	x := d.own()
	x.hushed, x.silentUntil = true, journal.Never
	t.ask(d, d.Session, askFirst, always)
	t.j.Note(journal.Warn, "a device says nothing any more", journal.Note{Rule: "silent", Node: int64(d.ID), Ring: d.ring(), Text: "the broker has it online; it is asked until it speaks"})
	t.owner.News(News{Kind: Weighed, Device: d, Before: before})
}

// Count counts all devices.
func (t *Table) Count(linkSince time.Duration) (c Counts) {
	for i := range t.Devices {
		d := &t.Devices[i]
		c.States[d.state]++
		if !d.Answers() || t.Mute(d, linkSince) {
			c.Silent++
		}
	}
	return c
}
