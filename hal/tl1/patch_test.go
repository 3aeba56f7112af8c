package tl1_test

import (
	"errors"
	"slices"
	"testing"

	"ringlight/hal"
	"ringlight/hal/tl1"
	"ringlight/hal/tl1/tl1test"
)

func newPatchBox(in, out int) (*tl1.Client, *tl1test.Server) {
	names := tl1.PatchNames(in, out)
	return tl1.NewClient(tl1.Config{Names: names, User: "u", Password: "pw", Patch: true}),
		&tl1test.Server{Name: "box", User: "u", Password: "pw", Names: names, Powers: map[string][2]string{"1": {"-1.25", ""}, "4": {"", "-3.75"}}}
}

// Goal: a box of patches is told, read back and metered in its own words.
// Method: golden transcripts; the answers in pieces; then all in one change.
func TestPatchTranscript(t *testing.T) {
	c, s := newPatchBox(2, 2)
	got := talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}, Powers: true}, 7)
	want := []string{"ACT-USER::u:1::pw;", "RTRV-NETYPE:::2:;", "RTRV-PATCH:::3:;", "ENT-PATCH::1,4:4:;", "RTRV-PATCH:::5:;", "RTRV-PORT-PMON::1&&4:6:;"}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
	if st := state(c); !slices.Equal(st.Map, []hal.PortPair{{In: 0, Out: 1}}) || !slices.Equal(st.Powers, []int32{-1250, -60_000, -60_000, -3750}) {
		t.Errorf("%+v", st)
	}
	got = talk(c, s, hal.BoxGoal{Only: true, Create: []hal.PortPair{{In: 1, Out: 1}}}, 1000)
	want = []string{"RTRV-PATCH:::7:;", "DLT-PATCH::1:8:;", "ENT-PATCH::2,4:9:;", "RTRV-PATCH:::10:;"}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
}

// Goal: what is swallowed is done again, what is denied or nonsense is said.
func TestPatchOfADifficultBox(t *testing.T) {
	pairs := []hal.PortPair{{In: 0, Out: 1}, {In: 1, Out: 0}}
	c, s := newPatchBox(4, 4)
	s.Swallow, s.Chatter = 2, "REPT EVT"
	if talk(c, s, hal.BoxGoal{Create: pairs}, 5); failure(c) != nil || !slices.Equal(state(c).Map, pairs) {
		t.Errorf("swallowed: %v %+v", failure(c), state(c))
	}
	s.Swallow = 1000
	if talk(c, s, hal.BoxGoal{Remove: pairs}, 5); !errors.Is(failure(c), hal.ErrBoxNotMade) {
		t.Errorf("never done: %v", failure(c))
	}
	s.Swallow, s.Deny = 0, 1
	if talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 2, Out: 2}}}, 5); !errors.Is(failure(c), hal.ErrBoxDenied) {
		t.Errorf("denied: %v", failure(c))
	}
	for _, text := range []string{`"1"`, `"1,x"`, `"9,5"`, `"1,5"` + "\r\n" + `"1,6"`, `"5,1"`} {
		c, s := newPatchBox(4, 4)
		c.Begin(hal.BoxGoal{})
		for range 2 { // login, what it is
			line, _ := c.Next(nil)
			c.Take(s.Take(line, nil))
		}
		c.Next(nil)
		c.Take([]byte("   box 26-01-01 00:00:00\r\nM  3 COMPLD\r\n   " + text + "\r\n;"))
		if !errors.Is(failure(c), hal.ErrBoxReply) {
			t.Errorf("%q: %v", text, failure(c))
		}
	}
}

// Goal: no answer makes a client of patches panic or speak for ever.
func FuzzPatchClient(f *testing.F) {
	f.Add([]byte("   box 26-01-01 00:00:00\r\nM  3 COMPLD\r\n   \"1,5\"\r\n;"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, s := newPatchBox(4, 4)
		c.Begin(hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}, Powers: true})
		for i := range 200 {
			line, ok := c.Next(nil)
			if !ok {
				return
			}
			if i == 2 {
				c.Take(b)
			}
			c.Take(s.Take(line, nil))
		}
		t.Fatal("never ends")
	})
}
