package member

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
	"ringlight/sim/script"
)

// Goal: no state is left or entered but by the edges that are drawn.
// Method: every pair of states, of devices and of transactions.
func TestIllegalEdgesPanic(t *testing.T) {
	panics := func(f func()) (text string) {
		defer func() {
			if r := recover(); r != nil {
				text = fmt.Sprint(r)
			}
		}()
		f()
		return ""
	}
	legal := 0
	for from := range Disputed + 1 {
		for to := range Disputed + 1 {
			d := Device{state: from}
			text := panics(func() { d.become(to) })
			if text == "" {
				legal++
			} else if text != fmt.Sprintf("member: illegal edge %v to %v", from, to) || d.state != from {
				t.Errorf("%v to %v: %q, now %v", from, to, text, d.state)
			}
			if drawn := edges[from]&(1<<to) != 0; drawn != (text == "") {
				t.Errorf("%v to %v: drawn %v, %q", from, to, drawn, text)
			}
		}
	}
	for from := range Deciding + 1 {
		for to := range Deciding + 1 {
			x := Txn{phase: from}
			if text := panics(func() { x.become(to) }); (text == "") != (phaseEdges[from]&(1<<to) != 0) {
				t.Errorf("%v to %v: %q", from, to, text)
			}
		}
	}
	if legal != 18 {
		t.Errorf("%d edges, 18 are drawn", legal)
	}
}

// Goal: what becomes of a device, word by word, and of a generation on its way
// to two. Method: scripts; commands are in world.do.
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(*testing.T) func([]string) string { return newWorld().do })
}

// world is a table of two nodes, an owner that writes down the news, and a
// root that writes down the terms.
type world struct {
	j     *journal.Journal
	t     *Table
	x     Txn
	out   strings.Builder
	stuck bool          // the owner tells anew what the sweep would send again
	corr  [2]proto.Corr // of the last commands, the last first
}

func newWorld() *world {
	w := &world{j: journal.New()}
	w.j.Topics, w.j.Term, w.j.LinkUp = proto.Topics{Fabric: "f"}, 3, true
	w.t = NewTable(0, 2, w.j, w, w)
	w.t.Numbers.Gen, w.t.Numbers.Fresh = 100, false
	w.x = NewTxn(w.t)
	return w
}

func (w *world) Voiced() {
	terms, there := w.t.Numbers.Voices(nil)
	fmt.Fprintf(&w.out, "terms %d of %d there\n", terms, there)
}
func (w *world) Answer(d *Device, m *proto.Ack) { fmt.Fprintf(&w.out, "answer of %d\n", d.ID) }
func (w *world) Resendable(*Device) bool        { return !w.stuck }

var newsNames = [...]string{"birth", "gone", "away", "reported", "spoke", "weighed"}

func (w *world) Told(d *Device, m *proto.Event) {
	fmt.Fprintf(&w.out, "told of %d: %s %d\n", d.ID, d.state, m.Seq)
}

func (w *world) News(n News) {
	d := n.Device
	fmt.Fprintf(&w.out, "%s of %d: %s", newsNames[n.Kind], d.ID, d.state)
	for flag, on := range map[string]bool{" again": n.Again, " first": n.First, " broke": n.Broke} { // any order: one at most
		if on {
			w.out.WriteString(flag)
		}
	}
	if n.Why != "" {
		w.out.WriteString(": " + n.Why)
	}
	w.out.WriteString("\n")
	if n.Kind == Spoke && n.Ack.Phase == proto.PhasePrepare {
		v := w.x.Answer(d, n.Ack)
		fmt.Fprintf(&w.out, "verdict %s\n", [...]string{"ignored", "lost", "refused", "prepared", "complete"}[v])
		if v == Refused {
			d.Refuse(n.Ack, w.j.Now)
		}
	}
}

func (w *world) do(words []string) string {
	w.out.Reset()
	w.j.Begin(w.j.Now, 0, nil)
	num := func(i int) uint64 {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	device := func() *Device { return w.t.Find(proto.NodeID(num(1))) }
	if slices.Contains([]string{"birth", "report", "sealed", "event", "ack", "health"}, words[0]) {
		device().Live(w.t)
	}
	switch words[0] {
	case "kept": // NODE SESSION: a birth that the broker kept
		if m := (&proto.Presence{Node: device().ID, Online: true, Session: proto.Session(num(2))}); !device().Echo(w.t, m.Session) {
			w.t.Presence(device(), m)
		}
	case "birth": // NODE SESSION [TERM [HOST]]
		m := &proto.Presence{Node: device().ID, Online: true, Session: proto.Session(num(2))}
		if len(words) > 3 {
			m.SeenTerm = proto.Term(num(3))
		}
		if len(words) > 4 {
			m.Host = words[4]
		}
		w.t.Presence(device(), m)
	case "death": // NODE SESSION
		w.t.Presence(device(), &proto.Presence{Node: device().ID, Session: proto.Session(num(2))})
	case "report", "sealed": // NODE SESSION SEQ [applied | answers | the last event's number]; it answers the last command
		m := &proto.Reported{Session: proto.Session(num(2)), Seq: num(3)}
		if len(words) > 4 && words[4] == "answers" {
			m.Answers = &w.corr[0]
		} else if len(words) > 4 && words[4] != "applied" {
			m.LastEvent = num(4)
		} else if len(words) > 4 {
			m.Term, m.Generation, m.Plan = w.x.Term, w.x.Gen, w.x.Plan
		}
		w.t.Reported(device(), m, words[0] == "sealed")
	case "event": // NODE SESSION SEQ
		w.t.Event(device(), &proto.Event{Node: device().ID, Session: proto.Session(num(2)), Seq: num(3)})
	case "ack": // NODE SESSION prepare|not-staged|command|protocol|answer|earlier [CODE]; answer is to the last command, earlier to the one before
		m := &proto.Ack{Session: proto.Session(num(2)), Term: w.x.Term, Generation: w.x.Gen, Plan: w.x.Plan}
		switch words[3] {
		case "prepare":
			m.Phase = proto.PhasePrepare
			if len(words) > 4 {
				m.Code = proto.Code(num(4))
			}
		case "not-staged":
			m.Phase, m.Code = proto.PhaseCommit, proto.NotStaged
		case "command":
			m.Phase = proto.PhaseCommand
		case "answer":
			m.Phase, m.Corr = proto.PhaseCommand, w.corr[0]
		case "earlier":
			m.Phase, m.Corr = proto.PhaseCommand, w.corr[1]
		case "protocol":
			m.Phase, m.Code = proto.PhaseProtocol, proto.Malformed
		}
		w.t.Ack(device(), m)
	case "link": // the broker was away
		w.t.LinkUp()
		w.x.LinkUp()
	case "run": // lets time pass and does what is due
		d, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		for end := w.j.Now + d; ; {
			next := min(w.t.Next(), w.t.NextSweep(), w.x.Next())
			if next > end {
				w.j.Now = end
				break
			}
			w.j.Now = max(w.j.Now, next)
			if w.x.Phase() == Preparing {
				if w.x.Late() {
					w.x.Unanswered(func(part *Part) { w.t.Silence(part.Device, w.j.Now+time.Minute) })
					w.x.Drop()
					w.out.WriteString("too late\n")
				} else {
					w.x.Resend()
				}
			}
			w.t.Roll()
			w.t.Ask(true)
			w.t.Sweep(true)
			w.t.CheckGaps()
			w.say()
		}
	case "prepare": // GENERATION, for both
		w.x.Prepare(proto.Generation(num(1)), "", 0, []proto.Desired{{Version: 1, Node: 0, Term: 3, Generation: proto.Generation(num(1)), Decisions: []proto.RingID{0}},
			{Version: 1, Node: 1, Term: 3, Generation: proto.Generation(num(1)), Decisions: []proto.RingID{0}}}, func(*Device) bool { return false })
		w.x.Resend()
	case "decide":
		w.x.Decide(nil)
	case "stored":
		if w.x.Persisted(w.x.persist) {
			w.x.Commit()
		}
	case "stuck":
		w.stuck = words[1] == "on"
	case "retry":
		fmt.Fprintf(&w.out, "%v\n", device().Retry(w.j.Now))
	case "clear":
		fmt.Fprintf(&w.out, "cleared: %s\n", w.t.Clear(device()))
	case "show":
		for i := range w.t.Devices {
			d := &w.t.Devices[i]
			fmt.Fprintf(&w.out, "%d %s session %d ready %v pending %v: %s\n", d.ID, d.state, d.Session, d.Ready(), d.Pending(), d.WhyNot())
		}
		heard, _ := w.t.Heard()
		fmt.Fprintf(&w.out, "heard %d gaps %d quiet %v, generation %s\n", heard, w.t.Gaps(), w.t.Quiet(), w.x.Phase())
	default:
		panic("unknown command " + words[0])
	}
	w.say()
	if !reflect.DeepEqual(w.t.blank, noSetback()) {
		panic("what all devices share was written")
	}
	return w.out.String()
}

// say writes down what is asked for so far.
func (w *world) say() {
	for _, a := range w.j.End() {
		switch a.Kind {
		case journal.Send:
			var c proto.Command
			if strings.HasSuffix(a.Packet.Topic, "/cmd") {
				if _, err := proto.Decode(a.Packet.Payload, &c); err != nil {
					panic(err)
				}
				w.corr = [2]proto.Corr{c.Corr, w.corr[0]}
			}
			fmt.Fprintf(&w.out, "%v send %s\n", w.j.Now, strings.TrimPrefix(a.Packet.Topic, "ocs/v1/f/"))
		case journal.Persist:
			w.out.WriteString("persist\n")
		case journal.Log:
			w.out.WriteString("log " + a.Line.Message + ": " + a.Line.Text + "\n")
		}
	}
}
