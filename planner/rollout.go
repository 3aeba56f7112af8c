package planner

import (
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/rollout"
	"ringlight/proto"
)

// nodesOf are the nodes as a roll-out sees them.
type nodesOf struct{ p *Planner }

func (f nodesOf) Shape() rollout.Shape {
	fab := f.p.Fabric
	return rollout.Shape{Nodes: fab.Nodes, Reach: 2 * fab.K, Wraps: fab.Topology == fabric.Ring}
}

func (f nodesOf) Look(id proto.NodeID) (l rollout.Look) {
	p := f.p
	d := p.Rings.Table.Find(id)
	if d == nil {
		return l
	}
	m := &d.Report
	l.Software, l.Can = d.Birth.Software, d.Birth.Features.Has(proto.FeatureRestart)
	l.Present = d.Online() && d.ReportOf() == d.Session
	if l.Why = d.WhyNot(); !l.Present {
		return l
	}
	l.Asks = m.AsksRestart()
	if l.Why == "" {
		l.Why = p.Rings.Placed.Blocker(id)
	}
	l.Engaged = p.Rings.Placed.Engaged(id)
	if l.Why == "" && hbd.Changing(p.Rings) {
		l.Why = "a generation is under way"
	}
	l.Hold = rollout.Hold{Session: d.Session, Wanted: d.Want.Gen, Generation: m.Gen, Plan: m.Plan, Mode: m.Mode(), Moves: m.BypassSeq()}
	for b := range m.Bundles {
		l.Hold.Bundles = append(l.Hold.Bundles, rollout.Bundle{Path: b.Path, State: b.State, Calibration: b.Calibration})
	}
	p.Rings.Placed.Facing(id, func(neighbour proto.NodeID, bundle proto.BundleID) {
		n := p.Rings.Table.Find(neighbour)
		if n == nil {
			return
		}
		if b, ok := n.Report.Bundle(bundle); ok {
			l.Hold.Beside = append(l.Hold.Beside, rollout.Beside{Node: neighbour, Session: n.ReportOf(), Bundle: bundle, Losses: b.Flaps})
		}
	})
	return l
}

// answer answers about the roll-out, or carries it out.
func (f nodesOf) answer(q *proto.OpRequest, r *proto.OpReply) {
	p := f.p
	var err *proto.Error
	if q.Noun == proto.NounRollout && q.Firmware {
		_, err = proto.ParseFirmware(q.Software)
	}
	switch {
	case err != nil:
	case q.Noun == proto.NounRollout && q.DryRun:
		if proto.Release(q.Software) == "" {
			err = &proto.Error{Code: proto.Invalid, Field: "software", Limit: "the version that is installed, as ocs-agent version prints it", Reason: "none"}
			break
		}
		s, next := p.Rollout.Plan(q.Software, q.Firmware, q.Page)
		r.Rollout, r.Next = &s, next
		return
	case q.Noun != proto.NounRolloutStatus && p.state != serving:
		err = &proto.Error{Code: proto.Busy, Reason: "the planner is " + p.state.String()}
	case q.Noun == proto.NounRollout:
		err = p.Rollout.Begin(q.Software, q.Author, q.Firmware)
	case q.Noun == proto.NounRolloutStop:
		err = p.Rollout.Stop(q.Author)
	}
	if err != nil {
		r.Refuse(err)
		return
	}
	r.Rollout = new(p.Rollout.Status())
}

// rolloutStuck is how long a roll-out may wait before it is an alarm. chosen: a ring is
// mended in seconds, a node boots in minutes.
const rolloutStuck = 10 * time.Minute
