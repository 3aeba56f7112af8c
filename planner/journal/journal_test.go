package journal

import (
	"strings"
	"testing"
	"time"
)

// Goal: what somebody provokes of one node does not push out what is known of others; its
// log is whole, and in the next minute it is kept again.
// Method: a flood of one rule of one node, beside another rule, another node and the
// planner's own, over two windows.
func TestAFloodOfOneNodePushesNothingOut(t *testing.T) {
	j := New()
	const flood = 10 * noteBurst
	for range 2 {
		for range flood {
			j.Note(Warn, "agent offline", Note{Rule: "presence", Node: 3, Text: "gone"})
			j.Note(Info, "generation committed", Note{Rule: "commit", Node: -1})
		}
		j.Note(Warn, "node is dead", Note{Rule: "dead", Node: 3})
		j.Note(Warn, "agent offline", Note{Rule: "presence", Node: 4})
		j.Now += noteWindow
	}
	kept, last := map[Note]int{}, ""
	for i := range j.Len() {
		n := j.At(i).Note
		kept[Note{Rule: n.Rule, Node: n.Node}]++
		if n.Rule == "presence" && n.Node == 3 {
			last = n.Text
		}
	}
	for k, want := range map[Note]int{{Rule: "presence", Node: 3}: 2 * noteBurst, {Rule: "commit", Node: -1}: 2 * flood, {Rule: "dead", Node: 3}: 2, {Rule: "presence", Node: 4}: 2} { // any order
		if kept[k] != want {
			t.Errorf("%+v: %d are kept, want %d", k, kept[k], want)
		}
	}
	if !strings.Contains(last, "no more of them are kept: gone") || j.At(0).Note.Text != "gone" {
		t.Errorf("first %q, last %q", j.At(0).Note.Text, last)
	}
	lines := 0
	for _, a := range j.End() {
		if a.Kind == Log {
			lines++
		}
	}
	if want := 2 * (2*flood + 2); lines != want {
		t.Errorf("%d lines are logged, want %d", lines, want)
	}
}

// Goal: a burst that a window's end parts counts in each.
func TestTheNextWindowCountsAnew(t *testing.T) {
	j := New()
	for i := range 2 * noteBurst {
		j.Now = time.Duration(i) * noteWindow / noteBurst
		j.Note(Warn, "agent offline", Note{Rule: "presence", Node: 3})
	}
	if j.Len() != 2*noteBurst {
		t.Errorf("%d are kept, want %d", j.Len(), 2*noteBurst)
	}
}
