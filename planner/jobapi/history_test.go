package jobapi

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// asked is one thing that a client asked for: a job by its name and size, its
// release, or how it stands.
type asked struct {
	verb string // put, release, get
	id   string
	tp   int
}

// answered is what came of it: a code, and of a get the size of the wish, 0 when
// it has ended; or nothing was ever heard.
type answered struct {
	code    proto.Code
	tp      int
	unknown bool
}

// A job as one clerk with one book would keep it: never asked for, asked for in a
// size, or ended.
const (
	never = 0
	ended = -1
)

// jobModel is that clerk. Who was not answered was served, or not.
var jobModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) (out [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, o := range history {
			id := o.Input.(asked).id
			by[id] = append(by[id], o)
		}
		for _, id := range slices.Sorted(maps.Keys(by)) {
			out = append(out, by[id])
		}
		return out
	},
	Init: func() []any { return []any{never} },
	Step: func(state, input, output any) (next []any) {
		s, q, r := state.(int), input.(asked), output.(answered)
		does, code, tp := s, proto.OK, 0
		switch {
		case q.verb == "put" && s > 0 && s != q.tp:
			code = proto.Conflict
		case q.verb == "put":
			does = q.tp
		case s == never:
			code = proto.NotFound
		case q.verb == "release":
			does = ended
		default:
			tp = max(s, 0)
		}
		switch {
		case r.unknown:
			return []any{s, does}
		case r.code == proto.Busy: // no planner in service: it was not done
			return []any{s}
		case r.code == code && r.tp == tp:
			return []any{does}
		}
		return nil
	},
}

// history is clients at a planner that is killed again and again, on a clock of its
// own: everything that happens is drawn from one seed.
type history struct {
	t       *testing.T
	rnd     *rand.Rand
	host    *planner.Host
	life    uint64
	now     time.Duration
	at      int64 // moment of the history
	disk    map[string][]byte
	storing []planner.Record
	open    map[proto.Corr]int // operations that wait for an answer
	ops     []porcupine.Operation
	corr    uint16
	kills   int
	early   bool // defect: an answer leaves before its record is on disk
	hasty   bool // defect: a job is read while its record is on its way
	held    []planner.Record
}

func (h *history) Now() (time.Duration, uint64) {
	return h.now, 1_000_000 + uint64(h.now.Milliseconds())
}
func (h *history) Log(*planner.Line) {}
func (h *history) Send(p proto.Packet) {
	var r proto.OpReply
	if !strings.HasSuffix(p.Topic, "/rep") {
		return
	}
	if _, err := proto.Decode(p.Payload, &r); err != nil {
		h.t.Fatal(err)
	}
	if i, waits := h.open[r.Corr]; waits {
		delete(h.open, r.Corr)
		h.end(i, answered{code: r.Code})
	}
}

func (h *history) moment() int64 { h.at++; return h.at }

func (h *history) end(i int, r answered) { h.ops[i].Output, h.ops[i].Return = r, h.moment() }

// begin starts an operation, and gives its place in the history.
func (h *history) begin(q asked) int {
	h.ops = append(h.ops, porcupine.Operation{Input: q, Call: h.moment()})
	return len(h.ops) - 1
}

// start makes a planner from what the disk holds, and tells it of its one node.
func (h *history) start() {
	var st planner.State
	for k, v := range h.disk { // any order: sorted below
		st = append(st, planner.Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b planner.Record) int { return strings.Compare(a.Key, b.Key) })
	h.life++
	cfg, err := planner.Start(st, fabric.Default(), h.life)
	if err != nil {
		h.t.Fatal(err)
	}
	cfg.Alone = true
	h.host = planner.NewHost(cfg, h)
	h.host.Deliver(proto.Packet{Kind: proto.LinkUp})
	topics := proto.Topics{Fabric: "f1"}
	h.say(topics.Presence(0), &proto.Presence{Version: proto.Version, Session: 1, Online: true, GPUs: 4, Bundles: 2})
	h.say(topics.Reported(0), &proto.Reported{Version: proto.Version, Session: 1, Seq: 1, Mode: proto.ModeService})
}

func (h *history) say(topic string, m any) {
	payload, err := proto.Encode(m)
	if err != nil {
		h.t.Fatal(err)
	}
	h.host.Deliver(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload})
}

// kill ends the planner at once: what it was about to say is lost, and of what it
// was storing the disk has all or nothing.
func (h *history) kill() {
	h.kills++
	if h.storing != nil && h.rnd.IntN(2) == 0 {
		h.write()
	}
	h.storing = nil
	for corr := range h.open { // any order: each by itself
		h.ops[h.open[corr]].Output = answered{unknown: true}
	}
	h.open = map[proto.Corr]int{}
	h.start()
}

func (h *history) write() {
	for _, r := range h.storing {
		if r.Value == nil {
			delete(h.disk, r.Key)
		} else {
			h.disk[r.Key] = r.Value
		}
	}
	h.storing = nil
}

// ask sends a request, sometimes twice, as a broker may.
func (h *history) ask(q asked) {
	h.corr++
	r := proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Corr: proto.Corr{byte(h.corr), byte(h.corr >> 8), 1}, Bundle: -1, Name: q.id, Noun: proto.NounRelease}
	if q.verb == "put" {
		r.Noun, r.Text = proto.NounSubmit, proto.Part(fmt.Sprintf(`{"tp":%d}`, q.tp))
	}
	h.open[r.Corr] = h.begin(q)
	for range 1 + h.rnd.IntN(4)/3 {
		h.say(proto.Topics{Fabric: "f1"}.Request("c"+strconv.Itoa(len(h.open))), &r)
	}
}

// get reads a job as the API does, when nothing of the planner is on its way to the disk.
func (h *history) get(id string) {
	i := h.begin(asked{verb: "get", id: id})
	v, err := h.host.Planner().Jobs.Get(id)
	var e *proto.Error
	switch {
	case errors.As(err, &e):
		h.end(i, answered{code: e.Code})
	case v.State == job.Released:
		h.end(i, answered{})
	default:
		h.end(i, answered{tp: v.Wish.TP})
	}
}

// step does one thing that may happen next.
func (h *history) step() {
	id := "j" + strconv.Itoa(h.rnd.IntN(2))
	due := false
	if h.storing == nil {
		if h.storing, due = h.host.Transaction(); due && h.early {
			h.host.Stored()
			h.held = append(h.held, h.storing...)
			h.storing = nil
		}
	}
	if h.early && len(h.held) > 0 && h.rnd.IntN(3) == 0 {
		h.storing, h.held = h.held, nil
		h.write()
	}
	switch n := h.rnd.IntN(100); {
	case n < 2:
		h.held = nil
		h.kill()
	case n < 12 && len(h.open) < 4:
		h.ask(asked{verb: "put", id: id, tp: 16 << h.rnd.IntN(2)})
	case n < 18 && len(h.open) < 4:
		h.ask(asked{verb: "release", id: id})
	case n < 32, n < 44 && h.hasty && h.storing != nil:
		if h.hasty || h.storing == nil {
			h.get(id)
		}
	case n < 55 && h.storing != nil:
		h.write()
		h.host.Stored()
	case h.storing == nil:
		if _, more := h.host.Step(); !more && h.host.Next() < planner.Never {
			h.now = max(h.now, h.host.Next())
			h.host.Tick()
		}
	}
}

// run is one history, judged.
func (h *history) run(t *testing.T, seed uint64) bool {
	h.t, h.rnd = t, rand.New(rand.NewPCG(seed, 25))
	h.disk, h.open = map[string][]byte{}, map[proto.Corr]int{}
	h.start()
	for range 1500 {
		h.step()
	}
	last := h.moment()
	for i := range h.ops {
		if o := &h.ops[i]; o.Output == nil || o.Output.(answered).unknown {
			o.Output, o.Return = answered{unknown: true}, last // it may take effect at any time, or never
		}
	}
	return porcupine.CheckOperations(jobModel.ToModel(), h.ops)
}

// Goal: whoever asks for jobs, releases and reads them sees one book, kept by one
// clerk: every answer is as if all that was asked were done one after the other, each
// between its question and its answer, over kills of the planner at any moment, with
// a transaction half done; only who was not answered does not know. And the judge
// judges: an answer that leaves before the disk has its record, and a job that is read
// while its record is on its way, are each found.
// Method: random histories, a seed each (RINGLIGHT_HISTORIES of them), of up to four
// clients and two names, judged by porcupine.
func TestJobHistoriesAreLinearizable(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("RINGLIGHT_HISTORIES"))
	if seeds == 0 {
		if seeds = 10; testing.Short() {
			seeds = 4
		}
	}
	ops, kills, unknown := 0, 0, 0
	codes := map[proto.Code]int{}
	for seed := range uint64(seeds) {
		h := &history{}
		if !h.run(t, seed) {
			t.Errorf("seed %d: not linearizable", seed)
		}
		for _, o := range h.ops {
			if r := o.Output.(answered); r.unknown {
				unknown++
			} else {
				codes[r.code]++
			}
		}
		ops, kills = ops+len(h.ops), kills+h.kills
	}
	t.Logf("%d histories: %d operations, %d kills, %d never answered; %v", seeds, ops, kills, unknown, codes)
	for _, c := range []proto.Code{proto.OK, proto.Conflict, proto.NotFound} {
		if codes[c] == 0 {
			t.Errorf("no answer was %v", c)
		}
	}
	for name, plant := range map[string]func(*history){ // any order: each by itself
		"an answer before its record": func(h *history) { h.early = true },
		"a read of what is not kept":  func(h *history) { h.hasty = true },
	} {
		found := 0
		for seed := range uint64(20) {
			h := &history{}
			if plant(h); !h.run(t, seed) {
				found++
			}
		}
		if t.Logf("%s: found in %d of 20 histories", name, found); found == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
