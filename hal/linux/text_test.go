package linux

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
)

// A text line: what is sent, what comes back up to its end, and a new
// connection after an error, in which nothing of the old one is left.
func TestTextLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	opened := make(chan struct{}, 8)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			opened <- struct{}{}
			go func() {
				defer conn.Close()
				in := bufio.NewScanner(conn)
				for in.Scan() {
					switch in.Text() {
					case "hang":
						conn.Write([]byte("half"))
					case "leave":
						return
					default:
						conn.Write([]byte(strings.ToUpper(in.Text()) + "\nrest\n"))
					}
				}
			}()
		}
	}()
	done := make(chan *hal.Completion, 1)
	b, err := Open(&hal.Board{Buses: []hal.Bus{{Kind: hal.TextLine, Device: l.Addr().String()}}},
		func(ev hal.Event) { done <- ev.Completion })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	say := func(w string, deadline time.Duration) (string, error) {
		op := &hal.Op{Deadline: deadline, Msgs: []hal.Msg{{W: []byte(w), R: make([]byte, 64), Frame: '\n'}}}
		if err := b.Submit(0, op); err != nil {
			t.Fatal(err)
		}
		c := <-done
		return strings.TrimRight(string(op.Msgs[0].R), "\x00"), c.Err
	}
	for _, c := range []struct{ w, want string }{{"one\n", "ONE\n"}, {"", "rest\n"}, {"two\n", "TWO\n"}} {
		if got, err := say(c.w, 10*time.Second); got != c.want || err != nil {
			t.Errorf("%q: %q, %v", c.w, got, err)
		}
	}
	// "rest" of the last is unread when the far end leaves: it must not be
	// taken for an answer later.
	if _, err := say("leave\n", 10*time.Second); err == nil {
		// that was the rest; now it is gone
		if _, err := say("x\n", 10*time.Second); !errors.Is(err, hal.ErrNoDevice) {
			t.Errorf("gone: %v", err)
		}
	}
	if got, err := say("three\n", 10*time.Second); got != "THREE\n" || err != nil {
		t.Errorf("again: %q, %v", got, err)
	}
	if len(opened) != 2 {
		t.Errorf("%d connections", len(opened))
	}
}

// Nobody there, and no address at all.
func TestTextLineNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	w, err := openText(&hal.Bus{Device: address})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.transfer(&hal.Msg{W: []byte("x\n"), R: make([]byte, 8), Frame: '\n'}); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := openText(&hal.Bus{Device: "no port"}); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("no address: %v", err)
	}
}

// Goal: on a line whose messages have no end of their own each is said on a connection of its
// own, over whatever dials it, and the connection's end is told.
func TestEachMessageHasAConnection(t *testing.T) {
	dials := 0
	w, err := openText(&hal.Bus{Dial: func(time.Duration) (hal.LineConn, error) {
		dials++
		near, far := net.Pipe()
		go func() {
			b := make([]byte, 8)
			n, _ := far.Read(b)
			_, _ = far.Write(b[:n])
			_, _ = far.Write([]byte("."))
			far.Close()
		}()
		return pipeEnd{near}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		m := &hal.Msg{W: []byte(word), R: make([]byte, 8)}
		var got []string
		for range 3 {
			if err := w.transfer(m); err != nil {
				t.Fatal(err)
			}
			got = append(got, string(bytes.TrimRight(w.read(), "\x00")))
			m.W = nil
		}
		if !slices.Equal(got, []string{word, ".", ""}) {
			t.Errorf("%q", got)
		}
	}
	if dials != 2 {
		t.Errorf("%d connections", dials)
	}
}

// pipeEnd takes a deadline when the far end has left, as TCP does and a pipe does not.
type pipeEnd struct{ net.Conn }

func (p pipeEnd) SetDeadline(end time.Time) error {
	_ = p.Conn.SetDeadline(end)
	return nil
}
