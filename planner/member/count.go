package member

import "time"

// What is counted of devices, for people and their alarms. It decides nothing.

// signs are the periodic telemetry of one life of a device: one that stops
// sending it is silent, whatever the broker says of its presence.
type signs struct {
	last time.Duration
	gap  time.Duration // between the last two, 0: there was one at most
}

// silentAfter is how long at least a device says nothing to be silent; chosen:
// three rounds of telemetry and a half, of which one is 10 s where nobody
// configured another.
const silentAfter = 35 * time.Second

func (s *signs) beat(now time.Duration) {
	if *s != (signs{}) {
		s.gap = now - s.last
	}
	s.last = now
}

// quiet: telemetry came twice and has stopped. The time before since, when
// nobody could be heard, does not count.
func (s *signs) quiet(since, now time.Duration) bool {
	return s.gap > 0 && now-max(s.last, since) > max(silentAfter, s.gap*7/2)
}

// Counts are how many devices are in which state.
type Counts struct {
	States [Disputed + 1]int
	Silent int // did not answer a prepare, or are online and stopped sending telemetry
}

// Mute: somebody should speak for the device, and nothing comes.
func (t *Table) Mute(d *Device, linkSince time.Duration) bool {
	return d.state == Silent || t.j.LinkUp && d.Online() && d.signs.quiet(linkSince, t.j.Now)
}

// Count counts all devices.
func (t *Table) Count(linkSince time.Duration) (c Counts) {
	for i := range t.Devices {
		d := &t.Devices[i]
		c.States[d.state]++
		if t.Mute(d, linkSince) {
			c.Silent++
		}
	}
	return c
}
