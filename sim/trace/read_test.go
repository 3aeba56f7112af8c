package trace

import (
	"strings"
	"testing"
	"time"
)

const kind = `"fault_type":{"Level":"Hardware Failure","Class":"GPU","Desc":"GPU Lost"}`

func line(node, at, typ string) string {
	return `{"node_id":"` + node + `","event_time":` + at + `,"event_type":"` + typ + `",` + kind + `}`
}

// Goal: a record is read exactly, times to the nanosecond.
// Method: one short trace with an overlap of one server.
func TestReadKeepsOverlapsAsACount(t *testing.T) {
	in := "[" + strings.Join([]string{
		line("a", "1", "fault_start"), line("b", "1.5", "fault_start"), line("a", "2.0001", "fault_start"),
		line("a", "3", "fault_end"), line("a", "4", "fault_end"), line("b", "4", "fault_end"),
	}, ",") + "]"
	tr, err := Read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Events) != 6 || tr.Servers != 400 || tr.Span != 4*Day {
		t.Fatalf("got %d events, %d servers, span %v", len(tr.Events), tr.Servers, tr.Span)
	}
	if at := tr.Events[2].At; at != 2*Day+8640*time.Millisecond {
		t.Errorf("2.0001 days read as %v", at)
	}
	var got []Effect
	node := -1
	for _, e := range tr.Nodes(400, 1, 10*Day) {
		if e.At == Day {
			node = e.Node
		}
		if e.Node == node {
			got = append(got, e.After)
		}
	}
	if want := []Effect{HostFault, HostFault, HostFault, None}; !equal(got, want) {
		t.Errorf("server a goes through %v, want %v", got, want)
	}
}

// Goal: what is not a trace is refused with a word that helps.
// Method: a table of broken files.
func TestReadRefuses(t *testing.T) {
	start := line("a", "1", "fault_start")
	for _, c := range []struct{ name, in, want string }{
		{"empty file", "", "EOF"},
		{"no records", "[]", "no records"},
		{"object", "{}", "JSON array"},
		{"cut off", "[" + start, "record 1"},
		{"trailing", "[" + start + "] []", "follows"},
		{"unknown field", `[{"node":"a"}]`, `unknown field "node"`},
		{"no time", `[{"node_id":"a","event_type":"fault_start",` + kind + `}]`, "event_time: missing"},
		{"no class", `[{"node_id":"a","event_time":1,"event_type":"fault_start","fault_type":{"Level":"x","Desc":"y"}}]`, "fault_type.Class: missing"},
		{"empty id", "[" + line("", "1", "fault_start") + "]", "node_id: missing"},
		{"long id", "[" + line(strings.Repeat("x", 257), "1", "fault_start") + "]", "257 bytes"},
		{"other type", "[" + line("a", "1", "fault") + "]", `event_type "fault"`},
		{"goes back", "[" + start + "," + line("b", "0.5", "fault_start") + "]", "record 1: event_time"},
		{"end first", "[" + line("a", "1", "fault_end") + "]", "no such fault"},
		{"negative", "[" + line("a", "-1", "fault_start") + "]", "not negative"},
		{"exponent", "[" + line("a", "1e3", "fault_start") + "]", "plain decimal"},
		{"too late", "[" + line("a", "4000", "fault_start") + "]", "3660 days"},
		{"too fine", "[" + line("a", "1.0000000001", "fault_start") + "]", "decimals"},
		{"text for a number", `[{"node_id":"a","event_time":"x"}]`, "record 0"},
	} {
		if _, err := Read(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// Goal: no input makes the reader panic or hang, and what it takes is sound.
// Method: fuzz, with the refused files as seeds.
func FuzzRead(f *testing.F) {
	f.Add("[" + line("a", "1", "fault_start") + "," + line("a", "2.5", "fault_end") + "]")
	f.Add(`[{"node_id":"a"}]`)
	f.Add("[")
	f.Fuzz(func(t *testing.T, in string) {
		tr, err := Read(strings.NewReader(in))
		if err != nil {
			return
		}
		measure(tr)
		for _, e := range tr.Nodes(1000, 1, tr.Span) {
			if e.At < 0 || e.At > tr.Span || e.Node < 0 || e.Node >= 1000 {
				t.Fatalf("%+v outside the trace", e)
			}
		}
	})
}

func equal(a, b []Effect) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
