package sim

// MirrorAngle is the true deflection of a mirror in microradian.
func (w *World) MirrorAngle(id BoardID, side, port int) (x, y int32) {
	mi := &w.mirrors(id).arrays[side][port]
	px, _ := mi.axes[0].at(int64(w.now))
	py, _ := mi.axes[1].at(int64(w.now))
	return int32(px * 1e6), int32(py * 1e6)
}
