package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: the same seed gives the same bits on every machine, another seed or
// mean gap others.
// Method: a hash of 1,000 jobs of every kind, as it was on amd64.
func TestSameJobsEverywhere(t *testing.T) {
	hash := func(c Config) uint64 {
		jobs := Draw(c)
		h := fnv.New64a()
		for _, j := range jobs {
			if err := binary.Write(h, binary.LittleEndian, j); err != nil {
				t.Fatal(err)
			}
		}
		return h.Sum64()
	}
	for kind, want := range map[string]uint64{
		"w1": 0xef11e5df041f2fd9, "w2": 0xa44c9aecc1c8130, "helios": 0xb1803999ddf33e5a,
		"philly": 0x941f690a24bb836b, "tpuv4": 0x192fab7baf5c8a50,
	} {
		c := Config{Kind: kind, Jobs: 1000, Gap: 2 * time.Minute, EstimateError: 100, Seed: 7}
		if got := hash(c); got != want {
			t.Errorf("%s: %#x, want %#x", kind, got, want)
		}
		c.Seed++
		if hash(c) == want {
			t.Errorf("%s: the seed changes nothing", kind)
		}
	}
}

// Goal: another mean gap brings the same jobs, closer together, and a load is
// met by moving arrivals alone.
func TestArrivalsAlone(t *testing.T) {
	c := Config{Kind: "w2", Jobs: 500, Gap: 100 * time.Second, Seed: 2}
	near := Draw(c)
	c.Gap *= 2
	far := Draw(c)
	AtLoad(far, 512, 655)
	asked := 0.0
	for i := range near {
		asked += float64(near[i].GPUs) * near[i].Duration.Seconds()
		a := far[i].Arrival
		if far[i].Arrival = near[i].Arrival; far[i] != near[i] {
			t.Fatalf("job %d: %+v and %+v", i, near[i], far[i])
		}
		far[i].Arrival = a
	}
	if load := asked / 512 / far[len(far)-1].Arrival.Seconds(); load < 0.6549 || load > 0.6551 {
		t.Errorf("load %v", load)
	}
}

// Goal: a list of one's own is read as it stands, with and without models.
func TestReadList(t *testing.T) {
	read := func(text string) []Job {
		t.Helper()
		jobs, err := NewReader(strings.NewReader(text), 64, 1).All()
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	jobs := read("arrival_ms,gpus,duration_ms,model\r\n0,8,5000,vgg16-4\r\n0,16,60000,moe\n70,64,1,none\n70,1,1,bert-32\n")
	want := []Job{
		{Duration: 5 * time.Second, GPUs: 8, Model: 0, Pattern: jobs[0].Pattern},
		{Duration: time.Minute, GPUs: 16, Model: moeModel, Pattern: AllToAll},
		{Arrival: 70 * time.Millisecond, Duration: time.Millisecond, GPUs: 64, Model: 18, Pattern: Alone},
		{Arrival: 70 * time.Millisecond, Duration: time.Millisecond, GPUs: 1, Model: 16, Pattern: Alone},
	}
	for i := range want {
		want[i].Volume, want[i].Estimate, want[i].Slack = 1000, 1000, jobs[i].Slack
		if jobs[i] != want[i] {
			t.Errorf("job %d: %+v, want %+v", i, jobs[i], want[i])
		}
	}
	if p := jobs[0].Pattern; p != Ring && p != HalvingDoubling {
		t.Errorf("a dense model meets by %v", p)
	}
	if jobs[0].AllReduce() != 2500 || jobs[1].AllToAll() != 2580 || jobs[2].AllReduce() != 0 {
		t.Errorf("shares of %+v", jobs)
	}
	var b strings.Builder
	b.WriteString(Heading + "\n")
	for i := range 400 {
		fmt.Fprintf(&b, "%d,3,1000\n", i)
	}
	for _, j := range read(b.String()) {
		if j.Pattern != Ring { // three are no power of two
			t.Fatalf("%+v", j)
		}
	}
}

// Goal: what is no list is refused with line, field and limit, at once.
func TestRefusedLists(t *testing.T) {
	head := Heading + "\n"
	for _, c := range []struct{ text, line, field, limit string }{
		{"", "line 1", "heading", Heading + "[,model]"},
		{"arrival,gpus,duration\n", "line 1", "heading", Heading + "[,model]"},
		{"0,1,5\n", "line 1", "heading", Heading + "[,model]"},
		{head, "line 2", "line", "at least one job"},
		{head + "0,1,0\n", "line 2", "duration_ms", "a whole number from 1 to 316224000000"},
		{head + "0,1,5\n0,0,5\n", "line 3", "gpus", "a whole number from 1 to 64"},
		{head + "0,65,5\n", "line 2", "gpus", "a whole number from 1 to 64"},
		{head + "-1,1,5\n", "line 2", "arrival_ms", "a whole number from 0 to 316224000000"},
		{head + "1e3,1,5\n", "line 2", "arrival_ms", "a whole number from 0 to 316224000000"},
		{head + "316224000001,1,5\n", "line 2", "arrival_ms", "a whole number from 0 to 316224000000"},
		{head + "7,1,5\n6,1,5\n", "line 3", "arrival_ms", "at least 7, that of the line before"},
		{head + "7,1\n", "line 2", "duration_ms", "3 fields"},
		{head + "7\n", "line 2", "gpus", "3 fields"},
		{head + "\n", "line 2", "gpus", "3 fields"},
		{head + "7,1,5,moe\n", "line 2", "line", "3 fields"},
		{headingModel + "\n7,1,5\n", "line 2", "model", "4 fields"},
		{headingModel + "\n7,1,5,\n", "line 2", "model", "one of vgg16-4 "},
		{headingModel + "\n7,1,5,gpt\n", "line 2", "model", "one of vgg16-4 "},
		{head + "7,1,5\n8,1,50", "line 3", "line", "every line ends with a newline"},
		{head + strings.Repeat("7", 300) + ",1,5\n", "line 2", "line", "256 bytes"},
		{head + strings.Repeat("7", 1<<17) + ",1,5\n", "line 2", "line", "256 bytes"},
		{head + "7,1,5\n\x00\x00\n", "line 3", "gpus", "3 fields"},
	} {
		r := NewReader(strings.NewReader(c.text), 64, 1)
		_, err := r.All()
		var e *proto.Error
		if !errors.As(err, &e) || e.Field != c.field || !strings.HasPrefix(e.Limit, c.limit) || !strings.Contains(e.Reason, c.line+":") {
			t.Errorf("%.40q: %v", c.text, err)
		}
		if _, again := r.Next(); again != err {
			t.Errorf("%.40q: the error does not stay", c.text)
		}
	}
}

// lines is a list of many lines that costs no memory, cut in the last.
type lines struct{ n, of, cut int }

func (l *lines) Read(p []byte) (int, error) {
	const line = "123456,8,3600000\n"
	if l.n == 0 {
		l.n++
		return copy(p, Heading+"\n"), nil
	}
	n := 0
	for ; l.n <= l.of && n+len(line) <= len(p); l.n++ {
		n += copy(p[n:], line)
	}
	if l.n <= l.of {
		return n, nil
	}
	if n > 0 {
		return n - l.cut, nil
	}
	return 0, io.EOF
}

// Goal: a long list that was cut is refused by its last line, whether a field
// is missing or only digits are.
func TestCutList(t *testing.T) {
	const of = 200_000
	for cut, field := range map[int]string{0: "", 1: "line", 4: "line", 9: "line"} {
		r, n := NewReader(&lines{of: of, cut: cut}, 64, 1), 0
		var err error
		for ; err == nil; n++ {
			_, err = r.Next()
		}
		var e *proto.Error
		switch {
		case cut == 0:
			if err != io.EOF || n != of+1 {
				t.Errorf("whole: %d jobs, %v", n-1, err)
			}
		case !errors.As(err, &e) || e.Field != field || !strings.Contains(e.Reason, fmt.Sprintf("line %d:", of+1)):
			t.Errorf("cut by %d: %v", cut, err)
		}
	}
}

// Goal: nothing that a generator cannot draw is taken.
func TestRefusedConfigurations(t *testing.T) {
	ok := Config{Kind: "w1", Jobs: 1, Gap: time.Second}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]Config{
		"workload":       {Kind: "w3", Jobs: 1, Gap: time.Second},
		"jobs":           {Kind: "w1", Jobs: 0, Gap: time.Second},
		"lambda":         {Kind: "w1", Jobs: 1},
		"estimate-error": {Kind: "w1", Jobs: 1, Gap: time.Second, EstimateError: 901},
	} {
		var e *proto.Error
		if err := c.Validate(); !errors.As(err, &e) || e.Field != field || e.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzReader: whatever the bytes, the reader ends, and every job it gives is
// within its limits.
func FuzzReader(f *testing.F) {
	f.Add(Heading + "\n0,1,5\n9,64,7\n")
	f.Add(headingModel + "\n0,1,5,moe\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, last := NewReader(strings.NewReader(text), 64, 1), time.Duration(0)
		for range strings.Count(text, "\n") + 1 {
			j, err := r.Next()
			if err != nil {
				return
			}
			if j.GPUs < 1 || j.GPUs > 64 || j.Duration < time.Millisecond || j.Arrival < last || int(j.Model) >= len(Models) {
				t.Fatalf("%+v", j)
			}
			last = j.Arrival
		}
		t.Fatal("more jobs than lines")
	})
}

func BenchmarkReader(b *testing.B) {
	r := NewReader(&lines{of: b.N}, 64, 1)
	for range b.N {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
