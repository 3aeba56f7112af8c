package core

import (
	"cmp"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// evidence is what switches are to carry, what light says of it, and what is out by that.
type evidence struct {
	j      *journal.Journal
	agenda *agenda
	jobs   *jobList
	fab    *fabric.Core
	layout layout

	switches []switchView
	maps     []crossMap // as committed
	out      out
	bad      map[slot]proto.Session    // did not come up, and not when told again, in this life of the switch
	tried    map[slot]proto.Generation // failed with this one, and told again
	dim      map[string]time.Duration  // leaves and spines from which no light comes, and since when
	lapses   uint64                    // how often what is out, or did not come up, was otherwise
	dark     uint32                    // microseconds, the longest that a switch reported
}

// fit gives it the switches of a core: those that were there as they are, with bare maps.
func (e *evidence) fit(fab *fabric.Core, t *member.Table, why map[string]string) {
	e.fab, e.layout, e.out = fab, layout{fab}, newOut(fab, why)
	was := e.switches
	e.switches = make([]switchView, fab.Switches())
	copy(e.switches, was)
	for s := range e.switches {
		e.switches[s].Device = &t.Devices[s]
		e.switches[s].Group = fab.GroupID(s / fab.GroupSwitches())
	}
	e.maps = make([]crossMap, fab.Groups()*e.layout.groupMaps())
	for at := range e.maps {
		e.maps[at] = e.layout.bare(at)
	}
}

// standing is where the circuits stand.
func (e *evidence) standing() standing {
	from := standing{known: e.jobs, maps: e.maps, bad: e.bad, dark: e.dark, out: e.out, nowMS: int64(e.j.Wall)}
	for at := range e.maps {
		from.able = append(from.able, !slices.ContainsFunc(e.layout.switchesOf(at), func(s int) bool { return !e.switches[s].able() }))
	}
	return from
}

// stateOf is what a switch reports of a circuit; Blocked: nothing.
func (e *evidence) stateOf(s int, x proto.Circuit) proto.PortState {
	if r := e.reportOf(s, x.A, x.B); r != nil {
		return r.State
	}
	return proto.Blocked
}

func (e *evidence) reportOf(s int, a, b uint16) *proto.CircuitReport {
	if !e.switches[s].Known {
		return nil
	}
	all := e.switches[s].Whole().Circuits // Circuits would go through them for each
	at, ok := slices.BinarySearchFunc(all, a, func(r proto.CircuitReport, a uint16) int { return int(r.A) - int(a) })
	if !ok || all[at].B != b || all[at].Job == proto.ByHand {
		return nil
	}
	return &all[at]
}

// setBad notes whether a circuit did not come up; the next planner knows it too.
func (e *evidence) setBad(k slot, bad bool) {
	switch was := e.bad[k] != 0; {
	case was == bad:
		return
	case bad:
		e.bad[k] = max(1, e.switches[k.sw].Session)
	default:
		delete(e.bad, k)
	}
	e.lapses++
	e.j.Persist(badRecords(e.bad))
}

// badRecords are what the store has of circuits that did not come up.
func badRecords(bad map[slot]proto.Session) journal.Record {
	var list []badRecord
	for s, life := range bad { // any order: sorted below
		list = append(list, badRecord{s.sw, s.a, s.b, life})
	}
	slices.SortFunc(list, func(x, y badRecord) int { return cmp.Or(x.Switch-y.Switch, int(x.A)-int(y.A), int(x.B)-int(y.B)) })
	return journal.Encode(keyBad, list)
}

// wanted are the circuits that a switch is to carry.
func (e *evidence) wanted(s int) []proto.Circuit {
	at, _ := e.layout.mapOf(s)
	return e.layout.circuitsOf(s, e.maps[at])
}
