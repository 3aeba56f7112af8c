package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ringlight/hal/boardfile"
	busrec "ringlight/hal/record"
	"ringlight/proto"
	"ringlight/proto/limit"
)

// exhausted fails once, as a process without descriptors does.
type exhausted struct {
	net.Listener
	failed bool
}

func (l *exhausted) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// listening serves the questions of a runner that answers none but says so.
func listening(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{calls: make(chan func())}
	t.Cleanup(accept(t.Context(), limit.Listen(&exhausted{Listener: l}, questionLimits, nil), r.question))
	return path
}

// The host's word reaches the agent whatever hangs on its socket.
// An accept that fails, then more silent connections than there are places;
// before, the failure ended the listener, and each kept its descriptor for
// half an hour.
func TestSocketOutlivesWhoSaysNothing(t *testing.T) {
	path := listening(t)
	var silent []net.Conn
	for range 2 * questionLimits.Max {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte(`{"verb":"host_`))
		silent = append(silent, c)
	}
	ans, err := AskSocket(path, Question{Verb: "host_fault", Text: "GPU 3 fell off the bus"})
	if err != nil || ans.Err == nil || ans.Err.Code != proto.Busy {
		t.Fatalf("%+v %v", ans, err)
	}
	if _, err := silent[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the first silent connection: %v", err)
	}
}

// A listener to the recording that takes nothing is let go, and there are only
// so many.
// One that never reads; before, a write to it could take half an hour. Then
// one too many.
func TestStuckListenersAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, err := boardfile.Default(4, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Fabric: "f1", Board: &board}
		rec, err := newRecording(&RunConfig{Agent: cfg, RecordBytes: 1 << 20}, &Journal{}, limit.Logger(nil))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &runner{calls: make(chan func(), maxCalls), recording: rec}
		go func() {
			for {
				select {
				case do := <-r.calls:
					do()
				case <-ctx.Done():
					return
				}
			}
		}()
		in := &pipes{next: make(chan net.Conn)}
		stop := accept(ctx, limit.Listen(in, questionLimits, nil), r.question)
		ask := func() net.Conn {
			here, there := net.Pipe()
			in.next <- here
			there.Write([]byte(`{"verb":"record"}` + "\n"))
			synctest.Wait()
			return there
		}
		begin := time.Now()
		for range maxListeners {
			defer ask().Close()
		}
		if len(rec.listeners) != maxListeners {
			t.Fatalf("%d listeners", len(rec.listeners))
		}
		line, err := bufio.NewReader(ask()).ReadBytes('\n')
		var ans Answer
		if err != nil || json.Unmarshal(line, &ans) != nil || ans.Err == nil || ans.Err.Code != proto.Busy {
			t.Errorf("one too many is told %q %v", line, err)
		}
		<-time.After(questionLimits.Write + time.Second)
		synctest.Wait()
		if len(rec.listeners) != 0 {
			t.Errorf("%d listeners after %v", len(rec.listeners), time.Since(begin))
		}
		head := make([]byte, len(busrec.Magic))
		c := ask()
		if _, err := io.ReadFull(c, head); err != nil || string(head) != busrec.Magic {
			t.Errorf("%q %v", head, err)
		}
		c.Close()
		stop()
		cancel()
	})
}

type pipes struct{ next chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.next; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *pipes) Close() error   { close(p.next); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// Goal: who asks an agent that is stopped is told so, and does not wait for ever.
func TestAskerOfAStoppedAgentIsToldSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path) // as the kernel listens for a stopped process
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := AskSocket(path, Question{Verb: "status"}); !errors.Is(err, ErrHangs) || errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
}
