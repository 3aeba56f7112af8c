package agenda

import (
	"testing"
	"time"

	"ringlight/mzi/detmath"
)

// Goal: a roster gives who is due first, whatever changes; of two the lower
// number.
// Method: change times by a fixed pattern and compare with a scan.
func TestRosterGivesTheEarliest(t *testing.T) {
	r := NewRoster(20)
	var due [20]time.Duration
	for i := range due {
		due[i] = Never
	}
	for step := range 2000 {
		who := int(detmath.Hash(uint64(step)) % 20)
		due[who] = time.Duration(detmath.Hash(uint64(step), 1) % 50)
		r.Place(who, due[who])
		first := 0
		for i := range due {
			if due[i] < due[first] {
				first = i
			}
		}
		if at, got := r.First(); got != first || at != due[first] {
			t.Fatalf("step %d: number %d at %v, want %d at %v", step, got, at, first, due[first])
		}
	}
	if at, _ := new(Roster).First(); at != Never {
		t.Errorf("an empty roster has something to do at %v", at)
	}
}

// Goal: a queue gives things by time, and of one time in the order in which
// they came, also when they come in between.
// Method: put in three and take out two by a fixed pattern, then take out the
// rest; whatever comes out is the least of what is in.
func TestQueueKeepsTheOrder(t *testing.T) {
	type thing struct {
		at time.Duration
		n  int
	}
	var q Queue[int]
	var in []thing
	take := func() {
		first := 0
		for i, x := range in {
			if x.at < in[first].at || x.at == in[first].at && x.n < in[first].n {
				first = i
			}
		}
		want := in[first]
		in = append(in[:first], in[first+1:]...)
		if at, what := q.First(); at != want.at || *what != want.n {
			t.Fatalf("first is %d at %v, want %+v", *what, at, want)
		}
		if at, what := q.Pop(); at != want.at || what != want.n {
			t.Fatalf("%d at %v, want %+v", what, at, want)
		}
	}
	for n := range 900 {
		x := thing{time.Duration(detmath.Hash(uint64(n)) % 30), n}
		in = append(in, x)
		q.Push(x.at, x.n)
		if n%3 != 0 {
			take()
		}
	}
	for len(in) > 0 {
		take()
	}
	if q.Len() != 0 {
		t.Errorf("%d are left", q.Len())
	}
}
