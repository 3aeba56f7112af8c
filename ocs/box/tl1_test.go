package box_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/tl1"
	"ringlight/sim/boxes"
)

func newServer(ports int) *boxes.TL1Server {
	return &boxes.TL1Server{Name: "box", User: "u", Password: "pw", Names: tl1.DefaultNames(ports),
		Powers: map[string][2]string{"1.1.1": {"-1.25", "-40.00"}, "1.1.2": {"-2.50", "-3.75"}}}
}

// talk lets a client and a server speak, the answers coming in pieces of so
// many bytes, and returns what the client said.
func talk(c *hal.BoxClient, s *boxes.TL1Server, goal hal.BoxGoal, piece int) (said []string) {
	c.Begin(goal)
	for range 500 {
		line, ok := c.Next(nil)
		if !ok {
			if c.Waiting() {
				said = append(said, "no answer")
			}
			return said
		}
		said = append(said, string(line))
		for part := range slices.Chunk(s.Take(line, nil), piece) {
			c.Take(part)
		}
	}
	return append(said, "endless")
}

// Golden transcript: login, two circuits in two phases each, read back.
func TestClientTranscript(t *testing.T) {
	c := tl1.NewClient(tl1.Config{Names: tl1.DefaultNames(2), User: "u", Password: "pw", Group: "G"})
	s := newServer(2)
	got := talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}, Powers: true}, 7)
	want := []string{
		"ACT-USER::u:1::pw;", "RTRV-NE:::2;", "RTRV-ALM-ALL:::3;", "RTRV-CRS:::4::ALL;",
		"ENT-CRS::1.1.1,1.1.2:5::G,1WAY;", "ACT-CRS::1.1.1,1.1.2:6::1.1.1>1.1.2,G;", "RTRV-CRS:::7::ALL;",
		"RTRV-PORT-SUM::1.1.1:8;", "RTRV-PORT-SUM::1.1.2:9;", "RTRV-PORT-SUM::1.1.1:10;", "RTRV-PORT-SUM::1.1.2:11;",
	}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
	if st := state(c); !slices.Equal(st.Map, []hal.PortPair{{In: 0, Out: 1}}) || !slices.Equal(st.Powers, []int32{-1250, -2500, -40000, -3750}) {
		t.Errorf("%+v", st)
	}
	got = talk(c, s, hal.BoxGoal{Only: true, Create: []hal.PortPair{{In: 1, Out: 1}}}, 1000)
	want = []string{
		"RTRV-CRS:::12::ALL;", "CANC-CRS::1.1.1,1.1.2:13::,G,1.1.1>1.1.2;", "DLT-CRS::1.1.1,1.1.2:14::,G,1.1.1>1.1.2;",
		"ENT-CRS::1.1.2,1.1.2:15::G,1WAY;", "ACT-CRS::1.1.2,1.1.2:16::1.1.2>1.1.2,G;", "RTRV-CRS:::17::ALL;",
	}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
}

// What boxes do to clients: chatter, sets that are acknowledged and not done,
// denials, half-made connections, another owner's circuits.
func TestClientAgainstDifficultBox(t *testing.T) {
	names := tl1.DefaultNames(16)
	fresh := func() (*hal.BoxClient, *boxes.TL1Server) {
		return tl1.NewClient(tl1.Config{Names: names, User: "u", Password: "pw", Group: "G"}), newServer(16)
	}
	goal := hal.BoxGoal{Create: []hal.PortPair{{In: 3, Out: 4}}}

	c, s := fresh()
	s.Chatter = `REPT ALM CRS`
	if talk(c, s, goal, 5); failure(c) != nil {
		t.Errorf("chatter: %v", failure(c))
	}
	c, s = fresh()
	s.Swallow = 4
	if talk(c, s, goal, 100); failure(c) != nil || len(s.Connections()) != 1 {
		t.Errorf("swallowed twice: %v", failure(c))
	}
	c, s = fresh()
	s.Swallow = 100
	if talk(c, s, goal, 100); !errors.Is(failure(c), hal.ErrBoxNotMade) || s.Swallow != 100-2*hal.BoxTries {
		t.Errorf("swallowed always: %v", failure(c))
	}
	c, s = fresh()
	s.Deny = 100
	if talk(c, s, goal, 100); !errors.Is(state(c).Refused[goal.Create[0]], hal.ErrBoxDenied) {
		t.Errorf("denied: %v", failure(c))
	}
	c, s = fresh()
	s.Password = "other"
	if talk(c, s, goal, 100); !errors.Is(failure(c), hal.ErrBoxDenied) || !strings.Contains(failure(c).Error(), "PIUI") {
		t.Errorf("wrong password: %v", failure(c))
	}
	c, s = fresh()
	s.Take([]byte("ACT-USER::u:1::pw;ENT-CRS::1.1.4,1.1.5:2::G,1WAY;"), nil)
	if talk(c, s, goal, 100); failure(c) != nil || !s.Connections()[0].Active {
		t.Errorf("half made: %v", failure(c))
	}
	c, s = fresh() // another that was cancelled and not deleted, and one that was only entered, in its way
	s.Take([]byte("ACT-USER::u:1::pw;ENT-CRS::1.1.4,1.1.6:2::G,1WAY;ENT-CRS::1.1.1,1.1.5:3::G,1WAY;ACT-CRS::1.1.1,1.1.5:4::1.1.1>1.1.5,G;CANC-CRS::1.1.1,1.1.5:5::,G,1.1.1>1.1.5;"), nil)
	if talk(c, s, goal, 100); failure(c) != nil || len(s.Connections()) != 1 || !s.Connections()[0].Active || s.Connections()[0].Source != "1.1.4" {
		t.Errorf("half made, of other ports: %v, %+v", failure(c), s.Connections())
	}
	c, s = fresh() // one that was only entered, listed behind ours, at a port of it
	s.Made = []boxes.CrossConnection{{Source: "1.1.4", Destination: "1.1.5", Group: "G", Name: "1.1.4>1.1.5", Active: true}, {Source: "1.1.4", Destination: "1.1.6", Group: "G", Name: "1.1.4>1.1.6"}}
	if talk(c, s, goal, 100); failure(c) != nil || len(s.Connections()) != 1 || !s.Connections()[0].Active {
		t.Errorf("half made, at a port of ours: %v, %+v", failure(c), s.Connections())
	}
	c, s = fresh()
	s.Take([]byte("ACT-USER::u:1::pw;ENT-CRS::1.2.1,1.2.2:2::other,1WAY;ACT-CRS::1.2.1,1.2.2:3::1.2.1>1.2.2,other;"), nil)
	if talk(c, s, hal.BoxGoal{Only: true, Create: goal.Create}, 100); failure(c) != nil || len(s.Connections()) != 2 {
		t.Errorf("another owner's: %v, %v", failure(c), s.Connections())
	}
	if talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 16}}}, 100); !errors.Is(failure(c), hal.ErrOutOfRange) {
		t.Errorf("out of range: %v", failure(c))
	}
}

// Two phases, in order: activated before it is entered, deleted before it is
// cancelled, a port twice, nobody logged in.
func TestServerRefuses(t *testing.T) {
	s := newServer(4)
	for _, c := range []struct{ in, want string }{
		{"RTRV-NE:::1;", "PLNA"},
		{"ACT-USER::u:1::bad;", "PIUI"},
		{"ACT-USER::u:1::pw;", ""},
		{"ACT-CRS::1.1.1,1.1.2:2::1.1.1>1.1.2,G;", "SRCN"},
		{"ENT-CRS::1.1.1,1.1.2:3::G,2WAY;", ""},
		{"ACT-CRS::1.1.1,1.1.2:4::1.1.1>1.1.2,G;", "SRCN"},
		{"ACT-CRS::1.1.1,1.1.2:4::1.1.1-1.1.2,G;", ""},
		{"ENT-CRS::1.1.1,1.1.3:5::G,1WAY;", "SAOP"},
		{"DLT-CRS::1.1.1,1.1.2:6::,G,C;", "SRCN"},
		{"CANC-CRS::1.1.1,1.1.2:7::,G,C;", ""},
		{"DLT-CRS::1.1.1,1.1.2:8::,G,C;", ""},
		{"ENT-CRS::1.9.9,1.1.3:9::G,1WAY;", "IIAC"},
		{"WHAT:::1;", "ICNV"},
		{"CANC-USER:::1;", ""},
		{"RTRV-CRS:::1::ALL;", "PLNA"},
	} {
		out := string(s.Take([]byte(c.in), nil))
		if denied := strings.Contains(out, "DENY"); denied != (c.want != "") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %q, want %q", c.in, out, c.want)
		}
	}
}

func FuzzServer(f *testing.F) {
	f.Add([]byte("ACT-USER::u:1::pw;ENT-CRS::1.1.1,1.1.2:3::G,2WAY;RTRV-CRS:::1::ALL;"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newServer(4)
		s.Take(append([]byte("ACT-USER::u:1::pw;"), b...), nil)
		seen := map[string]bool{}
		for _, c := range s.Connections() {
			if seen["s"+c.Source] || seen["d"+c.Destination] {
				t.Errorf("%+v", s.Connections())
			}
			seen["s"+c.Source], seen["d"+c.Destination] = true, true
		}
	})
}

func failure(c *hal.BoxClient) error {
	_, err := c.Result()
	return err
}

func state(c *hal.BoxClient) hal.BoxState {
	s, _ := c.Result()
	return s
}

func newPatchBox(in, out int) (*hal.BoxClient, *boxes.TL1Server) {
	names := tl1.PatchNames(in, out)
	return tl1.NewClient(tl1.Config{Names: names, User: "u", Password: "pw", Patch: true}),
		&boxes.TL1Server{Name: "box", User: "u", Password: "pw", Names: names, Powers: map[string][2]string{"1": {"-1.25", ""}, "4": {"", "-3.75"}}}
}

// Goal: a box of patches is told, read back and metered in its own words.
// Method: golden transcripts; the answers in pieces; then all in one change.
func TestPatchTranscript(t *testing.T) {
	c, s := newPatchBox(2, 2)
	got := talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}, Powers: true}, 7)
	want := []string{"ACT-USER::u:1::pw;", "RTRV-NETYPE:::2:;", "RTRV-ALM-ALL:::3;", "RTRV-PATCH:::4:;", "ENT-PATCH::1,4:5:;", "RTRV-PATCH:::6:;", "RTRV-PORT-PMON::1&&4:7:;"}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
	if st := state(c); !slices.Equal(st.Map, []hal.PortPair{{In: 0, Out: 1}}) || !slices.Equal(st.Powers, []int32{-1250, -60_000, -60_000, -3750}) {
		t.Errorf("%+v", st)
	}
	got = talk(c, s, hal.BoxGoal{Only: true, Create: []hal.PortPair{{In: 1, Out: 1}}}, 1000)
	want = []string{"RTRV-PATCH:::8:;", "DLT-PATCH::1:9:;", "ENT-PATCH::2,4:10:;", "RTRV-PATCH:::11:;"}
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
	s.Swallow, s.Deny = 0, hal.BoxTries
	if talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 2, Out: 2}}}, 5); !errors.Is(state(c).Refused[hal.PortPair{In: 2, Out: 2}], hal.ErrBoxDenied) {
		t.Errorf("denied: %v", failure(c))
	}
	for _, text := range []string{`"1"`, `"1,x"`, `"9,5"`, `"1,5"` + "\r\n" + `"1,6"`, `"5,1"`} {
		c, s := newPatchBox(4, 4)
		c.Begin(hal.BoxGoal{})
		for range 3 { // login, what it is, its alarms
			line, _ := c.Next(nil)
			c.Take(s.Take(line, nil))
		}
		c.Next(nil)
		c.Take([]byte("   box 26-01-01 00:00:00\r\nM  4 COMPLD\r\n   " + text + "\r\n;"))
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
			if i == 3 {
				c.Take(b)
			}
			c.Take(s.Take(line, nil))
		}
		t.Fatal("never ends")
	})
}
