package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
)

// A question on the unix socket is one line of JSON, so is its answer; one
// question a connection. What is asked is checked by the agent, not here.

// verbMetrics asks for the status as a page for a monitoring system.
const verbMetrics = "metrics"

// maxQuestion bounds a line. chosen: a host's reason is one line of text.
const maxQuestion = 4096

// askTimeout bounds a connection; a calibration of eight modules takes some
// minutes of board time.
const askTimeout = 30 * time.Minute

// Question is an Ask on the socket.
type Question struct {
	Verb   string         `json:"verb"` // status, calibrate, path, host_fault, host_ok, release, peek, poke, dump, hold, restart, pm, metrics; record: the answer is a recording without end
	Bundle proto.BundleID `json:"bundle,omitempty"`
	Path   string         `json:"path,omitempty"`
	Text   string         `json:"text,omitempty"`
	Module int            `json:"module,omitempty"`
	Value  uint32         `json:"value,omitempty"`
	Port   string         `json:"port,omitempty"`     // of hold: a switch's, from 1, and its side, such as 3A
	Hold   string         `json:"override,omitempty"` // of hold: normal, force_blocked or powered_off

	Bins *proto.BinScope `json:"bins,omitempty"` // of pm, which goes on at Value
}

var questionVerbs = map[string]AskVerb{"status": AskStatus, "calibrate": AskCalibrate, "path": AskPath,
	"host_fault": AskHostFault, "host_ok": AskHostOK, "release": AskRelease,
	"peek": AskPeek, "poke": AskPoke, "dump": AskDump, "hold": AskHold, "restart": AskRestart, "pm": AskBins}

// Ask is the question as the agent takes it.
func (q Question) Ask() (Ask, error) {
	verb, ok := questionVerbs[q.Verb]
	if !ok {
		return Ask{}, &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: fmt.Sprintf("%q", q.Verb)}
	}
	a := Ask{Verb: verb, Bundle: q.Bundle, Text: q.Text, Module: q.Module, Value: q.Value, Bins: q.Bins}
	if q.Path != "" || verb == AskPath {
		p, err := proto.ParsePath(q.Path)
		if err != nil {
			return Ask{}, &proto.Error{Code: proto.Invalid, Field: "path", Reason: err.Error()}
		}
		a.Path = p
	}
	if verb == AskHold {
		if err := a.parsePort(q.Port); err != nil {
			return Ask{}, err
		}
		for a.Override = proto.Normal; a.Override.String() != q.Hold; a.Override++ {
			if a.Override == proto.PoweredOff {
				return Ask{}, &proto.Error{Code: proto.Invalid, Field: "override", Limit: "normal, force_blocked or powered_off", Reason: fmt.Sprintf("%q", q.Hold)}
			}
		}
	}
	return a, nil
}

// parsePort reads a port of a switch as people number them: 3A.
func (a *Ask) parsePort(s string) error {
	number, side := strings.CutSuffix(strings.ToUpper(s), "A")
	if !side {
		a.Array = 1
		number, side = strings.CutSuffix(number, "B")
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if !side || err != nil || n == 0 {
		return &proto.Error{Code: proto.Invalid, Field: "port", Limit: "a number from 1 and the side, such as 3A", Reason: fmt.Sprintf("%q", s)}
	}
	a.Port = uint16(n - 1)
	return nil
}

// listenQuestions serves the socket at path until stop is called. A socket left
// by an agent that died is taken over; the journal's lock keeps two living ones
// apart.
func (r *runner) listenQuestions(ctx context.Context, path string) (stop func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, err
	}
	return accept(ctx, limit.Listen(l, questionLimits, r.log), r.question), nil
}

// questionLimits: people and scripts of this host. chosen: whoever connects
// asks at once; one that does not costs a place for five seconds, and none
// when another needs it.
var questionLimits = limit.Connections{Max: 64, First: 5 * time.Second, Write: 10 * time.Second}

// accept serves every connection of a listener in its own goroutine. stop ends
// all and waits for them.
func accept(ctx context.Context, l *limit.Listener, serve func(context.Context, *limit.Conn)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })()
				serve(ctx, limit.Of(conn))
			})
		}
	})
	return func() { cancel(); l.Close(); all.Wait() }
}

// question answers the one question of a connection.
func (r *runner) question(ctx context.Context, conn *limit.Conn) {
	line, err := bufio.NewReaderSize(conn, maxQuestion).ReadSlice('\n')
	if err != nil {
		return
	}
	conn.Admit()
	late := time.AfterFunc(askTimeout, func() { conn.Close() })
	defer late.Stop()
	var q Question
	var ans *Answer
	if err = json.Unmarshal(line, &q); err == nil && q.Verb == verbRecord {
		late.Stop()
		if err = r.stream(ctx, conn); err == nil {
			return
		}
	}
	page := err == nil && q.Verb == verbMetrics
	if page {
		q.Verb = "status"
	}
	if err == nil {
		ans, err = r.put(ctx, q)
	}
	if err == nil && page && ans.Status != nil {
		ans = r.measured(ans.Status)
	}
	if err != nil {
		ans = &Answer{Err: proto.AsError(err)}
	}
	raw, err := json.Marshal(ans)
	if err != nil {
		raw, _ = json.Marshal(&Answer{Err: proto.AsError(err)})
	}
	conn.Write(append(raw, '\n'))
}

// put asks the agent and waits for its answer.
func (r *runner) put(ctx context.Context, q Question) (*Answer, error) {
	ask, err := q.Ask()
	if err != nil {
		return nil, err
	}
	answer := make(chan *Answer, 1)
	select {
	case r.calls <- func() { r.asked(ask, func(a *Answer) { answer <- a }) }:
		r.wake()
	default:
		return nil, &proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d questions at once", cap(r.calls))}
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		select {
		case a := <-answer: // that it ends, it may be
			return a, nil
		default:
		}
		return nil, &proto.Error{Code: proto.Busy, Reason: "the agent is stopping"}
	}
}

// asked passes a question on, or answers it where it is not for the agent.
func (r *runner) asked(q Ask, answer func(*Answer)) {
	switch q.Verb {
	case AskRelease:
		answer(r.release(q))
	case AskPeek, AskPoke:
		if err := r.reach(q, answer); err != nil {
			answer(&Answer{Err: err})
		}
	default:
		r.host.Ask(r.hardware.Now(), q, func(a *Answer) {
			if a.Status != nil {
				r.addsTo(a.Status)
			}
			answer(a)
		})
	}
}

// addsTo adds to a status what the agent does not know.
func (r *runner) addsTo(st *Status) {
	st.calls = r.made.clone()
	for _, h := range r.quarantine.Held() {
		st.Quarantine = append(st.Quarantine, QuarantineStatus{Device: h.Device.String(), SinceUS: h.Since.Microseconds(),
			Absent: h.Absent, Cause: h.Cause.Error()})
	}
	if p := r.cfg.Agent.Prompt; p != nil {
		st.Prompt = &PromptStatus{Prompt: promptOf(p), LostEdges: r.lostEdges, Missing: p.Missing}
	}
	if p := r.recording; p != nil {
		st.Recorder = &RecorderStatus{Bytes: p.ring.Bytes(), Limit: p.ring.Limit(), Entries: p.w.Entries(), Whole: p.ring.Lost() == 0, Listeners: len(p.listeners)}
	}
}

// AskSocket asks the agent that listens at path. An error that matches
// ErrNoAgent means that there is none.
func AskSocket(path string, q Question) (*Answer, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoAgent, path, err)
	}
	defer conn.Close()
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if q.Verb == "status" || q.Verb == "pm" { // others wait for light
		conn.SetDeadline(time.Now().Add(answersWithin))
	}
	if _, err := conn.Write(append(raw, '\n')); err != nil {
		return nil, err
	}
	var ans Answer
	if err := json.NewDecoder(conn).Decode(&ans); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ErrHangs
		}
		return nil, fmt.Errorf("agent at %s: %w", path, err)
	}
	return &ans, nil
}

// answersWithin is how long an agent may take to say how it is. chosen: 64 agents on two
// busy cores answer within a second.
const answersWithin = 5 * time.Second

// ErrHangs says that an agent is there and does not answer.
var ErrHangs = errors.New("it does not answer within 5 s: it hangs or was stopped, and changes no light")

// ErrNoAgent says that no agent listens at a socket.
var ErrNoAgent = errors.New("no agent runs")

// readIfThere is nil for a file that does not exist.
func readIfThere(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}
