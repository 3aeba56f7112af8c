package mqtt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"

	"ringlight/proto"
)

// Asker asks a fabric's planner what operators ask. Its link subscribes to
// the replies to Name and is ordered. It is for one goroutine.
type Asker struct {
	Link   *Link
	Topics proto.Topics
	Name   string
	Wait   time.Duration
	// Patience is how long a link may fail, and a planner give no sign of life,
	// before that counts as an answer; 0: Wait.
	Patience time.Duration
	Seed     [8]byte            // tells its questions from those of another life of this name
	Heard    func(proto.Packet) // is given all that comes on the link; nil: nobody
	Waits    func(why string)   // is told what is waited for, when a planner says so; nil: nobody
	asked    uint64
	beat     proto.PlannerState // the planner's last sign of life
	alive    time.Time          // when one came that the broker had not kept
}

// askAgain re-sends a question that was not answered; chosen: as agents do.
const askAgain = 2 * time.Second

// next is the next packet on the link, before the limit.
func (a *Asker) next(ctx context.Context, limit <-chan time.Time) (p proto.Packet, late bool, err error) {
	select {
	case p = <-a.Link.Recv():
		a.Note(p)
		if a.Heard != nil {
			a.Heard(p)
		}
		return p, false, nil
	case <-limit:
		return p, true, nil
	case <-ctx.Done():
		return p, false, ctx.Err()
	}
}

// Note takes the planner's sign of life from what comes: a question quotes it,
// so that it has no effect when a broker brings it much later.
func (a *Asker) Note(p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if p.Kind != proto.Publish || err != nil || topic.Kind != proto.TopicPlanner || a.Topics.Fabric != "" && topic.Fabric != a.Topics.Fabric {
		return
	}
	var m proto.PlannerState
	if _, err := proto.Decode(p.Payload, &m); err == nil && m.Online {
		a.beat = m
		if !p.Retain {
			a.alive = time.Now()
		}
	}
}

// Listen hears what comes for some time.
func (a *Asker) Listen(ctx context.Context, d time.Duration) error {
	limit := time.After(d)
	for {
		if _, late, err := a.next(ctx, limit); late || err != nil {
			return err
		}
	}
}

func (a *Asker) patience() time.Duration {
	if a.Patience == 0 {
		return a.Wait
	}
	return min(a.Wait, a.Patience)
}

// Connect waits until the link is up.
func (a *Asker) Connect(ctx context.Context) error {
	limit := time.After(a.patience())
	for {
		p, late, err := a.next(ctx, limit)
		switch {
		case err != nil:
			return err
		case late && errors.Is(a.Link.Err(), syscall.ECONNREFUSED):
			return fmt.Errorf("broker %s: %w; a planner's own broker listens while it runs: systemctl status ocs-planner; another one: -broker", a.Link.cfg.Broker, a.Link.Err())
		case late && a.Link.Err() != nil:
			return fmt.Errorf("broker %s: %w", a.Link.cfg.Broker, a.Link.Err())
		case late:
			return fmt.Errorf("broker %s: no connection within %v: what listens there does not answer, and hangs; of a planner with its own broker: systemctl restart ocs-planner, no light changes", a.Link.cfg.Broker, a.patience())
		case p.Kind == proto.LinkUp:
			return nil
		case p.Kind == proto.Refused:
			return &proto.Error{Code: proto.Unsupported, Field: "broker", Reason: "the broker refuses the subscription of " + p.Topic}
		}
	}
}

// Ask sends a question until it is answered and gives the answer. A refusal
// is an error; that of a planner which is not in service counts when no other
// answer comes.
func (a *Asker) Ask(ctx context.Context, q proto.OpRequest) (*proto.OpReply, error) {
	a.asked++
	if q.Noun != proto.NounWhy {
		q.Bundle = -1 // of no bundle
	}
	// What is not done in nine tenths of the time is answered while somebody listens.
	q.Version, q.TTLMillis = proto.Version, uint32(max(1, min(a.Wait.Milliseconds()*9/10, proto.MaxTTLMillis)))
	q.Term, q.Beat = a.beat.Term, a.beat.Seq
	copy(q.Corr[:8], a.Seed[:])
	binary.BigEndian.PutUint64(q.Corr[8:], a.asked)
	payload, err := proto.Encode(&q)
	if err != nil {
		return nil, err
	}
	request := proto.Packet{Kind: proto.Publish, Topic: a.Topics.Request(a.Name), Payload: payload, QoS: proto.TopicRequest.QoS()}
	idle := &proto.Error{Code: proto.Expired, Field: "fabric", Reason: fmt.Sprintf("no planner answers for fabric %s within %v; its log: systemctl status ocs-planner; what is known without one: ocsctl status", a.Topics.Fabric, a.patience())}
	began := time.Now()
	for end := began.Add(a.Wait); time.Now().Before(end); {
		// A link that is down takes nothing; the question is asked again.
		_ = a.Link.Send(request)
		wait := min(askAgain, time.Until(end))
		if left := a.patience() - time.Since(began); left > 0 {
			wait = min(wait, left)
		}
		r, err := a.reply(ctx, q.Corr, time.After(wait), idle)
		switch {
		case err != nil:
			return nil, err
		case r != nil && r.Code != proto.OK:
			return nil, &proto.Error{Code: r.Code, Field: r.Field, Limit: r.Limit, Reason: r.Reason}
		case r != nil:
			return r, nil
		case a.Patience > 0 && a.alive.Before(began) && idle.Code == proto.Expired && time.Since(began) >= a.patience():
			return nil, idle // nobody is there
		}
	}
	return nil, idle
}

// reply waits for an answer; nil: it is time to ask again. A planner that is not
// in service says so in idle, and another may answer yet.
func (a *Asker) reply(ctx context.Context, corr proto.Corr, limit <-chan time.Time, idle *proto.Error) (*proto.OpReply, error) {
	for {
		p, late, err := a.next(ctx, limit)
		if late || err != nil || p.Kind == proto.LinkUp {
			return nil, err
		}
		if p.Kind != proto.Publish || p.Topic != a.Topics.Reply(a.Name) {
			continue
		}
		r := new(proto.OpReply)
		if _, err := proto.Decode(p.Payload, r); err != nil {
			return nil, fmt.Errorf("the planner's answer: %w", err)
		}
		proto.Printable(r)
		switch {
		case r.Corr != corr:
		case r.Code == proto.Busy && r.Field == proto.FieldPlanner:
			*idle = proto.Error{Code: r.Code, Field: r.Field, Limit: r.Limit, Reason: r.Reason}
			if a.Waits != nil {
				a.Waits(r.Reason)
			}
		default:
			return r, nil
		}
	}
}

// Pages asks for all pages of an answer.
func (a *Asker) Pages(ctx context.Context, q proto.OpRequest, take func(*proto.OpReply)) error {
	return Pages(ctx, a.Ask, q, func(r *proto.OpReply) error { take(r); return nil })
}

// Pages asks for all pages of an answer, until take has an error.
func Pages(ctx context.Context, ask func(context.Context, proto.OpRequest) (*proto.OpReply, error), q proto.OpRequest, take func(*proto.OpReply) error) error {
	for {
		r, err := ask(ctx, q)
		if err == nil {
			err = take(r)
		}
		if err != nil || r.Next <= q.Page {
			return err
		}
		q.Page = r.Next
	}
}
