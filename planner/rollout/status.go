package rollout

import (
	"cmp"
	"time"

	"ringlight/proto"
)

const (
	maxLeft   = 64  // that are told of those that are left; chosen: with reasons they fit a message
	maxUnder  = 128 // ... of those under way
	wavePage  = 8   // waves of an answer; chosen: with the nodes of each they fit a message
	maxOfWave = 256 // nodes of a wave that are told
)

// Status is how it stands.
func (r *Rollout) Status() proto.RolloutStatus {
	s := proto.RolloutStatus{State: r.State, Software: r.Software, Firmware: r.Firmware, Author: r.Author, SinceMillis: r.Since, Reason: r.Reason, Node: r.Node,
		Wave: uint32(r.Wave), Back: uint32(r.Back), Waiting: proto.Clip(r.waits)}
	for i := range r.way {
		if x := &r.way[i]; len(s.UnderWay) < maxUnder {
			s.UnderWay = append(s.UnderWay, proto.RolloutNode{Node: x.Node, Why: x.words(), ByHand: x.ByHand})
		}
	}
	if !r.Firmware || r.has != nil { // else nobody has said so far
		r.count(&s, nil)
	}
	return s
}

func (x *restart) words() string {
	switch {
	case x.well != 0:
		return "back as before; must stay so for " + holdTime.String()
	case x.now != 0:
		return "back, its light is looked at"
	case x.failed != "" || x.waits != "":
		return cmp.Or(x.failed, x.waits)
	case x.ByHand:
		return "its agent does not start itself anew: restart it there"
	}
	return "told, not back yet"
}

// count counts nodes and names those that are left; of those that are neither, keep is
// told.
func (r *Rollout) count(s *proto.RolloutStatus, keep func(proto.NodeID)) {
	s.Nodes = uint32(r.fab.Shape().Nodes)
	for i := range s.Nodes {
		l := r.fab.Look(proto.NodeID(i))
		switch {
		case l.Present && r.Software != "" && r.runs(proto.NodeID(i), &l):
			s.Current++
		case !l.Present || r.whyNot(&l) != "":
			if s.LeftTotal++; len(s.Left) < maxLeft {
				s.Left = append(s.Left, proto.RolloutNode{Node: proto.NodeID(i), Why: proto.Clip(cmp.Or(r.whyNot(&l), "no agent speaks there")), ByHand: !l.Can && l.Present && !r.Firmware})
			}
		case keep != nil:
			keep(proto.NodeID(i))
		}
	}
}

// Plan says what a roll-out of a software would do, were nothing to change: the waves
// from the first one wanted, and what would be left.
func (r *Rollout) Plan(software string, firmware bool, first uint64) (s proto.RolloutStatus, next uint64) {
	dry := Rollout{fab: r.fab, head: head{Software: proto.Release(software), Firmware: firmware}}
	s.Software, s.Firmware = dry.Software, firmware
	open := map[proto.NodeID]bool{}
	dry.count(&s, func(id proto.NodeID) { open[id] = true })
	for wave := 1; len(open) > 0; wave++ {
		nodes := newChoice(r.fab.Shape(), nil).wave(wave, func(id proto.NodeID) bool { return open[id] }, r.watched)
		for _, id := range nodes {
			delete(open, id)
		}
		if uint64(wave) < first {
			continue
		}
		if len(s.Waves) == wavePage {
			return s, uint64(wave)
		}
		s.Waves = append(s.Waves, proto.RolloutWave{Wave: uint32(wave), Size: uint32(len(nodes)), Nodes: nodes[:min(len(nodes), maxOfWave)]})
	}
	return s, 0
}

// Stuck is for how long it has waited to go on, and for what; 0: it does not wait.
func (r *Rollout) Stuck() (time.Duration, string) {
	if r.idleAt == 0 || r.State != proto.RolloutRunning {
		return 0, ""
	}
	return r.j.Now - r.idleAt, r.waits
}

// Halted says why it stopped, and for which node; "" when it did not, or when an
// operator wanted that.
func (r *Rollout) Halted() (why string, node *proto.NodeID, since uint64) {
	if r.State != proto.RolloutStopped || r.Node == nil {
		return "", nil, 0
	}
	return r.Reason, r.Node, r.Since
}
