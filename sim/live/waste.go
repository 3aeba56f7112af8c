package live

import "time"

// waste adds up over time which healthy GPUs are in no full TP group.
type waste struct {
	groupNodes int // nodes of one full group
	nodes      int
	since      time.Duration
	real       float64 // node-seconds
	ideal      float64
	total      float64
}

// until accounts for the time up to now with so many healthy nodes and full
// groups. The ideal is a big switch over all healthy nodes that keeps no
// spares: what is left over when they are cut into whole groups ([IHBD] sec
// 6.2, Big-Switch). Keeping spares is this fabric's choice and counts as
// waste here.
func (w *waste) until(now time.Duration, healthy, groups int) {
	d := (now - w.since).Seconds()
	w.since = now
	w.total += d * float64(w.nodes)
	w.real += d * float64(healthy-groups*w.groupNodes)
	w.ideal += d * float64(healthy%w.groupNodes)
}

// ratios are the time means over all GPUs.
func (w *waste) ratios() (real, ideal float64) {
	if w.total == 0 {
		return 0, 0
	}
	return w.real / w.total, w.ideal / w.total
}
