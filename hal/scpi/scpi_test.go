package scpi_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/scpi"
)

// box is a switch with knobs: it may swallow sets, as those of the field do,
// and be busy for a while.
type box struct {
	state   hal.BoxState
	swallow int
	busy    int // looks that find it busy after a change
	left    int
	sets    int
}

func newBox(in, out int) *box {
	b := &box{state: hal.BoxState{In: in, Out: out, HasMeters: true, Identity: fmt.Sprintf("Polatis,N-OST-%dx%d-LA1-DMHNS,12345,6.5.2.18", in, out)}}
	for i := range in + out {
		b.state.Powers = append(b.state.Powers, int32(-5100-100*i))
	}
	return b
}

func (b *box) State() (hal.BoxState, bool) {
	busy := b.left > 0
	b.left = max(0, b.left-1)
	return b.state, busy
}

func (b *box) Change(g hal.BoxGoal) error {
	b.sets++
	if b.swallow > 0 {
		b.swallow--
		return nil
	}
	b.left = b.busy
	if g.Only {
		b.state.Map = nil
	}
	clash := func(p hal.PortPair) bool {
		return slices.Contains(g.Remove, p) || slices.ContainsFunc(g.Create, func(q hal.PortPair) bool { return q.In == p.In || q.Out == p.Out })
	}
	b.state.Map = slices.DeleteFunc(slices.Clone(b.state.Map), clash)
	b.state.Map = append(b.state.Map, g.Create...)
	slices.SortFunc(b.state.Map, func(p, q hal.PortPair) int { return int(p.In) - int(q.In) })
	return nil
}

// Golden transcripts: what a script of the field says and gets, and beside each
// command that works its twins that must not.
func TestServerTranscripts(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"identity", "*IDN?", "Polatis,N-OST-16x16-LA1-DMHNS,12345,6.5.2.18\n"},
		{"size", ":oxc:swit:size?", "16,16\n"},
		{"add and wait", ":oxc:swit:conn:add (@1,2,3),(@17,18,19);*OPC?\n:oxc:swit:conn:stat?", "1\n(@1,2,3),(@17,18,19)\n"},
		{"set is silent", ":oxc:swit:conn:add (@1),(@17)\n:oxc:swit:conn:port? 1\n:oxc:swit:conn:port? 17", "\"17\"\n\"1\"\n"},
		{"long forms", "OXC:SWITch:CONNect:ADD (@4),(@20);*opc?\noxc:switch:connect:state?", "1\n(@4),(@20)\n"},
		{"ranges", ":oxc:swit:conn:add (@1:3),(@19,18,17);:oxc:swit:conn:stat?", "(@1,2,3),(@19,18,17)\n"},
		{"add takes over", ":oxc:swit:conn:add (@1,2),(@17,18)\n:oxc:swit:conn:add (@2),(@17)\n:oxc:swit:conn:stat?", "(@2),(@17)\n"},
		{"sub", ":oxc:swit:conn:add (@1,2,3),(@17,18,19)\n:oxc:swit:conn:sub (@1,2),(@17,18)\n:oxc:swit:conn:stat?", "(@3),(@19)\n"},
		{"sub by inputs", ":oxc:swit:conn:add (@1,2,3),(@17,18,19)\n:oxc:swit:conn:sub (@1,3,4),(@)\n:oxc:swit:conn:stat?", "(@2),(@18)\n"},
		{"only", ":oxc:swit:conn:add (@1,2),(@17,18)\n:oxc:swit:conn:only (@5),(@30)\n:oxc:swit:conn:stat?", "(@5),(@30)\n"},
		{"disconnect", ":oxc:swit:conn:add (@1),(@17)\n:oxc:swit:disc:all;*OPC?;:oxc:swit:conn:stat?", "1;(@),(@)\n"},
		{"port free", ":oxc:swit:conn:port? 2", "\"\"\n"},
		{"powers", ":pmon:pow? (@1,2,32)", "(-5.1,-5.2,-8.2)\n"},
		{"errors once", "nonsense\n:syst:err?\n:syst:err?", "-113,\"Undefined header\"\n0,\"No error\"\n"},
		{"all errors", "a;b\n:syst:err:all?", "-113,\"Undefined header\",-113,\"Undefined header\"\n"},
		{"cleared", "a\n*CLS\n:syst:err?", "0,\"No error\"\n"},
		{"reset keeps the light", ":oxc:swit:conn:add (@1),(@17)\n*RST\n:oxc:swit:conn:stat?", "(@1),(@17)\n"},
		// Twins: each leaves the map as it was.
		{"output as input", ":oxc:swit:conn:add (@17),(@1)\n:syst:err?;:oxc:swit:conn:stat?", "-222,\"Data out of range\";(@),(@)\n"},
		{"port twice", ":oxc:swit:conn:add (@1,1),(@17,18)\n:syst:err?;:oxc:swit:conn:stat?", "-222,\"Data out of range\";(@),(@)\n"},
		{"uneven lists", ":oxc:swit:conn:add (@1,2),(@17)\n:syst:err?;:oxc:swit:conn:stat?", "-108,\"Parameter not allowed\";(@),(@)\n"},
		{"cut short", ":oxc:swit:conn:add (@1,2\n:syst:err?;:oxc:swit:conn:stat?", "-108,\"Parameter not allowed\";(@),(@)\n"},
		{"port 0", ":oxc:swit:conn:add (@0),(@17)\n:syst:err?", "-108,\"Parameter not allowed\"\n"},
		{"no such port", ":oxc:swit:conn:port? 33\n:syst:err?", "-222,\"Data out of range\"\n"},
		{"no such meter", ":pmon:pow? (@33)\n:syst:err?", "-222,\"Data out of range\"\n"},
		{"half a keyword", ":oxc:switc:size?\n:syst:err?", "-113,\"Undefined header\"\n"},
	} {
		s := scpi.NewServer(newBox(16, 16))
		var got []byte
		for line := range strings.SplitSeq(c.in, "\n") {
			s.Take([]byte(line + "\r\n"))
			got = s.Poll(got)
		}
		if string(got) != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// *OPC? answers when the light is there, and holds back what follows.
func TestServerWaits(t *testing.T) {
	b := newBox(4, 4)
	b.busy = 5
	s := scpi.NewServer(b)
	s.Take([]byte(":oxc:swit:conn:add (@1),(@5);*OPC?"))
	s.Take([]byte(":oxc:swit:conn:stat?"))
	polls := 0
	var got []byte
	for ; len(got) == 0 && polls < 100; polls++ {
		got = s.Poll(got)
	}
	if string(got) != "1\n(@1),(@5)\n" || polls < 4 {
		t.Errorf("%q after %d polls", got, polls)
	}
}

// talk lets a client and a server speak, and returns what was said.
func talk(c *hal.BoxClient, s *scpi.Server, goal hal.BoxGoal) (said string) {
	c.Begin(goal)
	for range 100 {
		line, ok := c.Next(nil)
		if !ok {
			return said
		}
		said += "> " + string(line)
		s.Take(line)
		reply := s.Poll(nil)
		said += "< " + string(reply)
		c.Take(reply)
	}
	return said + "endless"
}

// Client and server against each other: a first talk, one that replaces, and
// one with a switch that swallows sets.
func TestClientAgainstServer(t *testing.T) {
	b := newBox(16, 16)
	s := scpi.NewServer(b)
	c := scpi.NewClient()
	goal := hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 3}, {In: 1, Out: 2}}, Powers: true}
	said := talk(c, s, goal)
	want := "> *IDN?\n< Polatis,N-OST-16x16-LA1-DMHNS,12345,6.5.2.18\n> :oxc:swit:size?\n< 16,16\n" +
		"> :oxc:swit:conn:stat?\n< (@),(@)\n> :oxc:swit:conn:add (@1,2),(@20,19);*OPC?\n< 1\n> :oxc:swit:conn:stat?\n< (@1,2),(@20,19)\n" +
		"> :pmon:pow? (@1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32)\n"
	if failure(c) != nil || !strings.HasPrefix(said, want) {
		t.Errorf("%v\n%s", failure(c), said)
	}
	if st := state(c); !slices.Equal(st.Map, goal.Create) || len(st.Powers) != 32 || st.Powers[0] != -5100 {
		t.Errorf("%+v", st)
	}
	said = talk(c, s, hal.BoxGoal{Remove: []hal.PortPair{{In: 0, Out: 3}}, Create: []hal.PortPair{{In: 0, Out: 5}}})
	if failure(c) != nil || !slices.Equal(state(c).Map, []hal.PortPair{{In: 0, Out: 5}, {In: 1, Out: 2}}) {
		t.Errorf("%v %+v\n%s", failure(c), state(c), said)
	}
	b.swallow, b.sets = 2, 0
	said = talk(c, s, hal.BoxGoal{Only: true, Create: []hal.PortPair{{In: 7, Out: 7}}})
	if failure(c) != nil || b.sets != 2+3 { // at once, then one by one
		t.Errorf("%v after %d sets\n%s", failure(c), b.sets, said)
	}
	b.swallow, b.sets = 100, 0
	said = talk(c, s, hal.BoxGoal{Only: true})
	if !errors.Is(failure(c), hal.ErrBoxNotMade) || b.sets != hal.BoxTries { // of one connection
		t.Errorf("%v after %d sets\n%s", failure(c), b.sets, said)
	}
	talk(c, s, hal.BoxGoal{Create: []hal.PortPair{{In: 16}}})
	if !errors.Is(failure(c), hal.ErrOutOfRange) {
		t.Errorf("port beyond the size: %v", failure(c))
	}
}

// A model without power meters is not asked for powers.
func TestClientWithoutMeters(t *testing.T) {
	b := newBox(4, 4)
	b.state.Identity, b.state.HasMeters = "Polatis,I-OST-4x4-LA1,1,6.5", false
	c := scpi.NewClient()
	said := talk(c, scpi.NewServer(b), hal.BoxGoal{Powers: true})
	if failure(c) != nil || state(c).Powers != nil || strings.Contains(said, "pmon") {
		t.Errorf("%v\n%s", failure(c), said)
	}
}

// What no switch answers is refused, each step on its own.
func TestClientRefusesReplies(t *testing.T) {
	good := []string{"Polatis,N-OST-4x4,1,6.5", "4,4", "(@),(@)", "1", "(@1),(@5)", "(-1.0,-2.0,-3.0,-4.0,-5.0,-6.0,-7.0,-40.0)"}
	for step, replies := range [][]string{
		{"", "Polatis", "Polatis,,1,6.5", "a,b,c,d,e"},
		{"", "4", "4,0", "4,x", "-4,4", "4000,4000"},
		{"", "(@1),(@5", "(@1,2),(@5)"},
		{"", "0", "1;1"},
		{"", "(@1),(@5", "(@1,2),(@5)", "(@1,1),(@5,6)", "(@1,2),(@5,5)", "(@5),(@1)", "(@1),(@9)", "(@1),(@5)x", "(@1)(@5)"},
		{"", "(-1.0)", "-1.0", "(1,2,3,4,5,6,7,x)", "(1,2,3,4,5,6,7,1e3)", "(1,2,3,4,5,6,7,1.2345)"},
	} {
		for _, bad := range replies {
			c := scpi.NewClient()
			c.Begin(hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 0}}, Powers: true})
			for i, g := range good {
				if i == step {
					g = bad
				}
				c.Next(nil)
				c.Take([]byte(g + "\n"))
			}
			for range 8 * (1 - min(step, 1)) { // lines of an older exchange are passed over, so many
				c.Take([]byte(bad + "\n"))
			}
			if !errors.Is(failure(c), hal.ErrBoxReply) {
				t.Errorf("step %d, %q: %v", step, bad, failure(c))
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("(@1,2),(@17,18)")
	f.Add("(@1:4),(@17:20)")
	f.Add("(-5.1,-40.0)")
	f.Fuzz(func(t *testing.T, s string) {
		pairs, err := scpi.ParseMap(s, 16, 16)
		if err != nil && !errors.Is(err, hal.ErrBoxReply) {
			t.Error(err)
		}
		for _, p := range pairs {
			if p.In >= 16 || p.Out >= 16 {
				t.Errorf("%v", p)
			}
		}
		if v, err := scpi.ParsePowers(s, 2); err == nil && len(v) != 2 {
			t.Errorf("%v", v)
		}
	})
}

// Whatever comes in, the server answers whole lines and its box stays sane.
func FuzzServer(f *testing.F) {
	f.Add(":oxc:swit:conn:add (@1,2),(@17,18);*OPC?;:syst:err:all?")
	f.Add(":oxc:swit:conn:sub (@1:9),(@);:oxc:swit:conn:stat?;:pmon:pow? (@1)")
	f.Fuzz(func(t *testing.T, line string) {
		b := newBox(16, 16)
		s := scpi.NewServer(b)
		s.Take([]byte(line))
		out := s.Poll(nil)
		if len(out) > 0 && out[len(out)-1] != '\n' {
			t.Errorf("%q", out)
		}
		if _, err := scpi.ParseMap(strings.TrimSpace(string(scpiState(s))), 16, 16); err != nil {
			t.Error(err)
		}
	})
}

func scpiState(s *scpi.Server) []byte {
	s.Take([]byte(":oxc:swit:conn:stat?"))
	return s.Poll(nil)
}

func FuzzClient(f *testing.F) {
	f.Add("Polatis,N-OST-4x4,1,6.5\n4,4\n1\n(@1),(@5)\n")
	f.Fuzz(func(t *testing.T, replies string) {
		c := scpi.NewClient()
		c.Begin(hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 0}}, Powers: true})
		for r := range strings.SplitSeq(replies, "\n") {
			if _, ok := c.Next(nil); !ok {
				break
			}
			c.Take([]byte(r))
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

// Goal: a client that begins anew on a line with leftovers gets into step again.
// Method: the replies of a broken exchange before the identity, a map of two
// connections among them, which has four parts as an identity does.
func TestClientPassesOverLeftovers(t *testing.T) {
	c := scpi.NewClient()
	c.Begin(hal.BoxGoal{Fresh: true})
	if _, step := c.Exchange(nil, nil); step != hal.BoxSend {
		t.Fatalf("begins with %v", step)
	}
	for _, left := range []string{",18)", "1", "(@1,2),(@17,18)"} {
		if line, step := c.Exchange([]byte(left+"\n"), nil); step != hal.BoxWait || len(line) > 0 {
			t.Errorf("%q: %v %q", left, step, line)
		}
	}
	if line, step := c.Exchange([]byte("Polatis,N-OST-4x4,1,6.5\n"), nil); step != hal.BoxSend || string(line) != ":oxc:swit:size?\n" {
		t.Errorf("after the identity: %v %q", step, line)
	}
}
