package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func written(n int) (c *Chain, lines []string, head Head) {
	c = &Chain{}
	for i := range n {
		var line string
		line, head, _ = c.Add(Record{AtMillis: uint64(1000 * i), Kind: Act, Who: "f1/op/alice", Sealed: true, What: fmt.Sprintf("drain node %d", i), Why: "fan <2> \"left\""})
		lines = append(lines, line)
	}
	return c, lines, head
}

// Goal: the chain is what the page says, which anybody can follow without us.
// Method: the naive way, with the standard library's JSON and SHA-256 alone.
func TestChainIsOfPlainHashes(t *testing.T) {
	c, lines, head := written(50)
	last := strings.Repeat("0", 64)
	for i, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["seq"] != float64(i+1) || m["prev"] != last {
			t.Fatalf("line %d: %v, %v", i, m, err)
		}
		sum := sha256.Sum256([]byte(line))
		last = hex.EncodeToString(sum[:])
	}
	if head.Seq != 50 || head.Hash != last {
		t.Error(head)
	}
	var all string
	for from, pages := uint64(0), 0; ; pages++ {
		text, next := c.Page(from, 2000)
		if all += text; next == 0 {
			if pages < 5 {
				t.Error("one page")
			}
			break
		}
		from = next
	}
	got, records, end := Parse(all)
	if !slices.Equal(got, lines) || len(records) != 50 || end == nil || *end != head || Verify(got, end, end) != nil {
		t.Errorf("%d lines, %v", len(got), end)
	}
	if h, err := ParseHead(head.String()); err != nil || h != head {
		t.Error(h, err)
	}
	for _, bad := range []string{"", "7", "0:" + last, "7:" + last[1:], "7:" + strings.ToUpper(last), "x:" + last, "7:" + last + "0"} {
		if _, err := ParseHead(bad); err == nil && bad != strings.ToUpper(bad) {
			t.Errorf("%q is a head", bad)
		}
	}
}

// Goal: every kind of damage is found, and the record that it happened to is named.
// Method: each kind at every place of a chain, and 2,000 random bytes turned.
func TestEveryDamageIsFound(t *testing.T) {
	const n = 12
	_, whole, head := written(n)
	find := func(what string, lines []string, head *Head, named string) {
		t.Helper()
		bad := strings.Join(Verify(lines, head, nil), "; ")
		if bad == "" || !strings.Contains(bad, named) {
			t.Errorf("%s: %q does not name %q", what, bad, named)
		}
	}
	if bad := Verify(whole, &head, nil); bad != nil {
		t.Fatal(bad)
	}
	for i := range n {
		at := fmt.Sprintf("at %d", i+1)
		num := fmt.Sprintf("record %d ", i+1)
		if i == n-1 {
			num = fmt.Sprintf("record %d is not what the head", n)
		}
		changed := slices.Clone(whole)
		changed[i] = strings.Replace(whole[i], "alice", "mallo", 1)
		find("changed "+at, changed, &head, num)
		find("missing "+at, slices.Delete(slices.Clone(whole), i, i+1), &head, fmt.Sprintf("record %d is missing", i+1))
		find("twice "+at, slices.Insert(slices.Clone(whole), i, whole[i]), &head, num[:len("record 1")])
		spoilt := slices.Clone(whole)
		spoilt[i] = whole[i][1:]
		find("spoilt "+at, spoilt, &head, fmt.Sprintf("line %d", i+1))
		if i > 0 {
			moved := slices.Clone(whole)
			moved[i-1], moved[i] = moved[i], moved[i-1]
			find("exchanged "+at, moved, &head, fmt.Sprintf("record %d stands after record %d", i, i+1))
			find("begun "+at, whole[i:], &head, " at the beginning")
			find("ended before "+at, whole[:i], &head, " at the end")
			// Whoever cuts the head along is found by who knows it.
			older := Head{uint64(i), Hash(whole[i-1])}
			if Verify(whole[:i], &older, nil) != nil {
				t.Errorf("%s: an older chain is not whole", at)
			}
			if bad := Verify(whole[:i], &older, &head); len(bad) != 1 || !strings.Contains(bad[0], "cut off") {
				t.Errorf("%s: %v", at, bad)
			}
			if bad := Verify(whole, &head, &older); bad != nil {
				t.Errorf("%s: %v", at, bad)
			}
		}
		// Written anew from here on: whole by itself, and not what is known.
		var anew Chain
		var end Head
		lines := slices.Clone(whole[:i])
		for _, l := range lines {
			anew.Restore([]byte(l))
		}
		for range n - i {
			var l string
			l, end, _ = anew.Add(Record{Kind: Act, Who: "f1/op/mallory", What: "nothing"})
			lines = append(lines, l)
		}
		if bad := Verify(lines, &end, nil); bad != nil {
			t.Errorf("%s: %v", at, bad)
		}
		if bad := Verify(lines, &end, &head); len(bad) != 1 || !strings.Contains(bad[0], "written anew") {
			t.Errorf("%s: %v", at, bad)
		}
	}
	find("no head", whole, nil, "head is missing")
	find("nothing but a head", nil, &head, "records 1 to 12 are missing")
	find("an older head", whole, &Head{3, Hash(whole[2])}, "the head is record 3")
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		lines, i := slices.Clone(whole), rnd.IntN(n)
		raw := []byte(lines[i])
		raw[rnd.IntN(len(raw))] ^= byte(1 + rnd.IntN(255))
		lines[i] = string(raw)
		if Verify(lines, &head, nil) == nil {
			t.Fatalf("not found: %q", raw)
		}
	}
}

// Goal: a planner goes on after damage without hiding it, and keeps so many records
// and no more. Method: a chain without its end, and one that is full.
func TestChainGoesOn(t *testing.T) {
	_, lines, head := written(5)
	var c Chain
	for _, l := range lines[:3] {
		c.Restore([]byte(l))
	}
	c.RestoreHead([]byte(head.Line()))
	line, end, _ := c.Add(Record{Kind: Start, What: "term 2 begins", Why: c.Damage()})
	if end.Seq != 6 || !strings.Contains(line, "records 4 to 5 are missing") {
		t.Errorf("%v: %s", end, line)
	}
	text, _ := c.Page(0, 1<<20)
	got, _, h := Parse(text)
	if bad := Verify(got, h, nil); len(bad) != 1 || bad[0] != "records 4 to 5 are missing" {
		t.Error(bad)
	}
	var full Chain
	let := uint64(0)
	var keep Head
	for i := range Max + 3 {
		_, at, gone := full.Add(Record{Kind: Decision, What: "x"})
		if keep = at; gone != 0 {
			if let++; gone != let {
				t.Fatalf("%d was let go after %d, at %d", gone, let-1, i)
			}
		}
	}
	text, _ = full.Page(0, 1<<30)
	got, _, h = Parse(text)
	if len(got) != Max || let != 3 || *h != keep {
		t.Errorf("%d kept, %d let go", len(got), let)
	}
	if bad := Verify(got, h, nil); bad != nil {
		t.Error(bad)
	}
	if bad := Verify(got[1:], h, &Head{2, keep.Hash}); len(bad) != 2 || bad[0] != "record 4 is missing at the beginning" || !strings.Contains(bad[1], "not kept any more") {
		t.Error(bad)
	}
}
