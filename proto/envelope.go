package proto

// Limits of the envelopes that rings are built with. chosen: the largest of
// several is one of theirs, so that the timers of a ring of such members are
// within the two seconds that a node accepts whoever they are, and who is
// beyond a limit is known by its own envelope. A search takes two detections, a
// switch and the skew.
const (
	MaxRingMicros      = 400_000
	MinSwitchMaxMicros = 10 // no element switches faster; catches milliseconds sent as microseconds
)

// Usable says why no ring can be built with a measured envelope, or nil. A
// lower bound of 0 is what nobody has measured.
func (e *Envelope) Usable() *Error {
	var r rules
	r.within("detect_max_micros", 1, MaxRingMicros, uint64(e.DetectMaxMicros))
	r.within("detect_min_micros", 1, uint64(e.DetectMaxMicros), uint64(e.DetectMinMicros))
	r.within("switch_max_micros", MinSwitchMaxMicros, MaxRingMicros, uint64(e.SwitchMaxMicros))
	r.within("switch_min_micros", 1, uint64(e.SwitchMaxMicros), uint64(e.SwitchMinMicros))
	r.within("skew_micros", 0, MaxRingMicros, uint64(e.SkewMicros))
	return r.err
}
