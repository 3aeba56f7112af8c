package cli

import (
	"flag"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Far int `flag:"far" usage:"how FAR"`
}

// Goal: a field with a tag is a flag, with its own value for default, also in a struct
// inside; one without is none, and of the others only those that are named.
func TestFieldsAreFlags(t *testing.T) {
	type config struct {
		inner
		Name  string          `flag:"name" doc:"a name"`
		On    bool            `flag:"on" usage:"on or not"`
		Seed  uint64          `flag:"seed" usage:"of it"`
		Share float64         `flag:"share" usage:"a PART" takes:"PART"`
		Wait  time.Duration   `flag:"wait" usage:"so long"`
		Sizes []int           `flag:"sizes" usage:"sizes"`
		Parts []float64       `flag:"parts" usage:"parts"`
		Times []time.Duration `flag:"times" usage:"times"`
		Other int
	}
	c := config{inner: inner{3}, Name: "a", Seed: 1, Sizes: []int{1, 2}, Parts: []float64{0.1, 0.5}, Times: []time.Duration{10 * time.Microsecond, time.Second}}
	fs := NewFlags("x")
	Options(fs, &c)
	said := ""
	fs.VisitAll(func(f *flag.Flag) {
		form, what := flagForm(f)
		said += form + ": " + what + "\n"
	})
	const want = `-far int: how FAR (default 3)
-name string: a name (default a)
-on: on or not
-parts LIST: parts, LIST of shares of one, rising (default 0.1 to 0.5)
-seed uint: of it (default 1)
-share PART: a PART
-sizes LIST: sizes, LIST (default 1,2)
-times LIST: times, LIST (default 10us,1s)
-wait duration: so long
`
	if said != want {
		t.Errorf("flags\n%swant\n%s", said, want)
	}
	if _, err := ParseNone(fs, strings.Fields("-far 4 -on -sizes 8, -sizes 8,9 -times 1ms -share 0.5"), ""); err == nil || !strings.Contains(err.Error(), `"" is no integer`) {
		t.Errorf("a list with nothing in it: %v", err)
	}
	if _, err := ParseNone(fs, strings.Fields("-far 4 -on -sizes 8,9 -times 1ms -share 0.5"), ""); err != nil || c.Far != 4 || !c.On || len(c.Sizes) != 2 || c.Sizes[1] != 9 || c.Times[0] != time.Millisecond || c.Share != 0.5 || c.Seed != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	fs = NewFlags("y")
	if Options(fs, &c, "far", "on"); fs.Lookup("far") == nil || fs.Lookup("on") == nil || fs.Lookup("name") != nil {
		t.Error("other flags than those that were named")
	}
}
