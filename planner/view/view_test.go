package view

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/view/browser"
	"ringlight/planner/wear"
	"ringlight/proto"
)

// desk is a planner that listens, whose nodes are born when told to.
type desk struct {
	t     testing.TB
	fab   *fabric.Fabric
	mu    sync.Mutex
	p     *planner.Planner
	at    time.Duration
	reads int
	gone  error
}

func newDesk(t testing.TB) *desk { return newDeskOf(t, 24) }

func newDeskOf(t testing.TB, nodes int) *desk {
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: nodes, GPUsPerNode: 4, K: 2, TP: 32})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := planner.Start(nil, f, 7)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, fab: f, p: planner.New(cfg)}
	d.step(planner.Event{Kind: planner.LinkUp})
	return d
}

func (d *desk) step(ev planner.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at += time.Millisecond
	ev.At, ev.WallMillis = d.at, uint64(d.at.Milliseconds())
	d.p.Step(ev, nil)
}

func (d *desk) born(id proto.NodeID, online bool) {
	payload, err := proto.Encode(&proto.Presence{Version: proto.Version, Node: id, Session: 9, Online: online, GPUs: 4, Bundles: 2, Modules: 8})
	if err != nil {
		d.t.Fatal(err)
	}
	d.step(planner.Event{Kind: planner.Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: "f"}.Presence(id), Payload: payload}})
}

func (d *desk) Read(_ context.Context, f func(*planner.Planner)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reads++; d.gone == nil {
		f(d.p)
	}
	return d.gone
}

func (d *desk) Ask(_ context.Context, q proto.OpRequest) (*proto.OpReply, error) {
	if q.Node != 3 {
		return nil, &proto.Error{Code: proto.NotFound, Field: "node", Reason: "no such node"}
	}
	return &proto.OpReply{Why: []proto.WhyLine{{Node: 3, Bundle: q.Bundle, Text: "external1, tuned", Measured: -3200, Expected: -3000}}}, nil
}

// drawn is a frame as a naive reader has it.
type drawn struct {
	kind, flags byte
	seq         uint64
	cells       map[uint64]string
	strips      map[uint64]string
}

func read(t *testing.T, raw []byte) drawn {
	t.Helper()
	byteOf := func() byte { b := raw[0]; raw = raw[1:]; return b }
	u := func() uint64 {
		n, size := binary.Uvarint(raw)
		if size <= 0 {
			t.Fatal("a number is cut")
		}
		raw = raw[size:]
		return n
	}
	z := func() int64 { n := u(); return int64(n>>1) ^ -int64(n&1) }
	d := drawn{kind: byteOf(), flags: byteOf(), seq: u(), cells: map[uint64]string{}, strips: map[uint64]string{}}
	for range 5 {
		u()
	}
	id := uint64(0)
	for n := u(); n > 0; n-- {
		id += u()
		text := fmt.Sprint(byteOf())
		sides := byteOf()
		text += fmt.Sprint(" ", sides, " ", byteOf())
		for _, s := range [2]byte{sides & 15, sides >> 4} {
			if s == byte(hbd.Bypassed) {
				text += fmt.Sprint(" to ", int64(id)+z())
			}
		}
		d.cells[id] = text
	}
	id = 0
	for n := u(); n > 0; n-- {
		id += u()
		text := fmt.Sprint(byteOf(), u(), u())
		at := int64(0)
		for k, size := uint64(0), u(); k < size; k++ {
			if k == 0 {
				at = int64(u())
			} else {
				at += z()
			}
			text += fmt.Sprint(" ", at)
		}
		d.strips[id] = text
	}
	if len(raw) > 0 {
		t.Fatalf("%d bytes are left", len(raw))
	}
	return d
}

// Goal: a frame says what the picture is. Method: one of every kind of cell and
// strip, through a reader of the test's own.
func TestFrames(t *testing.T) {
	x := picture{}
	x.take(planner.Snapshot{Linked: true, Serving: true, Term: 3, Last: 900_000,
		Cells: []planner.Cell{{Node: 2, Standing: hbd.Well, Side: [2]hbd.Light{hbd.Lit, hbd.Bypassed}, Peer: [2]proto.NodeID{1, 5}, Deficit: 430},
			{Node: 700, Standing: hbd.Dead, Leaving: true, Deficit: 99_000, Side: [2]hbd.Light{hbd.Bypassed, hbd.NoSide}, Peer: [2]proto.NodeID{600, 0}}},
		Strips: []planner.Strip{{Ring: 300, State: proto.RingDegraded, Gen: 77, Size: 4, Nodes: []proto.NodeID{700, 2, 9}}}}, true)
	got := read(t, x.snapshot())
	if got.kind != kindSnapshot || got.flags != 3 || got.seq != 1 || len(got.cells) != 701 || got.cells[2] != "1 33 4 to 5" || got.cells[700] != "19 2 255 to 600" ||
		got.cells[9] != "0 0 0" || got.strips[300] != "2 77 4 700 2 9" {
		t.Errorf("%+v", got)
	}
}

// Goal: who follows the stream sees what one sees who takes a snapshot; who
// comes with an old number, or does not read, is sent for a snapshot; nobody is
// let in beyond 64; and when nobody watches, the planner is left alone.
func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		v := New("mqtt://x", d)
		v.hub.now = time.Now
		ctx := t.Context()
		raw, _, err := v.hub.snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		known := read(t, raw)
		first := known.seq
		viewer, err := v.hub.join(ctx, known.seq, "")
		if err != nil {
			t.Fatal(err)
		}
		slow, _ := v.hub.join(ctx, known.seq, "")
		for i := range 400 {
			d.born(proto.NodeID(i%24), i%5 > 0)
			if i%2 == 0 {
				<-time.After(framePeriod)
			}
			for len(viewer) > 0 {
				m := <-viewer
				raw, _ := base64.StdEncoding.DecodeString(string(m.text))
				x := read(t, raw)
				if x.seq != known.seq+1 || x.seq != m.seq || x.kind != kindChanges {
					t.Fatalf("frame %d after %d", x.seq, known.seq)
				}
				known.seq = x.seq
				for id, c := range x.cells { // any order
					known.cells[id] = c
				}
			}
		}
		<-time.After(2 * framePeriod)
		for len(viewer) > 0 {
			m := <-viewer
			raw, _ := base64.StdEncoding.DecodeString(string(m.text))
			x := read(t, raw)
			known.seq = x.seq
			for id, c := range x.cells { // any order
				known.cells[id] = c
			}
		}
		raw, _, _ = v.hub.snapshot(ctx)
		if all := read(t, raw); all.seq != known.seq || fmt.Sprint(all.cells) != fmt.Sprint(known.cells) || known.seq < first+50 {
			t.Errorf("by frames %d %v\nsnapshot %d %v", known.seq, known.cells, all.seq, all.cells)
		}
		n := 0
		for range slow {
			n++ // ends: it was closed
		}
		if n != viewerQueue+keptFrames {
			t.Errorf("the slow one had %d frames", n)
		}
		for _, seq := range []uint64{first, known.seq + 1} {
			if old, err := v.hub.join(ctx, seq, ""); err != nil || !closed(old) {
				t.Errorf("from %d: %v, want to be sent for a snapshot", seq, err)
			}
		}
		if late, err := v.hub.join(ctx, known.seq-3, ""); err != nil || len(late) != 3 {
			t.Errorf("three frames late: %d waiting, %v", len(late), err)
		}
		for err == nil {
			_, err = v.hub.join(ctx, known.seq, "")
		}
		if err != errFull || len(v.hub.viewers) != maxViewers {
			t.Errorf("%v with %d viewers", err, len(v.hub.viewers))
		}
		were := maps.Clone(v.hub.viewers)
		if _, err := v.hub.join(ctx, known.seq, "another"); err != nil || len(v.hub.viewers) != maxViewers {
			t.Errorf("of another address: %v with %d viewers", err, len(v.hub.viewers))
		}
		maps.DeleteFunc(were, func(c chan message, _ string) bool { _, in := v.hub.viewers[c]; return in })
		if len(were) != 1 {
			t.Errorf("%d gave their places to one", len(were))
		}
		for out := range were { // any order: there is one
			for range out { // ends: it was closed
			}
		}
		if l := v.Load(); l != (Load{Viewers: maxViewers, Frames: known.seq - first, Dropped: 1, Refused: 1}) {
			t.Errorf("%+v after %d frames", l, known.seq-first)
		}
		for c := range v.hub.viewers { // any order: all leave
			v.hub.leave(c)
		}
		<-time.After(2 * linger)
		was := d.reads
		<-time.After(time.Minute)
		if d.reads != was {
			t.Errorf("the planner was read %d times with nobody there", d.reads-was)
		}
		viewer, _ = v.hub.join(ctx, 1<<40, "") // wakes it
		_ = viewer
		d.mu.Lock()
		d.gone = io.EOF
		d.mu.Unlock()
		<-time.After(time.Second)
		if _, _, err := v.hub.snapshot(ctx); err != io.EOF {
			t.Errorf("of a planner that is gone: %v", err)
		}
	})
}

func closed(c chan message) bool {
	select {
	case _, ok := <-c:
		return !ok
	default:
		return false
	}
}

// Goal: pages are let do nothing but ask this server; what is asked wrongly is
// told by field; sentences are those of why.
func TestPages(t *testing.T) {
	d := newDesk(t)
	d.born(3, true)
	mux := http.NewServeMux()
	New("mqtt://x", d).Mount(mux)
	for path, want := range map[string]string{ // any order
		"/": "<!doctype html>", "/view/static/view.js": "import", "/view/static/view.css": ":root", "/view/fabric": `"broker":"mqtt://x"`, "/view/status": `"total":24`,
		"/view/next": `"ageing":[]`, "/view/node/3": `"online":true`, "/view/node/24": "400 node", "/view/node/x": "400 id", "/view/ring/9": "404 ring",
		"/view/why/3/1": `"place":"3/1","rule":"","cause":"none","generation":0,"text":"external1, tuned (measured -3.20 dBm, expected -3.00 dBm)"`,
		"/view/why/4":   "404 node", "/view/why/3/99": "400 bundle", "/view/lines?from=0": `"lines"`, "/view/lines": "400 from", "/view/stream?from=x": "400", "/view/nothing": "404",
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		body := w.Body.String()
		if status, field, refused := strings.Cut(want, " "); refused && status[0] == '4' {
			var e struct{ Error struct{ Field string } }
			_ = json.Unmarshal(w.Body.Bytes(), &e)
			if fmt.Sprint(w.Code) != status || !strings.Contains(field+"id", e.Error.Field) {
				t.Errorf("%s: %d %s", path, w.Code, body)
			}
			continue
		}
		if !strings.Contains(body, want) && fmt.Sprint(w.Code) != want {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
		if csp := w.Header().Get("Content-Security-Policy"); w.Code == 200 && (csp != policy || strings.Contains(csp, "unsafe")) {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
}

// Goal: days are left only where light falls for sure. Method: readings of a
// known fall with noise, of noise alone, and of a step.
func TestTrends(t *testing.T) {
	noise := func(i int) float64 { return float64((i*7919)%41 - 20) }
	falling, level, step := &trend{}, &trend{}, &trend{}
	for i := range 600 { // ten hours
		at := float64(i) / 1440
		falling.add(at, 2500-240*at+noise(i), aStep)
		level.add(at, 2500+noise(i), aStep)
		if step.add(at, 2500+noise(i), aStep); i > 400 {
			step.add(at, 2000+noise(i), aStep)
		}
	}
	if got := falling.fall(); got < 220 || got > 260 {
		t.Errorf("a fall of 240 milli-dB a day: %.1f", got)
	}
	if a, b := level.fall(), step.fall(); a != 0 || b != 0 {
		t.Errorf("noise falls by %.1f, a step by %.1f", a, b)
	}
	if short := (&trend{Fit: wear.Fit{W: 3, VarT: 1, Both: -1}}).fall(); short != 0 {
		t.Errorf("three readings fall by %.1f", short)
	}
	d := newDesk(t)
	v := New("", d)
	v.trends.lines = map[uint64]*trend{0: level, 3<<8 | 1: falling}
	v.trends.nodes = []hbd.NodeCensus{{Known: 1, Margins: [proto.MaxBundles]proto.MilliDBm{900}}, {Node: 3, Known: 2, Margins: [proto.MaxBundles]proto.MilliDBm{0, 2400}}}
	if w := v.trends.worst(5); len(w) != 2 || w[0].Node != 3 || w[0].DaysLeft == nil || *w[0].DaysLeft < 9 || *w[0].DaysLeft > 11 || w[1].DaysLeft != nil {
		t.Errorf("%+v", w)
	}
}

// Goal: what ages has the form that the page and scripts rely on. Method: one of each, beside its text.
func TestAgeingAsJSON(t *testing.T) {
	raw, err := json.Marshal(ageing([]wear.Ageing{{Node: 3, Bundle: 1, Module: 2, Lasers: true, Is: 41_000.5, Limit: 60_000, Change: 800, Days: 23.7}, {Limit: 9e5}}))
	want := `[{"node":3,"bundle":1,"module":2,"what":"laser_bias","is":41000.5,"limit":60000,"change_per_day":800,"days_left":23.7},{"node":0,"bundle":0,"module":0,"what":"heater_power","is":0,"limit":900000,"change_per_day":0,"days_left":0}]`
	if err != nil || string(raw) != want {
		t.Errorf("%v\n%s\n%s", err, raw, want)
	}
}

// Goal: a planner that is made anew under the viewers, as one that follows is, shows
// them what has changed and nothing else. Method: one in which a node more has left a death note, the
// frame beside one of that node alone; then the same again.
func TestPlannerMadeAnewShowsWhatChanged(t *testing.T) {
	d := newDesk(t)
	d.born(3, true)
	h := hub{source: d, now: func() time.Time { return time.UnixMilli(1) }, viewers: map[chan message]string{}}
	if err := h.look(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		other := newDesk(t)
		other.born(3, true)
		other.born(5, false) // a death note
		d.p = other.p
		if err := h.look(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.kept) != 1 {
		t.Fatalf("%d frames", len(h.kept))
	}
	want := h.picture.frame(nil, kindChanges, h.picture.cells[5:6], nil)
	if got, _ := base64.StdEncoding.DecodeString(string(h.kept[0].text)); string(got) != string(want) {
		t.Errorf("frame %x, want %x", got, want)
	}
}

// Goal: pages follow a fabric that is edited: all that watch take a new picture, and
// what is asked about the new nodes is answered; the same fabric made anew lets nobody go.
// Method: the planner gets another description with more nodes, then fewer, while a
// viewer watches.
func TestViewFollowsAnEditedFabric(t *testing.T) {
	d := newDesk(t)
	v := New("mqtt://x", d)
	mux := http.NewServeMux()
	v.Mount(mux)
	get := func(path string) (int, http.Header, []byte) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Header(), w.Body.Bytes()
	}
	_, head, _ := get("/view/snapshot")
	edition := head.Get("Ringlight-Fabric")
	for _, nodes := range []int{24, 40, 16} {
		d.mu.Lock()
		d.p = newDeskOf(t, nodes).p
		d.mu.Unlock()
		seen, err := v.hub.join(t.Context(), v.hub.picture.seq, "")
		if err != nil {
			t.Fatal(err)
		}
		v.hub.turn()
		_, head, raw := get("/view/snapshot")
		var about struct {
			Nodes   int
			Edition string
		}
		if _, _, text := get("/view/fabric"); json.Unmarshal(text, &about) != nil || about.Nodes != nodes || about.Edition != head.Get("Ringlight-Fabric") || about.Edition == "" {
			t.Errorf("%d nodes: the pages say %+v, the snapshot is of %s", nodes, about, head.Get("Ringlight-Fabric"))
		}
		if cells := len(read(t, raw).cells); cells != nodes {
			t.Errorf("%d nodes: %d in the snapshot", nodes, cells)
		}
		if gone, edited := released(seen), edition != about.Edition; gone != edited {
			t.Errorf("%d nodes: viewer let go %v, edited %v", nodes, gone, edited)
		}
		edition = about.Edition
		for id, want := range map[int]int{nodes - 1: http.StatusOK, nodes: http.StatusBadRequest} {
			if code, _, text := get(fmt.Sprintf("/view/node/%d", id)); code != want {
				t.Errorf("%d nodes: node %d: %d %s", nodes, id, code, text)
			}
		}
		v.hub.leave(seen)
	}
}

// released says whether a viewer was let go.
func released(c chan message) bool {
	for {
		select {
		case _, ok := <-c:
			if !ok {
				return true
			}
		default:
			return false
		}
	}
}

// Goal: a page that is open follows an edited fabric too.
// Method: a real browser watches while the planner gets more nodes, then fewer.
func TestViewInARealBrowserFollowsAnEdit(t *testing.T) {
	if os.Getenv("RINGLIGHT_WEB") == "" {
		t.Skip("skipped: RINGLIGHT_WEB is not set (make bench-web)")
	}
	d := newDesk(t)
	mux := http.NewServeMux()
	New("mqtt://x", d).Mount(mux)
	s := httptest.NewServer(mux)
	defer s.CloseClientConnections()
	b := browser.Start(t, 1200, 800)
	b.Open(s.URL + "/")
	for _, nodes := range []int{24, 40, 16} {
		d.mu.Lock()
		d.p = newDeskOf(t, nodes).p
		d.mu.Unlock()
		b.Until(fmt.Sprintf("ringlight.about?.nodes === %[1]d && ringlight.picture?.nodes === %[1]d && ringlight.page?.canvas?.p === ringlight.picture && ringlight.live === 'live'", nodes))
	}
	if e := b.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %v", e)
	}
}
