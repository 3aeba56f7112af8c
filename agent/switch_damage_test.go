package agent

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim/damage"
)

func TestDamagedJournalOfASwitchMovesNoMirror(t *testing.T) {
	// Goal: 500 damaged journals of a circuit switch, one in eleven an older one as a
	// whole, also of the middle of a change: no panic, no mirror moved, no circuit
	// without light, by the world's own record, and a switch that takes the
	// planner's repetition and the next plan.
	// Method: a history of three plans, an override by hand and its end; each next
	// life finds one of the ways of package damage.
	const mark = "j" + markSuffix
	r := newSwitchRig(t, 8)
	var recs [][]byte
	r.written = func(raw []byte) { recs = append(recs, slices.Clone(raw)) }
	r.start()
	r.roll(shift(3, 8, 1)...)
	r.roll(shift(6, 8, 2)...)
	d := r.roll(shift(5, 8, 3)...)
	r.run(time.Second, nil)
	r.written = nil
	for _, c := range d.Circuits {
		r.watched = append(r.watched, circuit.Pair{A: c.A, B: c.B})
	}
	dir := filepath.Join(memoryDir(t), "j")
	history := lived(t, dir, recs)
	rnd := rand.New(rand.NewPCG(3, 11))
	told, refused, whole, unfinished := 0, 0, 0, 0
	for i := range 506 {
		way := i % (damage.Ways + 1)
		content, what := damage.Spoil(rnd, way, history, mark)
		laid(t, dir, content)
		file, j, err := openJournal(dir, (&Config{Node: switchNode, Session: 7}).lostEvent())
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "journal") {
				t.Errorf("%s: %v names no file", what, err)
			}
			continue
		}
		if file.damage != nil || file.unmarked || file.cut > 0 {
			told++
		}
		file.close()
		if way == damage.Whole {
			if whole++; j.State != nil && j.State.Moving {
				unfinished++
			}
		}
		r.kill()
		r.disk, r.spi = Disk{Journal: j}, 0
		r.boot()
		r.must(what+": adopted", 5*time.Second, func() bool { return r.agent.adopted })
		r.run(500*time.Millisecond, nil)
		if r.spi > 0 {
			t.Errorf("%s: %d writes to mirrors", what, r.spi)
		}
		r.checkLight(d.Circuits...)
		if i%25 == 0 { // the planner repeats itself
			r.link(true)
			r.run(time.Second, nil)
			r.publish(switchTopics.Desired(switchNode), d)
			r.decide(d, proto.Commit)
			r.must(what+": done again", 5*time.Second, func() bool { return r.done(d) })
			r.checkLight(d.Circuits...)
		}
		if t.Failed() {
			t.Fatal(i, what)
		}
	}
	t.Logf("506 damaged journals of a switch: %d told, %d refused, %d as of before as a whole, %d of them of the middle of a change", told, refused, whole, unfinished)
	r.watched = nil
	r.link(true)
	r.run(time.Second, nil)
	r.roll(shift(4, 8, 5)...)
}
