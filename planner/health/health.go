package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// Of is what all checks find, in the order of the table. Times are as the facts have
// them; of an alarm with Under another one is the cause.
func Of(x *Facts) []proto.AlarmStatus {
	var out []proto.AlarmStatus
	for i := range Checks {
		c := &Checks[i]
		c.find(x, func(f finding) { out = append(out, c.alarm(&f)) })
	}
	u := under{x: x, all: out, of: map[proto.NodeID]string{}, own: map[proto.NodeID]string{}}
	u.gather()
	for i := range u.all {
		u.all[i].Under = u.cause(&u.all[i])
	}
	affect(u.all)
	return u.all
}

// affect has a cause affect service where what follows from it does.
func affect(all []proto.AlarmStatus) {
	at := map[string]int{}
	for i := range all {
		at[all[i].ID] = i
	}
	for i := range all {
		up, is := i, all[i].ServiceAffecting
		for is {
			if up, is = at[all[up].Under]; is {
				is, all[up].ServiceAffecting = !all[up].ServiceAffecting, true // what was, has been gone up from
			}
		}
	}
}

func (c *Check) alarm(f *finding) proto.AlarmStatus {
	a := proto.AlarmStatus{ID: f.id, SinceMillis: f.since, Severity: f.severity, Node: f.node, Peer: f.peer, Ring: f.ring, What: proto.Clip(f.text), Why: proto.Clip(f.cause),
		Check: c.Name, Subject: f.subject, State: max(c.State, f.state), ServiceAffecting: f.takes}
	if a.Severity == 0 {
		a.Severity = proto.SeverityWarning
		if c.grave {
			a.Severity = proto.SeverityCritical
		}
	}
	_, name, _ := strings.Cut(f.subject, " ")
	a.Remedy = proto.Clip(cmp.Or(f.remedy, strings.ReplaceAll(c.Remedy, "SUBJECT", strings.ReplaceAll(cmp.Or(name, f.subject), "switch ", "switch-"))))
	return a
}

// Worst is the state of a fabric with such alarms.
func Worst(all []proto.AlarmStatus) (s proto.HealthState) {
	for i := range all {
		s = max(s, all[i].State)
	}
	return s
}

// InOrder lists alarms by what they stand under: those that somebody knows of last, the
// worst first, then the oldest, those of unknown age last; what follows from one comes behind it.
func InOrder(after map[string][]proto.AlarmStatus) (out []proto.AlarmStatus) {
	var add func(under string)
	add = func(under string) {
		list := after[under]
		delete(after, under)
		slices.SortFunc(list, func(a, b proto.AlarmStatus) int {
			return cmp.Or(cmp.Compare(min(1, a.AckMillis), min(1, b.AckMillis)), cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.SinceMillis-1, b.SinceMillis-1), strings.Compare(a.ID, b.ID))
		})
		for i := range list {
			out = append(out, list[i])
			add(list[i].ID)
		}
	}
	add("")
	return out
}

// burst is how far apart, in ms, nodes go that one cause takes, and together how many of
// them are one. chosen: a rack that loses power is noticed within a keep-alive.
const (
	burst      = 5000
	burstLeast = 3
)

// under finds what follows from what.
type under struct {
	x   *Facts
	all []proto.AlarmStatus
	of  map[proto.NodeID]string // by device: what is wrong with it, as the planner has it
	own map[proto.NodeID]string // as it says itself
}

// gather finds the first alarm of each device, and makes one of those that went
// together.
func (u *under) gather() {
	x := u.x
	for i := range u.all {
		a := &u.all[i]
		switch {
		case a.Node == nil || a.Peer != nil || a.Check == "light_low":
		case !ownWord(a.Check) && u.of[*a.Node] == "":
			u.of[*a.Node] = a.ID
		case a.Severity == proto.SeverityCritical && u.own[*a.Node] == "":
			u.own[*a.Node] = a.ID
		}
	}
	var quiet []*Device
	for i := range x.Devices {
		if d := &x.Devices[i]; d.Quiet && !d.ID.IsSwitch() && d.Held == "" {
			quiet = append(quiet, d)
		}
	}
	slices.SortStableFunc(quiet, func(a, b *Device) int { return cmp.Compare(a.Since, b.Since) })
	for i := 0; i < len(quiet); {
		j := i + 1
		for j < len(quiet) && quiet[j].Since-quiet[j-1].Since < burst && (quiet[i].Since == 0) == (quiet[j].Since == 0) {
			j++
		}
		if j-i >= burstLeast && x.Heard > 0 {
			u.together(quiet[i:j])
		}
		i = j
	}
}

// ownWord: what a check finds is what a device says of itself.
func ownWord(check string) bool {
	return check == "path_failed" || check == "journal" || check == "device"
}

// together has one alarm stand for devices that went at one time.
func (u *under) together(list []*Device) {
	var ids []proto.NodeID
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	f := finding{id: fmt.Sprintf("nodes/%d", ids[0]), subject: "nodes " + Spans(ids, 4), since: list[0].Since, text: fmt.Sprintf("%d of %s are silent: %s", len(ids), proto.Count(u.x.Nodes, "node"), Spans(ids, 8)),
		cause: "they went at one time: power, network or broker of all of them"}
	if f.since == 0 {
		f.cause = "nobody has spoken for them since the planner started"
	}
	c := Check{Name: "nodes", State: proto.HealthDegraded, Remedy: "what they have in common: power, switch, certificates; 'ocs-agent status' on one of them"}
	u.all = append(u.all, c.alarm(&f))
	for _, id := range ids {
		u.of[id] = "/" + f.id
	}
}

// cause is the id of what an alarm follows from, "": it is a cause itself.
func (u *under) cause(a *proto.AlarmStatus) string {
	if u.x.Judged && u.x.Nodes > 0 && u.x.Heard == 0 && (a.Node != nil || a.Check == "rings_missing" || a.Ring != 0) {
		return "nodes/none"
	}
	id, late := "", "" // it was not told, or its answer was lost
	if u.x.Late != 0 {
		late = "planner/late"
	} else if u.x.Loses != "" {
		late = "broker/slow"
	}
	switch {
	case a.Check == "broker_slow" && u.x.Stood != 0: // messages of that time, in a broker of the same process or not
		id = "planner/stood-still"
	case late != "" && (a.Check == "took_no_plan" || a.Check == "silent" || a.Check == "does_not_follow" || a.SinceMillis == 0 && (a.Check == "nodes" || a.Check == "offline")):
		id = late
	case a.Peer != nil: // an end that has failed since was the cause
		id = cmp.Or(u.of[*a.Node], u.of[*a.Peer])
	case a.Node != nil:
		id = u.of[*a.Node]
		if group, is := strings.CutPrefix(id, "/"); is {
			return group
		}
		if id == "" && strings.HasSuffix(a.ID, "/"+proto.EvClosed.Slug()) {
			id = u.ofRing(a.Ring)
		}
	case a.Check == "rings_missing" || a.Check == "spares":
		id = u.lost()
	case a.Ring != 0:
		id = u.ofRing(a.Ring)
	}
	if id = strings.TrimPrefix(id, "/"); id == a.ID {
		return ""
	}
	return id
}

// ofRing is what is wrong with a ring: a member, or a fibre.
func (u *under) ofRing(id proto.RingID) string {
	at := slices.IndexFunc(u.x.Rings, func(r Ring) bool { return r.ID == id })
	if at < 0 {
		return ""
	}
	r := &u.x.Rings[at]
	for _, list := range [][]proto.NodeID{r.Out, r.Members} {
		for _, n := range list {
			if by := cmp.Or(u.of[n], u.own[n]); by != "" {
				return by
			}
		}
	}
	for i := range u.x.Fibres {
		if f := &u.x.Fibres[i]; f.State != proto.FibreLit && (slices.Contains(r.Dark, f.Name) || slices.Contains(r.Members, f.A) || slices.Contains(r.Members, f.B)) {
			return "fibre-" + f.Name
		}
	}
	if r.Waits != "" {
		return u.lost()
	}
	return ""
}

// lost is what took the most of the nodes that are out: where nodes lack, that is why.
func (u *under) lost() (most string) {
	took := map[string]int{}
	for i := range u.x.Devices {
		d := &u.x.Devices[i]
		by := u.of[d.ID]
		if d.What == "" && d.Ring == 0 { // a spare with a bundle that failed, or a board that does not answer
			if by = u.own[d.ID]; d.Board != 0 {
				by = u.of[d.ID]
			}
		} else if d.What == "" {
			by = ""
		}
		if by != "" && !d.ID.IsSwitch() {
			if took[by]++; took[by] > took[most] {
				most = by
			}
		}
	}
	return most
}
