package agent

import (
	"cmp"
	"fmt"
	"time"

	"ringlight/proto"
)

// An agent starts itself anew, as the software that is installed by then, when a
// planner tells it to, or when somebody on this host asks for that and a planner
// gives leave. For the length of a start nobody protects this node: so the planner
// chooses when, and without one an agent goes only where it protects nothing.
//
// The light stays as it is: the next life adopts what it finds, as after any other
// end of an agent.

// LeavePatience is for how long a planner is waited for at most. chosen: longer than a
// second one takes to step in.
const LeavePatience = 10 * time.Minute

// restarting is a restart that was requested.
type restarting struct {
	agent   *Agent
	command *proto.Ack    // the planner's command, with its answer; nil: none
	asks    []Ask         // of people on this host
	until   time.Duration // by when they must have leave
	looking bool          // whoever runs the agent looks whether it can be
	leave   bool          // this life ends when all that it said is on disk
	over    bool          // it has
}

// told takes a planner's word. It is answered when it is known whether there is
// anything to start.
func (r *restarting) told(c *proto.Command, ack proto.Ack) error {
	if err := r.blocker(); err != nil {
		return err
	}
	r.command = &ack
	r.look(c.Software)
	return nil
}

// asked takes the question of somebody on this host.
func (r *restarting) asked(now time.Duration, q Ask) {
	err := r.unable()
	if wait := time.Duration(q.Value) * time.Millisecond; err == nil && wait > LeavePatience {
		err = &proto.Error{Code: proto.Invalid, Field: "wait", Limit: "at most " + LeavePatience.String(), Reason: wait.String()}
	}
	switch {
	case err == nil && len(r.asks) > 0:
		err = &proto.Error{Code: proto.Busy, Field: "restart", Reason: "somebody else asks for the same"}
	case err == nil:
		err = r.blocker()
	}
	if err != nil {
		r.agent.reply(&Answer{ID: q.ID, Err: err})
		return
	}
	r.asks, r.until = append(r.asks, q), now+time.Duration(q.Value)*time.Millisecond
	r.look("")
}

// unable says why this agent never can.
func (r *restarting) unable() *proto.Error {
	if r.agent.cfg.Restarts {
		return nil
	}
	reason := cmp.Or(r.agent.cfg.NoRestart, "nobody here starts it again")
	return &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: proto.Clip("this agent cannot start itself anew: " + reason)}
}

// blocker says why it cannot now.
func (r *restarting) blocker() *proto.Error {
	busy := func(why string) *proto.Error {
		return &proto.Error{Code: proto.Busy, Field: "restart", Limit: "an agent at rest", Reason: why}
	}
	if err := r.unable(); err != nil {
		return err
	}
	var m proto.Reported
	r.agent.machine.Report(&m)
	for i := range m.Sides {
		if s := &m.Sides[i]; s.State == proto.SideSwitch || s.State == proto.SideListen || s.State == proto.SideClosing {
			return busy(fmt.Sprintf("the %s side looks for light", s.Side))
		}
	}
	switch why := r.agent.operator.occupied(); {
	case r.agent.persist.fails != "":
		return busy("the journal cannot be written, and the next life would not know what this one said: " + r.agent.persist.fails)
	case r.looking || r.leave:
		return busy("it is about to restart already")
	case why != "":
		return busy(why)
	}
	return nil
}

// look has whoever runs this agent look whether there is something to start.
func (r *restarting) look(software string) {
	r.looking = true
	r.agent.put(Output{Kind: OutRestart, Text: software})
}

// looked: there is, unless why says otherwise.
func (r *restarting) looked(now time.Duration, why string) {
	r.looking = false
	refused := &proto.Error{Code: proto.HardwareFailed, Field: "software", Limit: "one that runs here", Reason: proto.Clip(why)}
	ack := r.command
	r.command = nil
	switch {
	case ack != nil && why != "":
		r.agent.refuse(now, *ack, refused)
		r.deny(now, refused)
	case ack != nil:
		r.agent.finishCommand(now, *ack)
		r.depart()
	case why != "":
		r.deny(now, refused)
	case r.agent.cfg.isSwitch(), r.agent.wire.beat.at != 0 && !r.agent.wire.beat.features.Has(proto.FeatureRestart):
		r.until = now // nobody is asked, or would answer
	default:
		r.agent.report(now) // the question goes out with it
	}
}

// wants reports whether leave is asked for.
func (r *restarting) wants() bool {
	return len(r.asks) > 0 && !r.looking && !r.leave && !r.agent.cfg.isSwitch() && r.agent.wire.beat.features.Has(proto.FeatureRestart)
}

// due is when leave must have come.
func (r *restarting) due() time.Duration {
	if len(r.asks) == 0 || r.looking || r.leave {
		return Never
	}
	return r.until
}

// overdue: no leave came. Where nothing is protected none is needed.
func (r *restarting) overdue(now time.Duration) {
	if r.due() > now {
		return
	}
	why := "no planner was heard"
	switch {
	case r.agent.cfg.isSwitch():
		why = "a switch needs none"
	case r.agent.wire.beat.at == 0:
	case !r.agent.wire.beat.features.Has(proto.FeatureRestart):
		why = "the planner in service is of a release that gives no leave"
	default:
		why = fmt.Sprintf("the planner gave no leave within %v; ocsctl rollout status says what it waits for", time.Duration(r.asks[0].Value)*time.Millisecond)
	}
	if open := r.open(); open != "" {
		r.deny(now, &proto.Error{Code: proto.Busy, Field: "restart", Limit: "a planner's leave, or sides that are closed", Reason: proto.Clip(why + ", and " + open)})
		return
	}
	r.agent.log(0, "it starts anew without leave: "+why+", and its sides are closed")
	r.depart()
}

// open says what the node protects, "" when that is nothing.
func (r *restarting) open() string {
	var m proto.Reported
	r.agent.machine.Report(&m)
	for i := range m.Sides {
		if s := &m.Sides[i]; s.State != proto.SideEnd && s.State != proto.SideClosed {
			return fmt.Sprintf("its %s side carries ring %d", s.Side, s.Ring)
		}
	}
	return "" // a switch protects nothing
}

func (r *restarting) deny(now time.Duration, err *proto.Error) {
	for _, q := range r.asks {
		r.agent.reply(&Answer{ID: q.ID, Err: err})
	}
	r.asks = nil
	r.agent.report(now)
}

// depart ends this life, as soon as nothing that it said is missing on the disk.
func (r *restarting) depart() {
	r.leave = true
	for _, q := range r.asks {
		r.agent.reply(&Answer{ID: q.ID})
	}
	r.asks = nil
	r.agent.log(0, "it starts anew; the light stays as it is")
}

// gone adds the end, when it is time for it.
func (r *restarting) gone(out []Output) []Output {
	if !r.leave || r.over || r.agent.persist.flying() || len(r.agent.wire.acks) > 0 {
		return out
	}
	r.over = true
	return append(out, Output{Kind: OutEnd})
}
