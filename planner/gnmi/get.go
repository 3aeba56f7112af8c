package gnmi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/proto"
)

// maxAnswer bounds an answer of Get. chosen: what clients of gRPC take.
const maxAnswer = 4 << 20

// Get answers each path by a notification of its own: as JSON by one document where it leads
// to one place, else leaf by leaf.
func (s *Server) Get(ctx context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
	as, err := encoding(r.GetEncoding())
	if err != nil {
		return nil, err
	}
	for _, m := range r.GetUseModels() {
		if !slices.ContainsFunc(models, func(x *model) bool { return x.module == m.GetName() }) {
			return nil, proto.Wrong("use_models", "those of Capabilities", "%.60q", m.GetName())
		}
	}
	paths, _, err := askAll(r.GetPrefix(), r.GetPath())
	if err != nil {
		return nil, err
	}
	out, size := &pb.GetResponse{}, 0
	for i := range paths {
		a := &paths[i]
		n, err := s.answer(ctx, a, r, as)
		if err != nil {
			return nil, err
		}
		for _, u := range n.Update {
			if size += len(u.GetVal().GetJsonIetfVal()) + len(u.GetVal().GetJsonVal()) + 64; size > maxAnswer {
				return nil, tooMuch()
			}
		}
		out.Notification = append(out.Notification, n)
	}
	return out, nil
}

func tooMuch() error {
	return &proto.Error{Code: proto.TooLarge, Field: "path", Limit: fmt.Sprintf("%d bytes, %d leaves", maxAnswer, maxUpdates), Reason: "the answer is longer: ask for less, or subscribe"}
}

// kept says which leaves a Get wants: of state, of configuration, or both.
func (a *asked) kept(e *entry, l leaf, t pb.GetRequest_DataType) bool {
	if !wants(a.elems, e, l.path) {
		return false
	}
	if t == pb.GetRequest_ALL {
		return true
	}
	_, s, err := find(slices.Concat(e.path, l.path))
	return err == nil && s.config == (t == pb.GetRequest_CONFIG)
}

func (s *Server) answer(ctx context.Context, a *asked, r *pb.GetRequest, as pb.Encoding) (*pb.Notification, error) {
	n := &pb.Notification{Timestamp: s.at(), Prefix: r.GetPrefix()}
	var found []*entry
	leaves := 0
	take := func(e *entry) {
		if a.covers(e) {
			found, leaves = append(found, e), leaves+len(e.leaves)
		}
	}
	if err := s.all(ctx, a.kinds, a.elems, a.devices(), take); err != nil {
		return nil, err
	}
	if err := s.records(ctx, a, take); err != nil {
		return nil, err
	}
	if leaves > maxUpdates {
		return nil, tooMuch()
	}
	keep := func(e *entry, l leaf) bool { return a.kept(e, l, r.GetType()) }
	if as != pb.Encoding_PROTO && a.exact() {
		doc := document(a.elems, found, keep, as)
		if doc == nil && a.missing() {
			return nil, a.notFound()
		}
		raw, err := json.Marshal(cmp.Or(doc, any(struct{}{})))
		if err != nil {
			return nil, err
		}
		n.Update = []*pb.Update{{Path: a.Path, Val: jsonValue(raw, as)}}
		return n, nil
	}
	for _, e := range found {
		for _, l := range e.leaves {
			if keep(e, l) {
				n.Update = append(n.Update, &pb.Update{Path: &pb.Path{Elem: slices.Concat(e.path, l.path)[len(r.GetPrefix().GetElem()):]}, Val: typed(l.value, as)})
			}
		}
	}
	if len(n.Update) == 0 && a.exact() && a.missing() {
		return nil, a.notFound()
	}
	return n, nil
}

// missing: that nothing is there is an error, as the path names an item of a list.
func (a *asked) missing() bool {
	return slices.ContainsFunc(a.elems, func(e *pb.PathElem) bool { return len(e.GetKey()) > 0 })
}

func (a *asked) notFound() error {
	last := a.elems[len(a.elems)-1]
	return &proto.Error{Code: proto.NotFound, Field: "path", Reason: fmt.Sprintf("there is no %s %.80v", last.GetName(), last.GetKey())}
}
