package gnmi

import (
	"context"
	"slices"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// recordsAt are where the records of a node are, and of a port of a switch. They are the
// agent's, and asked for when a path names them: nothing else covers them, and nobody streams
// them.
var recordsAt = [...][]*pb.PathElem{elems("fabric/nodes/node/records"), elems("fabric/switches/switch/ports/port/records")}

// whose is the place in recordsAt that a path leads to, -1: to none; records of all are refused.
func whose(path []*pb.PathElem) (int, error) {
	for i, at := range recordsAt {
		if len(path) < len(at) || words(path[:len(at)]) != words(at) {
			continue
		}
		for _, list := range [...]string{"node", "switch", "port"} {
			key := map[bool]string{true: "name", false: "id"}[list == "port"]
			if _, known := one(path, list, key); !known && slices.ContainsFunc(at, func(e *pb.PathElem) bool { return e.GetName() == list }) {
				return i, proto.Wrong("path", "records of one "+list+", by its "+key, "/%s of all", words(path))
			}
		}
		return i, nil
	}
	return -1, nil
}

// records gives those of the node or port that a path names.
func (f facts) records(ctx context.Context, a *asked, give func(*entry)) error {
	if a.kinds != ofRecords {
		return nil
	}
	i, err := whose(a.elems)
	if err != nil {
		return err
	}
	at, port := recordsAt[i], ""
	id, err := idIn(a.elems, at[2].GetName())
	if err != nil {
		return err
	}
	if i == 1 {
		port, _ = one(a.elems, "port", "name")
		id += proto.FirstSwitch
	}
	left := maxUpdates / 10 // an agent may lie
	for _, length := range []string{proto.BinsQuarter, proto.BinsDay} {
		scope, err := proto.ParseBinScope(port, length, i == 1)
		if err != nil {
			return err
		}
		if err := mqtt.Pages(ctx, f.source.Ask, proto.OpRequest{Noun: proto.NounBins, Node: id, Bundle: -1, Bins: &scope}, func(r *proto.OpReply) error {
			if left -= max(1, len(r.Bins)); left < 0 {
				return tooMuch()
			}
			for i := range r.Bins {
				b := r.Bins[i].JSON("")
				name := strings.Join([]string{b.Quantity, length, b.From}, " ")
				e := newEntry(ofRecords, "record "+name, f.at(), a.elems[:len(at)], []*pb.PathElem{item("record", "name", name)})
				give(e.set("state/name", name).set("state/length", length).set("state/from", b.From).set("state/quantity", b.Quantity).set("state/unit", b.Unit).
					set("state/min", int64(b.Min)).set("state/avg", int64(b.Avg)).set("state/max", int64(b.Max)).set("state/samples", uint64(b.Samples)).set("state/suspect", b.Suspect))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
