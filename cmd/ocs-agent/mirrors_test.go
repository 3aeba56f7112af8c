package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/freeport"
)

// script is a lab's connection to a box.
type script struct {
	t  *testing.T
	c  net.Conn
	in *bufio.Reader
}

// dialScript waits until somebody listens.
func dialScript(t *testing.T, ctx context.Context, address string) *script {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			t.Cleanup(func() { c.Close() })
			return &script{t, c, bufio.NewReader(c)}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nobody listens at %s", address)
		}
	}
}

// say sends a line and gives the answer to a question.
func (s *script) say(line string) string {
	s.t.Helper()
	s.c.SetDeadline(time.Now().Add(time.Minute)) // a bound on a hang
	if _, err := fmt.Fprintln(s.c, line); err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(line, "?") {
		return ""
	}
	answer, err := s.in.ReadString('\n')
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	return strings.TrimSpace(answer)
}

func TestBoxBehindTheSameAgent(t *testing.T) {
	// Goal: scripts drive a switch over TCP; a commercial box on the network is a
	// switch too, behind the same agent.
	// Method: one agent serves a simulated board as a box would; a second one has
	// that for its box; a script drives the second and light passes in the first.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	sockets := t.TempDir()
	start := func(text string) {
		cfg, err := readConfig(write(t, "c.json", text))
		if err == nil {
			cfg.State, cfg.LogLevel, cfg.Socket = filepath.Join(t.TempDir(), "state"), "error", filepath.Join(sockets, fmt.Sprint(cfg.Node))
			err = cfg.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := cfg.run(ctx, "", cfg.logger().Logger, startedAs("")); err != nil {
				t.Error(err)
			}
		})
	}
	board, box := freeport.Address(), freeport.Address()
	start(fmt.Sprintf(`{"node":2,"broker":"","scpi":%q,"board":{"kind":"sim","ports":16,"seed":4}}`, board))
	near := dialScript(t, ctx, board)
	if id := near.say("*IDN?"); !strings.HasPrefix(id, "Ringlight,") {
		t.Errorf("%q", id)
	}
	start(fmt.Sprintf(`{"node":3,"broker":"","scpi":%q,"board":{"kind":"box","ports":16,"box":{"protocol":"scpi","address":%q}}}`, box, board))
	far := dialScript(t, ctx, box)
	near.say(":oxc:swit:conn:add (@1,2),(@20,30)")
	if ok := near.say("*OPC?"); ok != "1" {
		t.Errorf("%q", ok)
	}
	for far.say(":oxc:swit:conn:add (@7),(@25);*OPC?;:syst:err?") != `1;0,"No error"` {
		if ctx.Err() != nil {
			t.Fatal("the box is never ready")
		}
	}
	if m := near.say(":oxc:swit:conn:stat?"); m != "(@1,2,7),(@20,30,25)" {
		t.Errorf("the board has %s", m)
	}
	// A port of the board that is held off is dark until it is let go.
	where := write(t, "here.json", fmt.Sprintf(`{"node":2,"socket":%q,"board":{"ports":16}}`, filepath.Join(sockets, "2")))
	if code, out, errs := command(t, "port", "hold", "7a", "-config", where); code != 0 || !strings.Contains(out, "port 7A force_blocked") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, out, _ := command(t, "port", "free", "7A", "-config", where); code != 0 || strings.Contains(out, "port 7A") {
		t.Errorf("exit %d, %s", code, out)
	}
	for port, want := range map[string]int{"17A": 2, "0A": 2, "7C": 2, "3": 2} { // any order: independent
		if code, _, errs := command(t, "port", "hold", port, "-config", where); code != want {
			t.Errorf("port %s: exit %d, %s", port, code, errs)
		}
	}
	if ok := near.say("*OPC?"); ok != "1" {
		t.Errorf("%q", ok)
	}
	var in, out float64
	if p := near.say(":pmon:pow? (@7,25)"); !scan(p, &in, &out) || in < -0.3 || in > 0.3 || out > -1 || out < -3 {
		t.Errorf("powers %s", p)
	}
	near.session()
}

// scan reads a list of two numbers.
func scan(list string, a, b *float64) bool {
	n, err := fmt.Sscanf(list, "(%f,%f)", a, b)
	return n == 2 && err == nil
}

// session is every command that a cross-connect needs, as a lab's script would
// send them, in long and short forms, with the mistakes that one makes.
func (s *script) session() {
	s.t.Helper()
	for _, x := range [][2]string{
		{"*CLS"}, {":OXC:SWITCH:SIZE?", "16,16"},
		{":oxc:swit:conn:only (@1,2,3),(@17,18,19);*OPC?", "1"}, {":oxc:swit:conn:stat?", "(@1,2,3),(@17,18,19)"},
		{":oxc:swit:conn:add (@4),(@32);*OPC?", "1"}, {":oxc:swit:conn:port? 4", `"32"`}, {":oxc:swit:conn:port? 17", `"1"`},
		{":oxc:swit:conn:sub (@1,4),(@)"}, {"*OPC?", "1"}, {":oxc:switch:connect:state?", "(@2,3),(@18,19)"},
		{":oxc:swit:conn:sub (@2),(@18);*OPC?", "1"}, {":oxc:swit:conn:port? 2", `""`},
		{":oxc:swit:conn:add (@5),(@99)"}, {":oxc:swit:conn:ad (@5),(@20)"}, {":syst:err?", `-222,"Data out of range"`},
		{":system:error:all?", `-113,"Undefined header"`}, {":syst:err:all?", `0,"No error"`},
		{":oxc:swit:disc:all;*OPC?", "1"}, {":oxc:swit:conn:stat?", "(@),(@)"}, {"*RST"}, {":syst:err?", `0,"No error"`},
	} {
		if got := s.say(x[0]); got != x[1] {
			s.t.Errorf("%s: %q, want %q", x[0], got, x[1])
		}
	}
}

// The agent of a server that is joined directly is that of its switch, by the
// number that a planner shows; a board of mirrors is no server.
// Method: configurations, read and refused.
func TestServerIsASwitch(t *testing.T) {
	read := func(text string) (Config, error) {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readConfig(file)
	}
	for text, want := range map[string]proto.NodeID{ // any order: each by itself
		`{"node":6,"board":{"direct":true}}`: proto.FirstSwitch + 6,
		`{"node":6}`:                         6,
	} {
		c, err := read(text)
		if err == nil {
			err = c.Validate()
		}
		if err != nil || c.id() != want {
			t.Errorf("%s: %v, node %d", text, err, c.id())
		}
	}
	c, err := read(`{"node":6,"board":{"direct":true,"ports":16}}`)
	if err != nil || c.Validate() == nil || !strings.Contains(c.Validate().Error(), "board.direct") {
		t.Errorf("%v, %v", err, c.Validate())
	}
}
