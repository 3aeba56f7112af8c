package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ringlight/cmd/cli"
)

const wiringMesh = `{"pods":3,"spine_ports":2,"groups":[{"links":[[0,1,1],[0,2,1],[1,2,1]],"old_even":[[2,0,1]]}]`

// wiringText writes an input: two groups of many pods with rings of links,
// configured for the rings and wanting others.
func wiringText(t *testing.T, more string) string {
	t.Helper()
	const pods, switches = 24, 36
	ring := func(steps []int) (links [][3]int) {
		for _, step := range steps {
			for i := range pods {
				j := (i + step) % pods
				links = append(links, [3]int{min(i, j), max(i, j), switches / len(steps)})
			}
		}
		return links
	}
	old := make([][]int, switches)
	for k := range old {
		for i := range pods {
			old[k] = append(old[k], (i+1+k%2)%pods)
		}
	}
	group := map[string]any{"links": ring([]int{1, 2, 3, 5}), "old_even": old}
	text, err := json.Marshal(map[string]any{"pods": pods, "spine_ports": 2 * switches, "groups": []any{group, group}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "}") + more + "}"
}

type wiringAnswer struct {
	Groups []struct {
		Even       [][]int `json:"even"`
		KeptEven   int     `json:"kept_even"`
		UpperBound int     `json:"upper_bound"`
	} `json:"groups"`
	MS    *int `json:"ms"`
	Steps *int `json:"steps"`
}

func planWiringRun(t *testing.T, in string) wiringAnswer {
	t.Helper()
	code, out, errs := planRun(t, "wiring", in)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var a wiringAnswer
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil || a.MS == nil || a.Steps == nil {
		t.Fatalf("%s: %v", out, err)
	}
	return a
}

// checkWiring judges an answer from the input alone.
func checkWiring(t *testing.T, in string, a wiringAnswer) {
	t.Helper()
	var q struct {
		Pods   int
		Ports  int `json:"spine_ports"`
		Groups []struct {
			Links [][3]int
			Old   [][]int `json:"old_even"`
		}
	}
	if err := json.Unmarshal([]byte(in), &q); err != nil {
		t.Fatal(err)
	}
	if len(a.Groups) != len(q.Groups) {
		t.Fatalf("%d groups, want %d", len(a.Groups), len(q.Groups))
	}
	for n, g := range a.Groups {
		count := map[[2]int]int{}
		kept := 0
		if len(g.Even) != q.Ports/2 {
			t.Fatalf("%d switches, want %d", len(g.Even), q.Ports/2)
		}
		for k, row := range g.Even {
			taken := map[int]bool{}
			for i, j := range row {
				if j < 0 {
					continue
				}
				if taken[j] {
					t.Fatalf("group %d, switch %d: pod %d twice", n, k, j)
				}
				taken[j] = true
				count[[2]int{min(i, j), max(i, j)}]++
				if q.Groups[n].Old != nil && q.Groups[n].Old[k][i] == j {
					kept++
				}
			}
		}
		for _, l := range q.Groups[n].Links {
			want := l[2]
			if l[0] == l[1] {
				want /= 2
			}
			if count[[2]int{l[0], l[1]}] != want {
				t.Fatalf("group %d: %d circuits for %v", n, count[[2]int{l[0], l[1]}], l)
			}
			delete(count, [2]int{l[0], l[1]})
		}
		if len(count) != 0 {
			t.Fatalf("group %d: circuits that nobody asked for: %v", n, count)
		}
		if kept != g.KeptEven || kept > g.UpperBound {
			t.Fatalf("group %d: %d kept, it says %d of at most %d", n, kept, g.KeptEven, g.UpperBound)
		}
	}
}

// Goal: the answer is the agreed JSON and realises what was asked, whatever
// the method and budget.
// Method: every method on two inputs, judged from the input.
func TestPlanWiring(t *testing.T) {
	for _, more := range []string{
		``, `,"steps":0`, `,"steps":1`, `,"steps":20000,"seed":7`, `,"deadline_ms":0`, `,"deadline_ms":20`,
		`,"method":"split"`, `,"method":"published"`, `,"method":"search","deadline_ms":1`,
	} {
		for _, in := range []string{wiringMesh + more + `}`, wiringText(t, more), `{"pods":2,"spine_ports":4,"groups":[{"links":[[1,1,4],[0,0,2]]},{"links":[]}]` + more + `}`} {
			checkWiring(t, in, planWiringRun(t, in))
		}
	}
	a := planWiringRun(t, wiringMesh+`}`)
	if g := a.Groups[0]; g.KeptEven != 3 || g.UpperBound != 3 || fmt.Sprint(g.Even) != "[[2 0 1]]" {
		t.Errorf("nothing had to move: %+v", g)
	}
	if a := planWiringRun(t, `{"pods":3,"spine_ports":2,"groups":[]}`); len(a.Groups) != 0 || a.Groups == nil {
		t.Errorf("no groups: %+v", a)
	}
}

// Goal: the same steps and seed give the same answer, and the steps that a
// deadline came to give its answer again.
// Method: a deadline, then its steps twice.
func TestPlanWiringReplays(t *testing.T) {
	first := planWiringRun(t, wiringText(t, `,"deadline_ms":60,"seed":3`))
	again := wiringText(t, fmt.Sprintf(`,"steps":%d,"seed":3`, *first.Steps))
	for range 2 {
		got := planWiringRun(t, again)
		if *got.Steps != *first.Steps || fmt.Sprint(got.Groups) != fmt.Sprint(first.Groups) {
			t.Fatalf("%d steps gave another answer than %d", *got.Steps, *first.Steps)
		}
	}
}

// Goal: a short deadline is no reason to look away from what is configured: what
// the published method keeps is kept.
// Method: a millisecond for two groups of 36 even switches, no deadline for the
// published method; the answer is at least that of one step, and more than split.
func TestPlanWiringShortDeadline(t *testing.T) {
	kept := func(a wiringAnswer) (n int) {
		for _, g := range a.Groups {
			n += g.KeptEven
		}
		return n
	}
	in := wiringText(t, `,"deadline_ms":1`)
	short := planWiringRun(t, in)
	checkWiring(t, in, short)
	one := planWiringRun(t, wiringText(t, `,"steps":1`))
	if kept(short) < kept(one) {
		t.Errorf("%d kept after %d steps, %d after one", kept(short), *short.Steps, kept(one))
	}
	published, split := planWiringRun(t, wiringText(t, `,"method":"published"`)), planWiringRun(t, wiringText(t, `,"method":"split"`))
	if kept(short) < kept(published) || kept(short) <= kept(split) {
		t.Errorf("%d kept, by the published method %d, by split %d", kept(short), kept(published), kept(split))
	}
}

// Goal: bad input exits 2 and names the field and the limit.
// Method: a table of one fault each.
func TestPlanWiringRefuses(t *testing.T) {
	group := func(links, old string) string {
		return `{"pods":3,"spine_ports":2,"groups":[{"links":` + links + `,"old_even":` + old + `}]}`
	}
	for _, c := range []struct{ in, field, limit string }{
		{`{"pods":0,"spine_ports":2,"groups":[]}`, "pods", "1..4096"},
		{`{"pods":3,"spine_ports":3,"groups":[]}`, "spine_ports", "even"},
		{`{"pods":3,"spine_ports":0,"groups":[]}`, "spine_ports", "2..4096"},
		{`{"pods":3,"spine_ports":2}`, "groups", "array"},
		{`{"pods":"3","spine_ports":2,"groups":[]}`, "pods", "integer"},
		{`{"pods":4096,"spine_ports":4096,"groups":[{"links":[]},{"links":[]}]}`, "groups", "here 1 groups"},
		{`{"pods":3,"spine_ports":2,"groups":[],"seed":-1}`, "seed", "integer"},
		{`{"pods":3,"spine_ports":2,"groups":[],"method":"magic"}`, "method", "search"},
		{`{"pods":3,"spine_ports":2,"groups":[],"steps":1,"deadline_ms":1}`, "steps", "deadline_ms or steps"},
		{`{"pods":3,"spine_ports":2,"groups":[],"steps":-1}`, "steps", "0 to"},
		{`{"pods":3,"spine_ports":2,"groups":[],"deadline_ms":-1}`, "deadline_ms", "0 to"},
		{`{"pods":3,"spine_ports":2,"groups":[],"deadline_ms":1000000000000}`, "deadline_ms", "0 to"},
		{`{"pods":3,"spine_ports":2,"groups":[],"pod":1}`, "pod", "one of"},
		{`{"pods":3,"spine_ports":2,"groups":[{"old_even":[[-1,-1,-1]]}]}`, "groups[0].links", "[[i,j,count],..]"},
		{`{"pods":3,"spine_ports":2,"groups":[{"links":[],"Links":[]}]}`, "groups[0].Links", "one of"},
		{`{"pods":3,"spine_ports":2,"groups":[7]}`, "groups[0].input", "one JSON object"},
		{group(`[[0,1]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "[i,j,count]"},
		{group(`[[0,1,null]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "integers"},
		{group(`[[0,1,1.5]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "integers"},
		{group(`[[0,1,1], [0,2,1e0]]`, `[[-1,-1,-1]]`), "groups[0].links[1]", "integers"},
		{group(`[[0,1,"1"]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "integers"},
		{group(`[[0,1,-]]`, `[[-1,-1,-1]]`), "groups", "an array of objects"},
		{group(`[7]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "integers"},
		{group(`7`, `[[-1,-1,-1]]`), "groups[0].links", "[[i,j,count],..]"},
		{group(`null`, `[[-1,-1,-1]]`), "groups[0].links", "[[i,j,count],..]"},
		{group(`[[0,3,1]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "pods 0..2"},
		{group(`[[0,1,1],[1,0,1]]`, `[[-1,-1,-1]]`), "groups[0].links[1]", "i <= j"},
		{group(`[[0,1,1],[0,1,1]]`, `[[-1,-1,-1]]`), "groups[0].links", "each pair once"},
		{group(`[[1,1,1]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "even count"},
		{group(`[[0,1,-1]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "0..4096"},
		{group(`[[0,1,2],[0,2,1]]`, `[[-1,-1,-1]]`), "groups[0].links", "spine_ports = 2"},
		{group(`[[0,1,9999999999]]`, `[[-1,-1,-1]]`), "groups[0].links[0]", "nine digits"},
		{group(`[]`, `[[1,-1,1]]`), "groups[0].old_even[0]", "partial permutation"},
		{group(`[]`, `[[-1,-1]]`), "groups[0].old_even[0]", "one entry a pod"},
		{group(`[]`, `[]`), "groups[0].old_even", "spine_ports/2"},
		{group(`[]`, `[[-1,-1,3]]`), "groups[0].old_even[0][2]", "-1 or a pod"},
		{group(`[]`, `[[-1,-1,null]]`), "groups[0].old_even[0]", "integers"},
	} {
		code, out, errs := planRun(t, "wiring", c.in)
		var got struct{ Error cli.ErrorJSON }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s: %q: %v", c.in, out, err)
		}
		if code != 2 || got.Error.Field != c.field || !strings.Contains(got.Error.Limit, c.limit) || !strings.Contains(errs, c.field) {
			t.Errorf("%s: exit %d, %+v, %s", c.in, code, got.Error, errs)
		}
	}
}

// Goal: whatever the input, it is answered rightly or refused by field and
// limit; nothing panics.
// Method: any bytes; answers judged from the input.
func FuzzPlanWiring(f *testing.F) {
	f.Add([]byte(wiringMesh + `,"steps":200}`))
	f.Add([]byte(wiringMesh + `,"method":"published"}`))
	f.Add([]byte(wiringMesh + `,"method":"split","seed":18446744073709551615}`))
	f.Add([]byte(`{"pods":2,"spine_ports":4,"groups":[{"links":[[1,1,4],[0,0,2]]},{"links":[]}],"steps":9}`))
	f.Add([]byte(`{"pods":4,"spine_ports":6,"groups":[{"links":[[0,1,2],[0,2,1],[1,3,3]],"old_even":[[1,0,-1,-1],[2,3,-1,0],[-1,-1,-1,-1]]}],"deadline_ms":0}`))
	f.Add([]byte(`{"pods":1,"spine_ports":2,"groups":[{"links":[[0,0,2]],"old_even":[[0]]}],"steps":1}`))
	f.Add([]byte(`{"pods":3,"spine_ports":2,"groups":[{"links":[[0,1,1],[0,1,1]]}],"steps":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := readWiring(data)
		if err != nil {
			var use *usageError
			if !errors.As(err, &use) || use.Field == "" || use.Limit == "" {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		slow := in.DeadlineMS == nil && in.Steps == nil && in.Method == "search" ||
			in.DeadlineMS != nil && *in.DeadlineMS > 5 || in.Steps != nil && *in.Steps > 5000
		if slow || in.Pods > 64 || in.SpinePorts > 128 || len(in.groups) > 8 {
			return // right, but slow
		}
		var out bytes.Buffer
		if err := planVerbs["wiring"].answer(planFiles(bytes.NewReader(data), nil), &out); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		var a wiringAnswer
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		checkWiring(t, string(data), a)
	})
}
