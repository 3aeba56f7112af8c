package tl1_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/tl1"
	"ringlight/hal/tl1/tl1test"
)

func newServer(ports int) *tl1test.Server {
	return &tl1test.Server{Name: "box", User: "u", Password: "pw", Names: tl1.DefaultNames(ports),
		Powers: map[string][2]string{"1.1.1": {"-1.25", "-40.00"}, "1.1.2": {"-2.50", "-3.75"}}}
}

// talk lets a client and a server speak, the answers coming in pieces of so
// many bytes, and returns what the client said.
func talk(c *tl1.Client, s *tl1test.Server, goal hal.BoxGoal, piece int) (said []string) {
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
		"ACT-USER::u:1::pw;", "RTRV-NE:::2;", "RTRV-CRS:::3::ALL;",
		"ENT-CRS::1.1.1,1.1.2:4::G,1WAY;", "ACT-CRS::1.1.1,1.1.2:5::1.1.1>1.1.2,G;", "RTRV-CRS:::6::ALL;",
		"RTRV-PORT-SUM::1.1.1:7;", "RTRV-PORT-SUM::1.1.2:8;", "RTRV-PORT-SUM::1.1.1:9;", "RTRV-PORT-SUM::1.1.2:10;",
	}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
	if st := state(c); !slices.Equal(st.Map, []hal.PortPair{{In: 0, Out: 1}}) || !slices.Equal(st.Powers, []int32{-1250, -2500, -40000, -3750}) {
		t.Errorf("%+v", st)
	}
	got = talk(c, s, hal.BoxGoal{Only: true, Create: []hal.PortPair{{In: 1, Out: 1}}}, 1000)
	want = []string{
		"RTRV-CRS:::11::ALL;", "CANC-CRS::1.1.1,1.1.2:12::,G,1.1.1>1.1.2;", "DLT-CRS::1.1.1,1.1.2:13::,G,1.1.1>1.1.2;",
		"ENT-CRS::1.1.2,1.1.2:14::G,1WAY;", "ACT-CRS::1.1.2,1.1.2:15::1.1.2>1.1.2,G;", "RTRV-CRS:::16::ALL;",
	}
	if failure(c) != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", failure(c), got, want)
	}
}

// What boxes do to clients: chatter, sets that are acknowledged and not done,
// denials, half-made connections, another owner's circuits.
func TestClientAgainstDifficultBox(t *testing.T) {
	names := tl1.DefaultNames(16)
	fresh := func() (*tl1.Client, *tl1test.Server) {
		return tl1.NewClient(tl1.Config{Names: names, User: "u", Password: "pw", Group: "G"}), newServer(16)
	}
	goal := hal.BoxGoal{Create: []hal.PortPair{{In: 3, Out: 4}}}

	c, s := fresh()
	s.Chatter = `REPT ALM CRS`
	if talk(c, s, goal, 5); failure(c) != nil || c.Autonomous == 0 {
		t.Errorf("chatter: %v, %d messages passed over", failure(c), c.Autonomous)
	}
	c, s = fresh()
	s.Swallow = 4
	if talk(c, s, goal, 100); failure(c) != nil || len(s.Connections()) != 1 {
		t.Errorf("swallowed twice: %v", failure(c))
	}
	c, s = fresh()
	s.Swallow = 100
	if talk(c, s, goal, 100); !errors.Is(failure(c), hal.ErrBoxNotMade) || s.Swallow != 100-2*tl1.MaxTries {
		t.Errorf("swallowed always: %v", failure(c))
	}
	c, s = fresh()
	s.Deny = 100
	if talk(c, s, goal, 100); !errors.Is(failure(c), hal.ErrBoxDenied) {
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
	c, s = fresh()
	s.Take([]byte("ACT-USER::u:1::pw;ENT-CRS::1.2.1,1.2.2:2::other,1WAY;ACT-CRS::1.2.1,1.2.2:3::1.2.1>1.2.2,other;"), nil)
	if talk(c, s, hal.BoxGoal{Only: true, Create: goal.Create}, 100); failure(c) != nil || len(s.Connections()) != 2 {
		t.Errorf("another owner's: %v, %v", failure(c), s.Connections())
	}
	if talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 16}}}, 100); !errors.Is(failure(c), hal.ErrOutOfRange) {
		t.Errorf("out of range: %v", failure(c))
	}
}

// Golden messages and their negative twins.
func TestMessages(t *testing.T) {
	const head = "\r\n\n   box 26-01-01 00:00:01\r\n"
	for _, c := range []struct {
		in   string
		want tl1.Message
		bad  bool
	}{
		{in: head + "M  12 COMPLD\r\n;", want: tl1.Message{Tag: 12, Code: "COMPLD"}},
		{in: head + "M  12 COMPLD\r\n   \"a=1,b=2\"\r\n   \"c\"\r\n;", want: tl1.Message{Tag: 12, Code: "COMPLD", Text: []string{"a=1,b=2", "c"}}},
		{in: head + "M  3 DENY\r\n   SROF\r\n;", want: tl1.Message{Tag: 3, Code: "DENY", Text: []string{"SROF"}}},
		{in: head + "*C 7 REPT ALM\r\n   \"1.1.1:CR,LOS; now\"\r\n;", want: tl1.Message{Code: "REPT ALM", Text: []string{"1.1.1:CR,LOS; now"}}},
		{in: "RTRV-NE:::5;\r\n" + head + "M  5 COMPLD\r\n;", want: tl1.Message{Tag: 5, Code: "COMPLD"}}, // echoed
		{in: head + "M  x COMPLD\r\n;", bad: true},
		{in: head + "M  0 COMPLD\r\n;", bad: true},
		{in: head + "M  12\r\n;", bad: true},
		{in: head + "M  12 COMPLD\r\n   \"open\r\n;", bad: true},
		{in: "\r\n;", bad: true},
	} {
		var r tl1.Reader
		var got tl1.Message
		var ok bool
		var err error
		for i := range len(c.in) { // byte by byte
			if ok || err != nil {
				t.Errorf("%q: over before its end", c.in)
			}
			r.Put([]byte{c.in[i]})
			got, ok, err = r.Next()
		}
		if c.bad {
			if !errors.Is(err, hal.ErrBoxReply) || ok {
				t.Errorf("%q: %+v, %v", c.in, got, err)
			}
			continue
		}
		if err != nil || !ok || got.Tag != c.want.Tag || got.Code != c.want.Code || !slices.Equal(got.Text, c.want.Text) {
			t.Errorf("%q: %+v, %v", c.in, got, err)
		}
	}
	// Cut short: never a message.
	var r tl1.Reader
	r.Put([]byte(head + "M  12 COMPLD\r\n"))
	if m, ok, err := r.Next(); ok || err != nil {
		t.Errorf("cut short: %+v %v", m, err)
	}
	r.Put(make([]byte, tl1.MaxMessage))
	if _, _, err := r.Next(); !errors.Is(err, hal.ErrBoxReply) {
		t.Errorf("without end: %v", err)
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

func FuzzReader(f *testing.F) {
	f.Add([]byte("\r\n\n   box 26-01-01 00:00:01\r\nM  12 COMPLD\r\n   \"a=1,b=2\"\r\n;"))
	f.Add([]byte("A 1 REPT EVT\n;M 1 DENY\n;"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r tl1.Reader
		r.Put(b)
		for range len(b) + 1 {
			_, ok, err := r.Next()
			if err != nil && !errors.Is(err, hal.ErrBoxReply) {
				t.Error(err)
			}
			if err == nil && !ok {
				return
			}
		}
		t.Error("endless")
	})
}

func FuzzClient(f *testing.F) {
	f.Add([]byte("M 1 COMPLD\n;M 2 COMPLD\n;M 3 COMPLD\n\"SRCPORT=1.1.1,DSTPORT=1.1.2,GRPNAME=G\"\n;"), uint8(9))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		c := tl1.NewClient(tl1.Config{Names: tl1.DefaultNames(4), User: "u", Group: "G"})
		c.Begin(hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}, Powers: true})
		for part := range slices.Chunk(b, int(piece)+1) {
			c.Next(nil)
			c.Take(part)
		}
	})
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

func failure(c *tl1.Client) error {
	_, err := c.Result()
	return err
}

func state(c *tl1.Client) hal.BoxState {
	s, _ := c.Result()
	return s
}
