package proto

import "testing"

// Goal: no text of a reply writes lines of its own, or moves or hides others, on the
// screen of who asked; a piece of a file stays. Method: what a reason may hold.
func TestPrintableTexts(t *testing.T) {
	const bad = "fan\n7\tf1/op/bob *\x1b[2K\u009b8m\u202e ü"
	peer := NodeID(3)
	r := OpReply{Reason: bad, Text: bad, Nodes: []NodeStatus{{Name: bad}}, Why: []WhyLine{{Text: bad}}, Fabric: &FabricStatus{Name: bad}, Events: []LoggedEvent{{Event: Event{Peer: peer, Text: bad}}}}
	Printable(&r)
	const want = "fan 7 f1/op/bob *\uFFFD[2K\uFFFD8m\uFFFD ü"
	for _, got := range []string{r.Reason, r.Nodes[0].Name, r.Why[0].Text, r.Fabric.Name, r.Events[0].Event.Text} {
		if got != want {
			t.Errorf("%q", got)
		}
	}
	if r.Text != bad || r.Events[0].Event.Peer != peer {
		t.Errorf("%q", r.Text)
	}
}
