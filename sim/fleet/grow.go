package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// A core grows and shrinks between two lists of jobs: an entry of Config.Jobs that
// begins so is an edit of it, see parseChange.
const coreEdit = "edit "

// streamGrowth is the stream of who dies while a core is edited, beside those of
// station.go.
const streamGrowth = 68

// Unit is what a core has more of when it grows, how many, and servers of each.
func Unit(k *fabric.Core) (name string, count, servers int) {
	switch {
	case k.Direct != nil:
		return "servers", k.Direct.Servers, 1
	case k.LeafSpine != nil:
		return "leaves", k.Leaves(), k.LeafServers()
	}
	return "pods", k.Pods, k.LeavesPerPod * k.ServersPerLeaf
}

// growth is the edit that gives a core n pods, leaves or servers. The number of spines
// grows in proportion to leaves, where that is a whole number.
func growth(k *fabric.Core, n int) string {
	unit, count, _ := Unit(k)
	text := fmt.Sprintf("%s=%d", unit, n)
	if l := k.LeafSpine; l != nil && l.Switches > 0 && n*l.Spines%count == 0 {
		text += fmt.Sprintf(" spines=%d", n*l.Spines/count)
	}
	return text
}

// Grown is a core with so many pods, leaves or servers.
func Grown(k *fabric.Core, n int) *fabric.Core {
	x, err := parseChange(growth(k, n))
	if err != nil {
		panic("fleet: invariant: an edit of ours is one: " + err.Error())
	}
	return x.core(k)
}

// Growing are job lists for a core between which it comes to have other sizes, with jobs
// for three quarters of its servers, before and after each edit.
func Growing(k *fabric.Core, seed uint64, lists int, grow []int, ahead bool, mix ...proto.Collective) (out []string) {
	_, count, servers := Unit(k)
	sizes := append([]int{count}, grow...)
	at := func(list int) int { return list * len(sizes) / lists }
	room := func(list int) int {
		n := sizes[at(list)]
		if list+1 < lists {
			n = min(n, sizes[at(list+1)])
		}
		return n * servers * 3 / 4
	}
	var drawn []string
	switch {
	case k.Direct != nil:
		drawn = directLists(k, seed, lists, room, ahead)
	case k.LeafSpine != nil:
		drawn = aloneLists(Grown(k, slices.Min(sizes)), seed, lists, room) // all of them have room for these
	default:
		drawn = jobLists(k, seed, lists, room, mix)
	}
	for n, list := range drawn {
		if n > 0 && at(n) != at(n-1) {
			out = append(out, coreEdit+growth(k, sizes[at(n)]))
		}
		out = append(out, list)
	}
	return out
}

// grows has an operator edit the core, while the planner or an agent dies. Jobs that an
// edit is refused for are drained off the leaves that go, and those that find no other
// place end.
func (c *circuits) grows(text string) error {
	r, draw := c.r, random{seed: detmath.Hash(c.r.cfg.Seed, streamGrowth, uint64(c.r.atCore.Grown))}
	before := r.planners[0].host.Planner().Circuits.Parts()
	for try := range 3 {
		c.still = true
		if len(r.cfg.Faults) > 0 {
			r.inject.later(Fault{Verb: PlannerKill, For: draw.between(time.Second, 8*time.Second)}, draw.between(0, 60*time.Millisecond))
			r.inject.later(Fault{Verb: AgentCrash, Node: proto.FirstSwitch + proto.NodeID(draw.below(len(r.switches))), For: draw.between(10*time.Millisecond, 5*time.Second)}, draw.between(0, 200*time.Millisecond))
		}
		if err := r.edits.edit(&Fault{Verb: FabricEdit, Edit: text}); err != nil {
			return err
		}
		if err := r.until(coreEdit+text, time.Second, listWithin, func() bool { return r.edits.now == nil && r.coreStands() }); err != nil {
			return err
		}
		d := r.edits.done[len(r.edits.done)-1]
		switch {
		case d.GaveUp:
			continue
		case d.Done:
			r.atCore.Grown++
			for _, key := range r.planners[0].host.Planner().Circuits.Parts() {
				if m := r.cfg.mutant; !slices.Contains(before, key) && (m == nil || m.dead == nil) {
					c.violate(0, "what is new is proven", fmt.Sprintf("%s is out after %q", key, text))
				}
			}
			return nil
		}
		c.still = false
		r.atCore.Refused++
		if err := c.makeWay(text, d.Refused, try); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %q is refused: %v (seed %d; again: %s)", errNotStanding, text, r.edits.done[len(r.edits.done)-1].Refused, r.cfg.Seed, r.cfg.Replay)
}

// makeWay does what a refused edit says: takes what goes out, and where jobs
// find no other place, has them end.
func (c *circuits) makeWay(text string, refused []string, try int) error {
	if try == 0 {
		x, err := parseChange(text)
		if err != nil {
			return err
		}
		unit, count, _ := Unit(c.core)
		for n := x.params[unit]; n < count; n++ {
			if err := c.fails(partOut, map[string]string{"pods": "pod", "leaves": "leaf"}[unit]+fmt.Sprint(n)); err != nil {
				return err
			}
		}
	} else {
		words := strings.Fields(c.r.inject.listed)
		stay := slices.DeleteFunc(slices.Clone(words), func(word string) bool {
			id, _, _ := strings.Cut(word, ":")
			return slices.ContainsFunc(refused, func(text string) bool { return strings.HasPrefix(text, "job "+id+" ") })
		})
		c.r.atCore.GaveWay += len(words) - len(stay)
		c.r.inject.operate(&Fault{Verb: JobsApply, Jobs: cmp.Or(strings.Join(stay, " "), noJobs)})
	}
	if err := c.r.runTo(c.r.now + time.Second); err != nil {
		return err
	}
	return c.r.until("room to "+text, coreEvery, listWithin, c.r.coreStands)
}
