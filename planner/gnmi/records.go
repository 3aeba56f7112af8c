package gnmi

import (
	"context"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/proto"
)

// recordsAt is where the records of a node are. They are the agent's, and asked for when a
// path names them: nothing else covers them, and nobody streams them.
var recordsAt = elems("fabric/nodes/node/records")

// isRecords says whether a path leads to records, and refuses those of all nodes.
func isRecords(path []*pb.PathElem) (bool, error) {
	if len(path) < len(recordsAt) || words(path[:len(recordsAt)]) != words(recordsAt) {
		return false, nil
	}
	if _, known := one(path, "node", "id"); !known {
		return true, invalid("path", "records of one node, by its id", "/%s of all", words(path))
	}
	return true, nil
}

// records gives those of the node that a path names.
func (f facts) records(ctx context.Context, a *asked, give func(*entry)) error {
	if a.kinds != ofRecords {
		return nil
	}
	id, err := nodeOf(a.elems)
	if err != nil {
		return err
	}
	for _, length := range []string{proto.BinsQuarter, proto.BinsDay} {
		scope, err := proto.ParseBinScope("", length, false)
		if err != nil {
			return err
		}
		for page := uint64(0); ; {
			r, err := f.source.Ask(ctx, proto.OpRequest{Noun: proto.NounBins, Node: id, Bundle: -1, Bins: &scope, Page: page})
			if err != nil {
				return err
			}
			for i := range r.Bins {
				b := r.Bins[i].JSON("")
				name := strings.Join([]string{b.Quantity, length, b.From}, " ")
				e := newEntry(ofRecords, "record "+name, f.at(), a.elems[:len(recordsAt)], []*pb.PathElem{item("record", "name", name)})
				give(e.set("state/name", name).set("state/length", length).set("state/from", b.From).set("state/quantity", b.Quantity).set("state/unit", b.Unit).
					set("state/min", int64(b.Min)).set("state/avg", int64(b.Avg)).set("state/max", int64(b.Max)).set("state/samples", uint64(b.Samples)).set("state/suspect", b.Suspect))
			}
			if page = r.Next; page == 0 {
				break
			}
		}
	}
	return nil
}
