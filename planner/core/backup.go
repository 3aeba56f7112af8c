package core

import "ringlight/planner/wiring"

// Ports that no job needs join pods for a backup ([LUMOS] Fig. 10). Its links
// have job 0; any job takes their ports.

// filled is what maps hold in the end: what is wanted, and where the core has
// a backup, its links in the ports that are left; what is new leads to itself. Those that are there stay
// where they can, unless links laid anew would join more pairs of pods. What
// did not come up, and a switch that cannot be told, is left alone.
func (c *interleaved) filled(groups []groupPlan) []crossMap {
	wanted, old, none := make([]wiring.Half, len(groups)), make([]wiring.Half, len(groups)), make([]wiring.Half, len(groups))
	var bare []crossMap
	for h := range groups {
		bare = append(bare, cloneMaps(groups[h].wanted)...)
		if !c.fab.Backup {
			continue
		}
		wanted[h] = c.halfOf(groups[h].wanted)
		old[h] = wiring.NewHalf(c.fab.Pods, c.layout.groupMaps())
		none[h] = wiring.NewHalf(c.fab.Pods, c.layout.groupMaps())
		for k := range c.layout.groupMaps() {
			d := c.from.maps[h*c.layout.groupMaps()+k]
			for i, j := range d.to {
				if j >= 0 && int32(i) != j && d.job[i] == 0 {
					old[h].Row(k)[i] = j
				}
			}
		}
	}
	c.from.out.loops(c.from.able, bare)
	if !c.fab.Backup {
		return bare
	}
	kept, fresh := c.fill(bare, wanted, old), c.fill(bare, wanted, none)
	if c.backupPairs(fresh) > c.backupPairs(kept) {
		return fresh
	}
	return kept
}

func (c *interleaved) fill(bare []crossMap, wanted, old []wiring.Half) []crossMap {
	full, err := wiring.FillIdle(wanted, old)
	if err != nil {
		panic("planner: invariant: halves of one size: " + err.Error())
	}
	out := cloneMaps(bare)
	for at := range out {
		if !c.from.able[at] {
			continue
		}
		for i, j := range full[c.layout.groupOf(at)].Row(at % c.layout.groupMaps()) {
			if j >= 0 && out[at].to[i] < 0 && !c.from.failed(c.layout.slots(at, int32(i), j)) {
				c.layout.put(out[at], int32(i), j, 0)
			}
		}
	}
	return out
}

// backupPairs counts the pairs of pods that a backup joins.
func (c *interleaved) backupPairs(maps []crossMap) int {
	joined := map[[2]int32]bool{}
	for _, d := range maps {
		for i, j := range d.to {
			if j >= 0 && d.job[i] == 0 {
				joined[[2]int32{min(int32(i), j), max(int32(i), j)}] = true
			}
		}
	}
	return len(joined)
}
