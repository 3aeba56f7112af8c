package gnmi

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	codecs "google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // it is registered
	"google.golang.org/grpc/mem"
)

// Collectors of one kind ask for the same, by the hundred: what changes is encoded once for
// all of them.

// Bounds of what an audience keeps encoded; one of a single stream keeps nothing. Who is
// further behind, and who asks for more at first, has it encoded for itself. chosen: what a
// look finds of a cell; 16 nodes with all that they have, four times.
const (
	keptSaid  = 64
	keptBytes = 256 << 10
)

// said is a message as it goes out.
type said []byte

var (
	protobuf    = codecs.GetCodecV2("proto")
	encodesOnce = grpc.ForceServerCodecV2(codec{protobuf})
)

// encoded is a message on its own.
func encoded(m any) (said, error) {
	raw, err := protobuf.Marshal(m)
	defer raw.Free()
	return raw.Materialize(), err
}

// codec is that of protobuf, which leaves alone what is encoded.
type codec struct{ codecs.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.(said); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// audience are streams that asked for the same.
type audience struct {
	streams atomic.Int32

	mu   sync.Mutex
	said [keptSaid]struct {
		record uint64 // its number and one
		raw    said   // nil: it is nothing to them
	}
	bytes int // of said
	// all is what there was before a record, until it is told: many come at once.
	all    []said
	before uint64
}

// open says all there is, and returns the number of the record that comes next.
func (a *audience) open(st *stream, nothing bool) (next uint64, err error) {
	if nothing {
		return st.s.mirror.next(), nil
	}
	a.mu.Lock()
	mine, next := a.all, a.before
	if mine == nil || next != st.s.mirror.next() {
		mine, next = nil, 0
	}
	a.mu.Unlock()
	for i := 0; i < len(mine) && err == nil; i++ {
		err = st.say(mine[i])
	}
	if mine != nil {
		return next, err
	}
	all, next := st.s.mirror.begin(st.kinds, st.wanted)
	slices.SortFunc(all, byKey)
	size := 0
	for _, e := range all {
		r := st.whole(e, leaves(st.subs, e, e.leaves))
		if r == nil {
			continue
		}
		raw, err := encoded(r)
		if err == nil {
			err = st.say(raw)
		}
		if err != nil {
			return next, err
		}
		if size += len(raw); size <= keptBytes {
			mine = append(mine, raw)
		}
	}
	if size <= keptBytes && a.streams.Load() > 1 {
		a.mu.Lock()
		a.all, a.before = mine, next
		a.mu.Unlock()
	}
	return next, nil
}

// maxTogether bounds the records of one message. chosen: some 20 KB.
const maxTogether = 64

// at is the path that a record is about.
func (r *record) at() []*pb.PathElem { return cmp.Or(r.is, r.was).path }

// together is how many of the first records are one message: of one look, events apart. As
// what a message deletes goes before what it sets, an entry is in it once.
func together(list []record) int {
	first := cmp.Or(list[0].is, list[0].was)
	for n := 1; n < min(len(list), maxTogether); n++ {
		r, e := &list[n], cmp.Or(list[n].is, list[n].was)
		if r.look != list[0].look || r.again || e.device != first.device || (e.kind == ofEvents) != (first.kind == ofEvents) {
			return n
		}
	}
	return min(len(list), maxTogether)
}

// tell is what the records from one on are to them: make encodes them where nobody has.
func (a *audience) tell(record uint64, make func() *pb.SubscribeResponse) (said, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if record >= a.before {
		a.all = nil
	}
	x := &a.said[record%keptSaid]
	if x.record == record+1 {
		return x.raw, nil
	}
	var raw said
	if r := make(); r != nil {
		var err error
		if raw, err = encoded(r); err != nil {
			return nil, err
		}
	}
	if x.record < record+1 && a.streams.Load() > 1 && len(raw) <= keptBytes {
		if a.bytes += len(raw) - len(x.raw); a.bytes > keptBytes {
			clear(a.said[:])
			a.bytes = len(raw)
		}
		x.record, x.raw = record+1, raw
	}
	return raw, nil
}

// changed is what records are, told together, to those subscriptions that are told of them;
// nil: nothing.
func (st *stream) changed(subs []subscription, list []record) *pb.SubscribeResponse {
	path := list[0].at()
	for _, r := range list[1:] {
		n := 0
		for at := r.at(); n < min(len(at), len(path)) && samePath(at[n:n+1], path[n:n+1]); {
			n++
		}
		path = path[:n]
	}
	n := st.notification(0, path)
	for _, r := range list {
		e := r.is
		if e == nil {
			n.Timestamp = st.s.at()
			if len(leaves(subs, r.was, r.was.leaves)) > 0 {
				n.Delete = append(n.Delete, &pb.Path{Elem: r.was.path[len(path):]})
			}
			continue
		}
		if n.Timestamp == 0 || e.kind != ofEvents { // that of events is the first one's
			n.Timestamp = e.at
		}
		set, gone := e.leaves, [][]*pb.PathElem(nil)
		if r.was != nil {
			set, gone = e.diff(r.was)
		}
		for _, p := range gone {
			if len(leaves(subs, e, []leaf{{path: p}})) > 0 {
				n.Delete = append(n.Delete, &pb.Path{Elem: slices.Concat(e.path[len(path):], p)})
			}
		}
		st.add(n, e.path[len(path):], leaves(subs, e, set))
	}
	return response(n)
}

// whole tells of leaves of an entry; nil: of none.
func (st *stream) whole(e *entry, set []leaf) *pb.SubscribeResponse {
	n := st.notification(e.at, e.path)
	st.add(n, nil, set)
	return response(n)
}

func (st *stream) notification(at int64, path []*pb.PathElem) *pb.Notification {
	return &pb.Notification{Timestamp: at, Prefix: &pb.Path{Target: st.prefix.GetTarget(), Origin: st.prefix.GetOrigin(), Elem: path}}
}

func (st *stream) add(n *pb.Notification, path []*pb.PathElem, set []leaf) {
	for _, l := range set {
		n.Update = append(n.Update, &pb.Update{Path: &pb.Path{Elem: slices.Concat(path, l.path)}, Val: typed(l.value, st.as)})
	}
}

func response(n *pb.Notification) *pb.SubscribeResponse {
	if len(n.Update)+len(n.Delete) == 0 {
		return nil
	}
	return &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}}
}

// gather finds the audience of a request; leave is for when its stream ends.
func (s *Server) gather(list *pb.SubscriptionList) (a *audience, leave func(), err error) {
	raw, err := encoded(list)
	if err != nil {
		return nil, nil, err
	}
	key := string(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a = s.audiences[key]; a == nil {
		a = &audience{}
		s.audiences[key] = a
	}
	a.streams.Add(1)
	return a, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if a.streams.Add(-1) == 0 {
			delete(s.audiences, key)
		}
	}, nil
}
