package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/planner/core"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Where a fabric names routers, routes are part of a job: it is ready when each of them
// was read back to hold what it must, and what a router may hold of a job that is over
// is owed to be taken away, over restarts too. Who pushes and reads back is not here:
// he asks what is wanted, and says what he read.

const prefixRouted = "routed/" // of the store: RouterJob, by job and router

// RouterJob is what a router must hold of a job, and what it is known to hold.
type RouterJob struct {
	Job   string `json:"job"`
	Want  string `json:"want,omitempty"` // digest of the routes; absent: none, any more
	Held  bool   `json:"held"`           // it was read back to hold those; false: nobody knows what it holds
	Says  string `json:"says,omitempty"` // why it does not hold what it must
	Since uint64 `json:"since_ms"`       // that it must, by the planner's clock
}

// Router is a leaf, a spine or a server that passes packets on. Of its jobs those come
// first that must be taken away.
type Router struct {
	Router string      `json:"router"`
	Jobs   []RouterJob `json:"jobs"`
	// Ports that it is asked to drain, or to use again.
	Ports []PortDrain `json:"ports,omitempty"`
}

// Routed is what somebody read back from a router.
type Routed struct {
	Has  string `json:"has"`            // digest of the routes; "": it holds none of the job
	Says string `json:"says,omitempty"` // why it does not hold what it must; then Has counts for nothing
}

// PortDrain and PortSaid are of ports that routers are asked to drain.
type (
	PortDrain = core.PortDrain
	PortSaid  = core.PortSaid
)

// ledger is what routers hold, by job and router.
type ledger map[string]map[string]*RouterJob

func routedKey(job, router string) string { return prefixRouted + job + "/" + router }

// restore takes one record of the store.
func (l ledger) restore(rest string, raw []byte) error {
	id, router, _ := strings.Cut(rest, "/")
	if err := CheckID(id); err != nil || router == "" {
		return cmp.Or(err, error(proto.Wrong("router", "a name", "none")))
	}
	r := &RouterJob{}
	if l[id] == nil {
		l[id] = map[string]*RouterJob{}
	}
	l[id][router] = r
	return json.Unmarshal(raw, r)
}

// want sets what routers must hold of a job, and gives what of that is new.
func (l ledger) want(id string, digests map[string]string, wall uint64) (records []journal.Record) {
	if l[id] == nil {
		l[id] = map[string]*RouterJob{}
	}
	of := l[id]
	for router, d := range digests { // any order: records are sorted
		if of[router] == nil || of[router].Want != d {
			of[router] = &RouterJob{Job: id, Want: d, Since: wall}
			records = append(records, journal.Encode(routedKey(id, router), of[router]))
		}
	}
	for router, r := range of { // any order, as before
		if digests[router] == "" && r.Want != "" {
			of[router] = &RouterJob{Job: id, Since: wall}
			records = append(records, journal.Encode(routedKey(id, router), of[router]))
		}
	}
	if len(of) == 0 {
		delete(l, id)
	}
	slices.SortFunc(records, func(a, b journal.Record) int { return cmp.Compare(a.Key, b.Key) })
	return records
}

// leaving is another job of which a router must hold nothing any more, "" where there
// is none.
func (l ledger) leaving(router, but string) string {
	for _, id := range slices.Sorted(maps.Keys(l)) {
		if r := l[id][router]; r != nil && r.Want == "" && id != but {
			return id
		}
	}
	return ""
}

// lacks says which router does not hold what it must of a job; refused: it says so.
func (l ledger) lacks(id string) (why string, refused bool) {
	silent, first := 0, ""
	for _, router := range slices.Sorted(maps.Keys(l[id])) {
		r := l[id][router]
		switch {
		case r.Want == "" || r.Held:
		case r.Says != "":
			return fmt.Sprintf("routes: %s: %s", router, r.Says), true
		case silent == 0:
			silent, first = 1, router
		default:
			silent++
		}
	}
	switch old := l.leaving(first, id); {
	case silent == 0:
		return "", false
	case old != "":
		return fmt.Sprintf("routes: %s may still hold those of job %s", first, old), false
	case silent > 1:
		return fmt.Sprintf("routes: %s and %d more have not confirmed", first, silent-1), false
	}
	return fmt.Sprintf("routes: %s has not confirmed", first), false
}

// portsOf is between a router and its port in the name of what Routed takes.
const portsOf = "/ports"

// Routed takes what somebody read back from a router; name is ROUTER/JOB, or
// ROUTER/ports/PORT.
func (t *Table) Routed(name, text string) error {
	at := strings.LastIndex(name, "/")
	if at < 1 {
		return proto.Wrong("router", "ROUTER/JOB", "%.80q", name)
	}
	router, id := name[:at], name[at+1:]
	if router, is := strings.CutSuffix(router, portsOf); is {
		return t.said(router, id, text)
	}
	if err := CheckID(id); err != nil {
		return err
	}
	var got Routed
	if err := proto.DecodeFile([]byte(text), &got); err != nil {
		return proto.Wrong("body", `{"has": DIGEST, "says": TEXT}`, "%v", err)
	}
	if err := t.Busy(); err != nil {
		return err
	}
	r := t.routers[id][router]
	conflict := func(field, limit, format string, args ...any) error {
		return &proto.Error{Code: proto.Conflict, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case r == nil && got.Has == "" && got.Says == "":
		return nil // it is known already
	case r == nil:
		return &proto.Error{Code: proto.NotFound, Field: "router", Limit: "one that holds routes of the job: GET /v1/routers", Reason: fmt.Sprintf("%.80q has none of job %s", router, id)}
	case got.Says != "":
		t.note(id, router, RouterJob{Job: id, Want: r.Want, Says: proto.Clip(got.Says), Since: r.Since})
	case r.Want == "" && got.Has != "":
		return conflict("has", "nothing: the job has ended there", "%.80q", got.Has)
	case r.Want == "":
		delete(t.routers[id], router)
		t.stored++
		t.j.Persist(journal.Record{Key: routedKey(id, router)})
		t.routers.want(id, nil, 0) // an empty row goes
	case got.Has != r.Want:
		return conflict("has", r.Want, "%.80q", got.Has)
	case !r.Held && t.routers.leaving(router, id) != "":
		return conflict("router", "one without routes of jobs that are over", "%s may still hold those of job %s", router, t.routers.leaving(router, id))
	default:
		t.note(id, router, RouterJob{Job: id, Want: r.Want, Held: true, Since: r.Since})
	}
	if x := t.jobs[id]; x != nil {
		t.look(x)
	}
	return nil
}

// said takes what somebody read back from a router of a port.
func (t *Table) said(router, port, text string) error {
	var got PortSaid
	if err := proto.DecodeFile([]byte(text), &got); err != nil {
		return proto.Wrong("body", `{"drained": BOOL, "says": TEXT}`, "%v", err)
	}
	if err := t.Busy(); err != nil {
		return err
	}
	if t.core == nil {
		return proto.Wrong("router", "one of a core: there is none", "%.80q", router)
	}
	for device := range t.core.Drains() { // any order: one at most
		if deviceName(t.fab(), device) == router {
			router = device
			break
		}
	}
	return t.core.Said(router, port, got)
}

// note writes down what a router is known to hold, where that is new.
func (t *Table) note(id, router string, next RouterJob) {
	was := t.routers[id][router]
	if *was == next {
		return
	}
	t.routers[id][router] = &next
	t.stored++
	t.j.Persist(journal.Encode(routedKey(id, router), next))
	if next.Says != "" && next.Says != was.Says {
		t.j.Note(journal.Warn, "router does not hold its routes", journal.Note{Rule: "routes", Node: -1, Text: proto.Clip(fmt.Sprintf("%s, job %s: %s", router, id, next.Says))})
	}
}

// Routers are those that hold, or may hold, routes of jobs.
func (t *Table) Routers() []Router {
	of := map[string][]RouterJob{}
	for _, id := range slices.Sorted(maps.Keys(t.routers)) {
		for router, r := range t.routers[id] { // any order: sorted below
			of[router] = append(of[router], *r)
		}
	}
	ports := map[string][]PortDrain{}
	if t.core != nil {
		for device, list := range t.core.Drains() { // any order: sorted below
			router := deviceName(t.fab(), device)
			if ports[router] = list; of[router] == nil {
				of[router] = []RouterJob{}
			}
		}
	}
	out := []Router{}
	for _, router := range slices.Sorted(maps.Keys(of)) {
		slices.SortStableFunc(of[router], func(a, b RouterJob) int { return cmp.Compare(min(1, len(a.Want)), min(1, len(b.Want))) })
		out = append(out, Router{router, of[router], ports[router]})
	}
	return out
}

// digests are those of a job's routes by router.
func digests(routes []core.Route, of func(device string) (name string, counts bool)) map[string]string {
	text := map[string]*strings.Builder{}
	for _, r := range routes {
		name, counts := of(r.At)
		if !counts {
			continue
		}
		if text[name] == nil {
			text[name] = &strings.Builder{}
		}
		fmt.Fprintf(text[name], "%s %d %d %s %s\n", r.In, r.From, r.To, r.Out, r.Next)
	}
	out := map[string]string{}
	for name, b := range text { // any order: each by itself
		sum := sha256.Sum256([]byte(b.String()))
		out[name] = hex.EncodeToString(sum[:8])
	}
	return out
}

// wantRoutes asks routers to hold what a job has them hold where it stands now. What
// that is is worked out again only where the job's place has changed.
func (t circuitJobs) wantRoutes(x *job, l *core.Lent) {
	c := t.table.fab().Core
	if c == nil || len(c.Routers) == 0 {
		return
	}
	var want map[string]string
	if l.State != proto.JobWaiting && l.State != proto.JobStandby {
		stamp := t.table.core.Stamp(x.Number)
		if stamp == x.stamp {
			return
		}
		x.stamp = stamp
		routes, _ := t.table.core.Routes(x.Number)()
		want = digests(routes, func(device string) (string, bool) { return deviceName(t.table.fab(), device), c.Confirms(device) })
	} else {
		x.stamp = ""
	}
	t.table.storeAll(t.table.routers.want(x.ID, want, t.table.j.Wall))
}

// storeAll writes records down, if there are any.
func (t *Table) storeAll(records []journal.Record) {
	if len(records) > 0 {
		t.stored++
		t.j.Persist(records...)
	}
}

// routePatience is how long a router may say nothing of its routes before that is an
// alarm. chosen: some tries of who pushes them.
const routePatience = 60_000 // ms

// Unrouted tells which routers do not hold what they must, and say so or have said
// nothing for too long, and which have not drained a port, or do not use it again.
func (t *Table) Unrouted(tell func(router string, r RouterJob), undrained func(router string, p PortDrain)) {
	for _, router := range t.Routers() {
		for _, p := range router.Ports {
			if p.Overdue {
				undrained(router.Router, p)
			}
		}
		for _, r := range router.Jobs {
			if !r.Held && (r.Says != "" || t.j.Wall > r.Since+routePatience) {
				tell(router.Router, r)
			}
		}
	}
}

// DigestHeader has, with a file of routes, the digest of those.
const DigestHeader = "Ringlight-Routes"

// RoutesDigest is that of the routes that a file has of one device; "": another file.
func (v *View) RoutesDigest(file string) string {
	for _, d := range dialects {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(file, routesPrefix+"_"), d.suffix); ok && v.routes != nil {
			routes, _ := v.routes()
			return digests(routes, func(device string) (string, bool) {
				return deviceName(v.fab, device), deviceName(v.fab, device) == name
			})[name]
		}
	}
	return ""
}
