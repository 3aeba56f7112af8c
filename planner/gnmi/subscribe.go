package gnmi

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"

	"ringlight/proto"
	"ringlight/proto/limit"
)

// shortestSample is the least interval of SAMPLE, and that of 0. chosen: what modules are
// read at least.
const shortestSample = time.Second

// subscription is one of a stream.
type subscription struct {
	asked
	every  time.Duration // of SAMPLE, or the heartbeat of ON_CHANGE; 0: none
	sample bool
	spare  bool // SAMPLE leaves out what has not changed
	next   time.Time
	beat   time.Duration     // by spare, how often all is told all the same; 0: never
	whole  time.Time         // when that is due
	said   map[string]*entry // by spare, what was told last
}

// stream is a call of Subscribe.
type stream struct {
	s     *Server
	rpc   grpc.BidiStreamingServer[pb.SubscribeRequest, pb.SubscribeResponse]
	who   caller
	subs  []subscription
	kinds kinds
	// devices are the switches that it is about.
	devices []string
	as      pb.Encoding
	prefix  *pb.Path
	place   chan struct{} // closed when another has it
	late    *time.Timer   // runs while a message is not taken
}

// Subscribe serves ONCE, POLL and STREAM.
func (s *Server) Subscribe(rpc grpc.BidiStreamingServer[pb.SubscribeRequest, pb.SubscribeResponse]) error {
	st := &stream{s: s, rpc: rpc, who: callerOf(rpc.Context()), place: make(chan struct{})}
	s.mu.Lock()
	room := limit.Room(s.streams, maxStreams, st.who.peer)
	if room {
		s.streams[st.place] = st.who.peer
	}
	s.mu.Unlock()
	if !room {
		return &proto.Error{Code: proto.TooLarge, Field: "subscribe", Limit: fmt.Sprintf("%d at once", maxStreams), Reason: "so many are there already"}
	}
	defer func() {
		s.mu.Lock()
		delete(s.streams, st.place)
		s.mu.Unlock()
	}()
	heard := st.listen()
	select {
	case x := <-heard:
		return st.run(x, heard)
	case <-time.After(firstPatience):
		return &proto.Error{Code: proto.Expired, Field: "subscribe", Limit: "the first request within " + firstPatience.String(), Reason: "none came"}
	case <-rpc.Context().Done():
		return rpc.Context().Err()
	}
}

type heardRequest struct {
	*pb.SubscribeRequest
	err error
}

// listen reads requests while the call lasts.
func (st *stream) listen() <-chan heardRequest {
	heard := make(chan heardRequest)
	go func() {
		for {
			r, err := st.rpc.Recv()
			select {
			case heard <- heardRequest{r, err}:
			case <-st.rpc.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return heard
}

func (st *stream) run(x heardRequest, heard <-chan heardRequest) error {
	if x.err != nil {
		return x.err
	}
	list := x.GetSubscribe()
	if list == nil {
		return proto.Wrong("request", "subscribe, first of all", "%T", x.GetRequest())
	}
	if err := st.read(list); err != nil {
		return err
	}
	switch list.GetMode() {
	case pb.SubscriptionList_ONCE:
		return st.once(list.GetUpdatesOnly())
	case pb.SubscriptionList_POLL:
		return st.poll(list.GetUpdatesOnly(), heard)
	case pb.SubscriptionList_STREAM:
		return st.follow(list, heard)
	}
	return proto.Wrong("mode", "STREAM, ONCE or POLL", "%d", list.GetMode())
}

// read takes what is subscribed to.
func (st *stream) read(list *pb.SubscriptionList) (err error) {
	if st.as, err = encoding(list.GetEncoding()); err != nil {
		return err
	}
	st.prefix = list.GetPrefix()
	if n := len(list.GetSubscription()); n == 0 || n > maxPaths {
		return proto.Wrong("subscription", fmt.Sprintf("1 to %d", maxPaths), "%d", n)
	}
	stream := list.GetMode() == pb.SubscriptionList_STREAM
	for _, x := range list.GetSubscription() {
		sub := subscription{}
		if sub.asked, err = ask(st.prefix, x.GetPath()); err != nil {
			return err
		}
		if stream && sub.kinds == ofRecords {
			return proto.Wrong("mode", "ONCE or POLL, or Get", "records are not streamed")
		}
		interval, beat := time.Duration(x.GetSampleInterval()), time.Duration(x.GetHeartbeatInterval())
		if x.GetSampleInterval() > uint64(time.Hour*24*366) || x.GetHeartbeatInterval() > uint64(time.Hour*24*366) {
			return proto.Wrong("sample_interval", "at most a year, in ns", "%d", max(x.GetSampleInterval(), x.GetHeartbeatInterval()))
		}
		switch mode := x.GetMode(); {
		case !stream:
		case beat != 0 && beat < shortestSample:
			return proto.Wrong("heartbeat_interval", "0, or at least "+shortestSample.String()+" in ns", "%v", beat)
		case mode == pb.SubscriptionMode_SAMPLE:
			if sub.sample, sub.spare, sub.every = true, x.GetSuppressRedundant(), max(interval, shortestSample); interval != 0 && interval < shortestSample {
				return proto.Wrong("sample_interval", "0, or at least "+shortestSample.String()+" in ns", "%v", interval)
			}
			if sub.beat = beat; sub.spare && beat != 0 {
				sub.every = min(sub.every, beat)
			}
		case mode == pb.SubscriptionMode_ON_CHANGE || mode == pb.SubscriptionMode_TARGET_DEFINED:
			sub.every = beat
		default:
			return proto.Wrong("mode", "TARGET_DEFINED, ON_CHANGE or SAMPLE", "%d", mode)
		}
		st.subs, st.kinds = append(st.subs, sub), st.kinds|sub.kinds
		if sub.device != "" && !slices.Contains(st.devices, sub.device) {
			st.devices = append(st.devices, sub.device)
		}
	}
	return nil
}

// wanted: a subscription is to the entry, or to a part of it.
func (st *stream) wanted(e *entry) bool {
	return slices.ContainsFunc(st.subs, func(x subscription) bool { return x.covers(e) })
}

// leaves are those of an entry that some subscriptions are to.
func leaves(subs []subscription, e *entry, of []leaf) (out []leaf) {
	for _, l := range of {
		if slices.ContainsFunc(subs, func(x subscription) bool { return x.covers(e) && wants(x.elems, e, l.path) }) {
			out = append(out, l)
		}
	}
	return out
}

// send says leaves of an entry.
func (st *stream) send(e *entry, set []leaf) error {
	if r := st.whole(e, set); r != nil {
		return st.say(r)
	}
	return nil
}

// say sends a response, or what is said. A peer that does not take it in time loses its
// connection.
func (st *stream) say(r any) error {
	if st.late == nil {
		st.late = time.AfterFunc(writePatience, func() {
			st.s.Log.Warn("a gNMI stream is not read: its connection is closed", "peer", st.who.peer)
			if st.who.conn != nil {
				st.who.conn.Reset()
			}
		})
	} else {
		st.late.Reset(writePatience)
	}
	defer st.late.Stop()
	return st.rpc.SendMsg(r)
}

func (st *stream) synced() error {
	return st.say(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}})
}

func byKey(a, b *entry) int { return strings.Compare(a.key, b.key) }

// once says all there is.
func (st *stream) once(updatesOnly bool) error {
	if !updatesOnly {
		var found []*entry
		if err := st.s.takeTurn(st.rpc.Context(), func() error {
			take := func(e *entry) {
				if st.wanted(e) {
					found = append(found, e)
				}
			}
			for i := range st.subs {
				if err := st.s.records(st.rpc.Context(), &st.subs[i].asked, take); err != nil {
					return err
				}
			}
			return st.s.all(st.rpc.Context(), st.kinds, nil, st.devices, take)
		}); err != nil {
			return err
		}
		for _, e := range found {
			if err := st.send(e, leaves(st.subs, e, e.leaves)); err != nil {
				return err
			}
		}
	}
	return st.synced()
}

func (st *stream) poll(updatesOnly bool, heard <-chan heardRequest) error {
	idle := time.NewTimer(pollPatience)
	defer idle.Stop()
	rights := time.Tick(rightsPeriod)
	if err := st.once(updatesOnly); err != nil {
		return err
	}
	for {
		select {
		case x := <-heard:
			switch {
			case errors.Is(x.err, io.EOF):
				return nil
			case x.err != nil:
				return x.err
			case x.GetPoll() == nil:
				return proto.Wrong("request", "poll", "%T", x.GetRequest())
			}
			if err := st.once(updatesOnly); err != nil {
				return err
			}
			idle.Reset(pollPatience)
		case <-idle.C:
			return &proto.Error{Code: proto.Expired, Field: "poll", Limit: "one within " + pollPatience.String(), Reason: "none came"}
		case <-rights:
			if err := st.s.May(st.who.leaf, &reads); err != nil {
				return err
			}
		case <-st.place:
			return st.yields()
		case <-st.rpc.Context().Done():
			return st.rpc.Context().Err()
		}
	}
}

func (st *stream) yields() error {
	return &proto.Error{Code: proto.Busy, Field: "subscribe", Limit: fmt.Sprintf("%d at once", maxStreams), Reason: "another address has the place"}
}

// follow says all there is, and then what changes.
func (st *stream) follow(asked *pb.SubscriptionList, heard <-chan heardRequest) error {
	m := st.s.mirror
	others, leave, err := st.s.gather(asked)
	if err != nil {
		return err
	}
	defer leave()
	for _, d := range st.devices {
		if _, err := m.view(st.rpc.Context(), d); err != nil {
			return err
		}
	}
	defer m.want(st.kinds, st.devices, -1)
	if err := m.join(st.kinds, st.devices); err != nil {
		return err
	}
	next, err := others.open(st, asked.GetUpdatesOnly())
	if err != nil {
		return err
	}
	if err := st.synced(); err != nil {
		return err
	}
	changes := slices.DeleteFunc(slices.Clone(st.subs), func(x subscription) bool { return x.sample })
	alarm := time.NewTimer(st.sampled(time.Now()))
	defer alarm.Stop()
	rights := time.Tick(rightsPeriod)
	ended := st.rpc.Context().Done()
	for {
		list, more, ok := m.after(next)
		if !ok {
			return &proto.Error{Code: proto.TooLarge, Field: "subscribe", Limit: fmt.Sprintf("%d changes behind", keptRecords), Reason: "the stream is read too slowly, or the planner has ended: subscribe again"}
		}
		for rest := list; len(rest) > 0; {
			n := together(rest)
			raw, err := others.tell(next, func() *pb.SubscribeResponse { return st.changed(changes, rest[:n]) })
			if err == nil && raw != nil {
				err = st.say(raw)
			}
			if err != nil {
				return err
			}
			next, rest = next+uint64(n), rest[n:]
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-more:
		case now := <-alarm.C:
			if err := st.samples(now); err != nil {
				return err
			}
			alarm.Reset(st.sampled(now))
		case <-rights:
			if err := st.s.May(st.who.leaf, &reads); err != nil {
				return err
			}
		case x := <-heard:
			if x.err == nil {
				return proto.Wrong("request", "no second one of a stream", "%T", x.GetRequest())
			}
			if !errors.Is(x.err, io.EOF) {
				return x.err
			}
			heard = nil // it has said all, and listens
		case <-st.place:
			return st.yields()
		case <-ended:
			return st.rpc.Context().Err()
		}
	}
}

// sampled is how long it is until something is said by the clock.
func (st *stream) sampled(now time.Time) time.Duration {
	wait := time.Duration(1<<62 - 1)
	for i := range st.subs {
		if x := &st.subs[i]; x.every != 0 {
			if x.next.IsZero() {
				x.next = now.Add(x.every)
			}
			wait = min(wait, x.next.Sub(now))
		}
	}
	return max(wait, 0)
}

// samples says what is due by the clock.
func (st *stream) samples(now time.Time) error {
	for i := range st.subs {
		x := &st.subs[i]
		if x.every == 0 || now.Before(x.next) {
			continue
		}
		for !now.Before(x.next) {
			x.next = x.next.Add(x.every)
		}
		own := st.subs[i : i+1]
		all, _ := st.s.mirror.begin(x.kinds, func(e *entry) bool { return x.covers(e) })
		slices.SortFunc(all, byKey)
		said := map[string]*entry{}
		spare := x.spare && (x.beat == 0 || now.Before(x.whole))
		if !spare {
			x.whole = now.Add(x.beat)
		}
		for _, e := range all {
			set := e.leaves
			if was := x.said[e.key]; spare && was != nil {
				set, _ = e.diff(was)
			}
			said[e.key] = e
			if err := st.send(&entry{device: e.device, path: e.path, at: now.UnixNano()}, leaves(own, e, set)); err != nil {
				return err
			}
		}
		if x.spare {
			x.said = said
		}
	}
	return nil
}
