package gnmi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/hal/sonic"
	"ringlight/proto"
)

// object is what a Set is about: an item of a list, and what its leaves are to be.
type object struct {
	asked
	values map[string]string
	drop   bool // it, or its leaves, are taken away
}

// Set does one act of an operator: all leaves that it names are of one node, side, port or
// job, or of circuits of one switch, which makes them all or none. So nothing is half done.
func (s *Server) Set(ctx context.Context, r *pb.SetRequest) (*pb.SetResponse, error) {
	who := callerOf(ctx)
	out := &pb.SetResponse{Prefix: r.GetPrefix(), Timestamp: s.at()}
	if n := len(r.GetDelete()) + len(r.GetReplace()) + len(r.GetUpdate()); n == 0 || n > maxPaths || len(r.GetUnionReplace()) > 0 {
		return nil, proto.Wrong("update", fmt.Sprintf("1 to %d of delete, replace, update", maxPaths), "%d, and %d of union_replace", n, len(r.GetUnionReplace()))
	}
	var o objects
	for _, p := range r.GetDelete() {
		if err := o.take(r.GetPrefix(), p, nil); err != nil {
			return nil, err
		}
		out.Response = append(out.Response, &pb.UpdateResult{Path: p, Op: pb.UpdateResult_DELETE})
	}
	for op, list := range map[pb.UpdateResult_Operation][]*pb.Update{pb.UpdateResult_REPLACE: r.GetReplace(), pb.UpdateResult_UPDATE: r.GetUpdate()} { // any order: of one leaf two values are refused
		for _, u := range list {
			if u.GetVal() == nil {
				return nil, proto.Wrong("val", "a value", "none of /%s", words(u.GetPath().GetElem()))
			}
			if err := o.take(r.GetPrefix(), u.GetPath(), u.GetVal()); err != nil {
				return nil, err
			}
			out.Response = append(out.Response, &pb.UpdateResult{Path: u.GetPath(), Op: op})
		}
	}
	q, err := s.act(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.May(who.leaf, q); err != nil {
		return nil, err
	}
	q.Author = who.name
	if _, err := s.source.Ask(ctx, *q); err != nil {
		return nil, err
	}
	return out, nil
}

func words(path []*pb.PathElem) string {
	names := make([]string, len(path))
	for i, e := range path {
		names[i] = e.GetName()
	}
	return strings.Join(names, "/")
}

// objects are what a Set is about: one, or circuits.
type objects []*object

// take reads one path of a Set, and its value; nil: it is to go.
func (l *objects) take(prefix, p *pb.Path, val *pb.TypedValue) error {
	a, err := ask(prefix, p)
	if err != nil {
		return err
	}
	n := 1 + slices.IndexFunc(a.elems, func(e *pb.PathElem) bool { return len(e.GetKey()) > 0 })
	for i := n; i < len(a.elems); i++ {
		if len(a.elems[i].GetKey()) > 0 {
			n = i + 1
		}
	}
	if n == 0 || !a.exact() {
		return proto.Wrong("path", "one item of a list, with its key", "/%s", words(a.elems))
	}
	if !a.schema.config {
		return proto.Wrong("path", "what may be set", "/%s is state", words(a.elems))
	}
	below := words(a.elems[n:])
	schema := a.schema
	a.elems = a.elems[:n]
	var o *object
	for _, x := range *l {
		if same := x.device == a.device && samePath(x.elems, a.elems); same {
			o = x
		} else if x.device != a.device || !x.circuit() || words(x.elems) != words(a.elems) {
			return proto.Wrong("path", "one item of a list in a Set, or circuits of one switch", "/%s, and /%s", words(x.elems), words(a.elems))
		}
	}
	if o == nil {
		o = &object{values: map[string]string{}}
		*l = append(*l, o)
	}
	if o.model != nil && o.drop != (val == nil) {
		return proto.Wrong("path", "delete, or update, of an item in a Set", "both of /%s", words(a.elems))
	}
	if o.asked, o.drop = a, val == nil; o.drop {
		return o.put(below, "")
	}
	return o.read(schema, below, val)
}

// circuit: it is a connection of a switch.
func (o *object) circuit() bool {
	return o.device != "" && o.elems[len(o.elems)-1].GetName() == "OCS_CROSS_CONNECT_LIST"
}

// put notes what a leaf is to be, once.
func (o *object) put(leaf, value string) error {
	if was, twice := o.values[leaf]; twice && was != value {
		return proto.Wrong("path", "one value of a leaf", "%s is to be %.40q and %.40q", leaf, was, value)
	}
	o.values[leaf] = value
	return nil
}

// read takes a value: of a leaf, or JSON of leaves.
func (o *object) read(s *schema, below string, val *pb.TypedValue) error {
	raw := val.GetJsonIetfVal()
	if raw == nil {
		raw = val.GetJsonVal()
	}
	if raw != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return proto.Wrong("val", "JSON", "%v", err)
		}
		if _, more := d.Token(); more != io.EOF {
			return proto.Wrong("val", "JSON", "something follows its end")
		}
		return o.spread(s, below, v)
	}
	switch v := val.GetValue().(type) {
	case *pb.TypedValue_StringVal:
		return o.spread(s, below, v.StringVal)
	case *pb.TypedValue_BoolVal:
		return o.spread(s, below, v.BoolVal)
	case *pb.TypedValue_UintVal:
		return o.spread(s, below, json.Number(strconv.FormatUint(v.UintVal, 10)))
	case *pb.TypedValue_IntVal:
		return o.spread(s, below, json.Number(strconv.FormatInt(v.IntVal, 10)))
	}
	return proto.Wrong("val", "JSON, a string, a number or a boolean", "%T", val.GetValue())
}

func (o *object) spread(s *schema, below string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v { // any order: each leaf once
			of, bare, qualified := strings.Cut(name, ":")
			if !qualified {
				bare = name
			}
			c := s.child(bare)
			if s.leaf || c == nil || !c.config || qualified && of != c.module {
				return proto.Wrong("val", "leaves that may be set", "%.60q in %s", name, s.name)
			}
			if err := o.spread(c, strings.TrimPrefix(below+"/"+bare, "/"), x); err != nil {
				return err
			}
		}
		return nil
	case string, bool, json.Number:
		if s.leaf && s.fits(v) {
			return o.put(below, fmt.Sprint(v))
		}
	}
	limit := "an object"
	if s.leaf {
		limit = cmp.Or(s.kind, "string")
	}
	return proto.Wrong("val", limit, "%s of %s", kindOf(v), s.name)
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool, json.Number:
		return fmt.Sprintf("%.40v", v)
	case []any:
		return "a list"
	}
	return fmt.Sprintf("%.40q", fmt.Sprint(v))
}

// act is what an operator would ask for.
func (s *Server) act(ctx context.Context, list objects) (*proto.OpRequest, error) {
	o := list[0]
	last := o.elems[len(o.elems)-1]
	key := o.keyLeaf()
	for _, x := range list {
		for _, name := range []string{key, "config/" + key} { // it is no news
			if x.values[name] == x.elems[len(x.elems)-1].GetKey()[key] {
				delete(x.values, name)
			}
		}
	}
	switch last.GetName() {
	case "node":
		return o.drain()
	case "side":
		return o.request()
	case "job":
		wish, ok := o.values["config/wish"]
		_, whole := o.values[""]
		name := last.GetKey()[key]
		switch {
		case o.drop && whole && len(o.values) == 1:
			return &proto.OpRequest{Noun: proto.NounRelease, Bundle: -1, Name: name}, nil
		case ok && !o.drop && len(o.values) == 1 && len(wish) <= proto.MaxPart:
			return &proto.OpRequest{Noun: proto.NounSubmit, Bundle: -1, Name: name, Text: proto.Part(wish)}, nil
		}
		return nil, proto.Wrong("path", fmt.Sprintf("config/wish of at most %d bytes, or delete of the whole job", proto.MaxPart), "of job %.64q: %.80v", name, o.values)
	}
	return s.onSwitch(ctx, list)
}

func (o *object) keyLeaf() string {
	_, at, _ := find(o.elems)
	return at.key
}

// idIn is the number of the node or switch that a path names.
func idIn(path []*pb.PathElem, list string) (proto.NodeID, error) {
	id, _ := one(path, list, "id")
	n, err := strconv.ParseUint(id, 10, 20)
	if err != nil {
		return 0, proto.Wrong("id", "the number of a "+list, "%.40q", id)
	}
	return proto.NodeID(n), nil
}

func (o *object) drain() (*proto.OpRequest, error) {
	id, err := idIn(o.elems, "node")
	if err != nil {
		return nil, err
	}
	q := &proto.OpRequest{Noun: proto.NounUndrain, Bundle: -1, Node: id, Reason: o.values["config/reason"]}
	on, there := o.values["config/drained"]
	delete(o.values, "config/reason")
	switch {
	case !there || len(o.values) != 1 || on != "true" && on != "false" && !o.drop || len(q.Reason) > proto.MaxText:
		return nil, proto.Wrong("path", "config/drained, true or false, with config/reason or without", "of node %d: %.80v", id, o.values)
	case on == "true":
		q.Noun = proto.NounDrain
	}
	return q, nil
}

func (o *object) request() (*proto.OpRequest, error) {
	id, err := idIn(o.elems, "node")
	if err != nil {
		return nil, err
	}
	q := &proto.OpRequest{Noun: proto.NounRequest, Bundle: -1, Node: id}
	side := o.elems[len(o.elems)-1].GetKey()["name"]
	if q.Side = proto.Left; side == proto.Right.String() {
		q.Side = proto.Right
	} else if side != proto.Left.String() {
		return nil, proto.Wrong("name", "left or right", "%.40q", side)
	}
	word, there := o.values["config/request"]
	if o.drop {
		word = proto.NoRequest.String()
	}
	for q.Request = proto.NoRequest; q.Request <= proto.Lockout && (q.Request.String() != word || byHand(q.Request) != q.Request); {
		q.Request++
	}
	if peer, ok := o.values["config/peer"]; ok && !o.drop {
		n, err := strconv.ParseUint(peer, 10, 31)
		if err != nil {
			return nil, proto.Wrong("peer", "the number of a node", "%.40q", peer)
		}
		q.Peer = new(proto.NodeID(n))
	}
	delete(o.values, "config/peer")
	if !there || len(o.values) != 1 || q.Request > proto.Lockout {
		return nil, proto.Wrong("path", "config/request: no_request, manual_switch, forced_switch or lockout, with config/peer or without", "of a side of node %d: %.80v", id, o.values)
	}
	return q, nil
}

// onSwitch is a port of a switch, or connections, which package sonic judges.
func (s *Server) onSwitch(ctx context.Context, list objects) (*proto.OpRequest, error) {
	device, container := list[0].device, list[0].elems[1].GetName()
	v, err := s.view(ctx, device)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(device, targetPrefix)) // it was found by that
	q := &proto.OpRequest{Noun: proto.NounConnect, Bundle: -1, Node: proto.FirstSwitch + proto.NodeID(n), Reason: "set over gNMI"}
	var rows []map[string]string
	for _, o := range list {
		last, leaf := o.elems[len(o.elems)-1], o.keyLeaf()
		row := map[string]string{leaf: last.GetKey()[leaf]}
		_, whole := o.values[""]
		switch {
		case !o.drop:
			maps.Copy(row, o.values)
			delete(row, "")
			rows = append(rows, row)
		case !o.circuit() || !whole:
			return nil, proto.Wrong("path", "delete of a whole circuit", "/%s of %v", container, row)
		default:
			q.Gone = append(q.Gone, row[leaf])
		}
	}
	b := &box{v: v}
	if len(rows) > 0 {
		server := sonic.Server{Box: b, Dialect: sonic.Tables}
		body, _ := json.Marshal(map[string]any{"sonic-ocs:" + container: map[string]any{list[0].elems[2].GetName(): rows}}) // strings always encode
		status, reply := server.Answer(http.MethodPatch, "/restconf/data/sonic-ocs:sonic-ocs/"+container, body)
		if status >= http.StatusBadRequest {
			return nil, refusedBy(status, reply)
		}
	}
	for _, c := range b.add {
		q.Names = append(q.Names, c.ID)
	}
	for _, key := range slices.Concat(q.Names, q.Gone) {
		from, to, _ := strings.Cut(key, "-")
		_, _, err := (&sonic.Connection{ID: key, A: from, B: to}).Ports()
		if at := slices.IndexFunc(b.add, func(c sonic.Connection) bool { return c.ID == key }); err != nil || at >= 0 && (b.add[at].A != from || b.add[at].B != to) {
			return nil, proto.Wrong("cross_connect_id", "that of its ports, such as 1A-2B", "%.40q", key)
		}
	}
	if len(q.Names)+len(q.Gone) > 0 {
		return q, nil
	}
	if len(b.set) != 1 || b.set[0].Override == nil || *b.set[0].Override == proto.PoweredOff.String() {
		return nil, proto.Wrong("config_status", "normal or force_blocked: the planner takes ports out, or lets them in", "%.80v", rows)
	}
	noun := proto.NounDrain
	if *b.set[0].Override == proto.Normal.String() {
		noun = proto.NounUndrain
	}
	return &proto.OpRequest{Noun: noun, Bundle: -1, Name: portPart(n, b.set[0].Side, b.set[0].Port), Reason: q.Reason}, nil
}

// refusedBy is a refusal of package sonic as one of ours.
func refusedBy(status int, reply []byte) error {
	var said struct {
		Errors struct {
			Error []struct {
				Message string `json:"error-message"`
			}
		} `json:"ietf-restconf:errors"`
	}
	e := &proto.Error{Code: proto.Invalid, Field: "val", Reason: string(reply)}
	if json.Unmarshal(reply, &said) == nil && len(said.Errors.Error) > 0 {
		e.Reason = proto.Clip(said.Errors.Error[0].Message)
	}
	switch status {
	case http.StatusNotFound:
		e.Code = proto.NotFound
	case http.StatusMethodNotAllowed:
		e.Code = proto.Unsupported
	case http.StatusConflict:
		e.Code = proto.Conflict
	}
	return e
}
