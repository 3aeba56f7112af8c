package view

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// about is what does not change until the fabric is edited.
func (v *View) about(r *http.Request) (any, error) {
	f, edition, err := v.hub.planned(r.Context())
	if err != nil {
		return nil, err
	}
	out := map[string]any{"edition": edition.String(), "name": f.Name, "nodes": f.Nodes, "gpus_per_node": f.GPUsPerNode, "k": f.K, "tp": f.TP, "bundles": f.Bundles,
		"topology": f.Topology, "spares": f.Spares, "broker": v.broker, "core": nil, "node_names": f.NodeNames}
	if f.Core != nil {
		out["core"] = f.Core.String()
	}
	return out, nil
}

// status is what ocsctl status has, and the alarms that stand.
func (v *View) status(r *http.Request) (any, error) {
	var s proto.Status
	var alarms []proto.AlarmStatus
	if err := v.source.Read(r.Context(), func(p *planner.Planner) { s, alarms = p.Status(), p.Alarms.List() }); err != nil {
		return nil, err
	}
	causes := slices.DeleteFunc(alarms, func(a proto.AlarmStatus) bool { return a.Under != "" })
	return map[string]any{"status": proto.Plain(s), "alarms": proto.Plain(causes[:min(len(causes), proto.MaxPage)]), "alarms_total": len(causes)}, nil
}

func number(r *http.Request, field string, limit uint64) (uint64, error) {
	text := cmp.Or(r.PathValue(field), r.FormValue(field))
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > limit {
		return 0, &proto.Error{Code: proto.Invalid, Field: field, Limit: fmt.Sprintf("0 to %d", limit), Reason: fmt.Sprintf("%.20q", text)}
	}
	return n, nil
}

// node is a node with all that it reports, and where its fibres lead.
func (v *View) node(r *http.Request) (any, error) {
	var f *fabric.Fabric
	if err := v.source.Read(r.Context(), func(p *planner.Planner) { f = p.Fabric }); err != nil {
		return nil, err
	}
	id, err := number(r, "id", uint64(f.Nodes)-1)
	if err != nil {
		return nil, err
	}
	return v.members(r, nil, proto.NodeID(id))
}

// ring is a ring and its nodes.
func (v *View) ring(r *http.Request) (any, error) {
	id, err := number(r, "id", 1<<32-1)
	if err != nil {
		return nil, err
	}
	var ring *proto.RingStatus
	if err := v.source.Read(r.Context(), func(p *planner.Planner) { ring = p.Rings.Placed.Ring(proto.RingID(id)) }); err != nil {
		return nil, err
	}
	if ring == nil {
		return nil, &proto.Error{Code: proto.NotFound, Field: "ring", Reason: fmt.Sprintf("no ring %d", id)}
	}
	return v.members(r, ring, ring.Nodes...)
}

func (v *View) members(r *http.Request, ring *proto.RingStatus, ids ...proto.NodeID) (any, error) {
	var nodes []proto.NodeStatus
	var f *fabric.Fabric
	if err := v.source.Read(r.Context(), func(p *planner.Planner) { nodes, f = p.Rings.Placed.Shown(ids...), p.Fabric }); err != nil {
		return nil, err
	}
	fibres := make([]any, 0, len(nodes))
	for i := range nodes {
		fibres = append(fibres, fibresOf(f, nodes[i].Node))
	}
	return map[string]any{"ring": proto.Plain(ring), "nodes": proto.Plain(nodes), "fibres": fibres}, nil
}

// fibresOf are those of a node, by bundle and path.
func fibresOf(f *fabric.Fabric, id proto.NodeID) []map[string]any {
	out := []map[string]any{}
	for b := range f.Bundles {
		for path := proto.External1; path <= proto.External2; path++ {
			if to, crossed, ok := f.At(fabric.Port{Node: id, Bundle: proto.BundleID(b), Path: path}); ok {
				out = append(out, map[string]any{"bundle": b, "path": path.String(), "node": to.Node, "port": to.String(), "crossed": crossed})
			}
		}
	}
	return out
}

// line is one sentence.
type line struct {
	Seq        uint64           `json:"seq"` // 0: what holds now, or what only the agent knows
	Millis     uint64           `json:"at_ms"`
	Place      string           `json:"place"`
	Rule       string           `json:"rule"`
	Cause      string           `json:"cause"`
	Generation proto.Generation `json:"generation"`
	Text       string           `json:"text"`
}

func lineOf(l *proto.WhyLine) line {
	return line{l.Seq, l.AtMillis, l.Place(), l.Rule, l.Cause.String(), l.Gen, l.Sentence()}
}

// why asks as ocsctl why does, the agent too, and says the same.
func (v *View) why(r *http.Request) (any, error) {
	id, err := number(r, "node", 1<<32-1)
	if err != nil {
		return nil, err
	}
	q := proto.OpRequest{Noun: proto.NounWhy, Node: proto.NodeID(id), Bundle: -1}
	if r.PathValue("bundle") != "" {
		b, err := number(r, "bundle", proto.MaxBundles-1)
		if err != nil {
			return nil, err
		}
		q.Bundle = int16(b)
	}
	select {
	case v.asks <- struct{}{}:
		defer func() { <-v.asks }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	reply, err := v.source.Ask(r.Context(), q)
	if err != nil {
		return nil, err
	}
	lines := make([]line, len(reply.Why))
	for i := range reply.Why {
		lines[i] = lineOf(&reply.Why[i])
	}
	return map[string]any{"lines": lines}, nil
}

// maxLines bounds one answer. chosen: more than a person reads.
const maxLines = 200

// lines are entries of the journal in words, from a number on.
func (v *View) lines(r *http.Request) (any, error) {
	from, err := number(r, "from", 1<<53)
	if err != nil {
		return nil, err
	}
	var entries []planner.Entry
	if err := v.source.Read(r.Context(), func(p *planner.Planner) { entries = planner.Entries(p, from, maxLines) }); err != nil {
		return nil, err
	}
	lines := make([]line, len(entries))
	for i := range entries {
		l := entries[i].Line()
		lines[i] = lineOf(&l)
	}
	return map[string]any{"lines": lines}, nil
}

// logPage is how many entries are copied between two steps of the planner:
// some 60 us.
const logPage = 2000

// log is the whole journal in its short form (entry), from a number on.
func (v *View) log(w http.ResponseWriter, r *http.Request) {
	from, err := number(r, "from", 1<<53)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	last := planner.Entry{}
	for {
		var entries []planner.Entry
		if err := v.source.Read(r.Context(), func(p *planner.Planner) { entries = planner.Entries(p, from, logPage) }); err != nil || len(entries) == 0 {
			return
		}
		var out []byte
		for i := range entries {
			out = entry(out, &entries[i], &last)
			last = planner.Entry{Seq: entries[i].Seq, Millis: max(last.Millis, entries[i].Millis)}
		}
		if _, err := w.Write(out); err != nil {
			return
		}
		from = last.Seq + 1
	}
}
