package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/ocs/stored"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/solo"
)

// wireLink is a link in memory.
type wireLink struct {
	in   chan proto.Packet
	mu   sync.Mutex
	sent []proto.Packet
	more chan struct{}
	fail bool
}

func newWireLink() *wireLink {
	return &wireLink{in: make(chan proto.Packet, 16), more: make(chan struct{}, 1)}
}

func (l *wireLink) Recv() <-chan proto.Packet { return l.in }

func (l *wireLink) Send(p proto.Packet) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail {
		return errors.New("queue full")
	}
	l.sent = append(l.sent, p)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return nil
}

// forget drops what was sent so far.
func (l *wireLink) forget() {
	l.mu.Lock()
	l.sent = nil
	l.mu.Unlock()
}

// wait waits until a packet is sent for which ok holds.
func (l *wireLink) wait(t *testing.T, what string, ok func(proto.Packet) bool) proto.Packet {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		for _, p := range l.sent {
			if ok(p) {
				l.mu.Unlock()
				return p
			}
		}
		l.mu.Unlock()
		select {
		case <-l.more:
		case <-late:
			t.Fatalf("never sent: %s", what)
		}
	}
}

// kept is a board that outlives the agents that drive it.
type kept struct {
	mu     sync.Mutex
	live   *solo.Live
	events func(hal.Event)
	submit int
}

func newKept(t *testing.T, board *hal.Board, seed uint64) *kept {
	t.Helper()
	k := &kept{}
	var err error
	k.live, err = solo.Open(solo.Config{Board: board, Seed: seed}, func(ev hal.Event) {
		k.mu.Lock()
		f := k.events
		k.mu.Unlock()
		if f != nil {
			f(ev)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.live.Close() })
	return k
}

func (k *kept) open(events func(hal.Event)) (Hardware, error) {
	k.mu.Lock()
	k.events = events
	k.mu.Unlock()
	return &keptHandle{Live: k.live, k: k}, nil
}

type keptHandle struct {
	*solo.Live
	k *kept
}

func (h *keptHandle) Submit(bus hal.BusID, op *hal.Op) error {
	if op.Class == hal.ClassSwitch {
		h.k.mu.Lock()
		h.k.submit++
		h.k.mu.Unlock()
	}
	return h.Live.Submit(bus, op)
}

func (h *keptHandle) Close() error {
	h.k.mu.Lock()
	h.k.events = nil
	h.k.mu.Unlock()
	return nil
}

// running is an agent of its own goroutine.
type running struct {
	link   *wireLink
	cancel context.CancelFunc
	ended  chan error
	socket string
	log    *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func startRun(t *testing.T, dir string, k *kept, board *hal.Board, cals []*ocs.Calibration, session proto.Session) *running {
	t.Helper()
	return startRunOn(t, dir, k.open, board, cals, session)
}

func startRunOn(t *testing.T, dir string, open func(func(hal.Event)) (Hardware, error), board *hal.Board, cals []*ocs.Calibration, session proto.Session) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{link: newWireLink(), cancel: cancel, ended: make(chan error, 1), socket: filepath.Join(dir, "agent.sock"), log: &syncBuffer{}}
	go func() {
		r.ended <- Run(ctx, RunConfig{Agent: Config{Fabric: "f1", Node: 3, Board: board, Calibrations: cals, Session: session, Software: "test"},
			Open: open, Link: r.link, Journal: filepath.Join(dir, "journal"), Socket: r.socket,
			Log: slog.New(slog.NewTextHandler(r.log, nil))})
	}()
	r.link.in <- proto.Packet{Kind: proto.LinkUp}
	t.Cleanup(func() { r.stop(t) })
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	if r.cancel == nil {
		return
	}
	r.cancel()
	r.cancel = nil
	select {
	case err := <-r.ended:
		if err != nil {
			t.Errorf("run: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the agent does not end")
	}
}

func isPresence(p proto.Packet) bool {
	return p.Kind == proto.Publish && strings.HasSuffix(p.Topic, "/presence")
}

func isEvent(kind proto.EventKind) func(proto.Packet) bool {
	return func(p proto.Packet) bool {
		var e proto.Event
		if p.Kind != proto.Publish || !strings.HasSuffix(p.Topic, "/event") {
			return false
		}
		_, err := proto.Decode(p.Payload, &e)
		return err == nil && e.Kind == kind
	}
}

func TestRunOnARealClock(t *testing.T) {
	// Goal: the agent among its goroutines, files and sockets: it comes up,
	// follows a planner, answers on its socket, and its next life finds the
	// light as it was and moves none of it.
	// Method: a simulated board on the real clock that outlives two agents.
	board, err := boardfile.Default(4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	k := newKept(t, &board, 21)
	cals := make([]*ocs.Calibration, 2)
	k.live.With(func(b *solo.Board) {
		for i := range cals {
			cals[i] = known([]*sim.Personality{b.World().Personality(b.ID(), i, 0)})
		}
	})
	first := startRun(t, dir, k, &board, cals, 100)
	first.link.wait(t, "birth", isPresence)
	state, err := proto.Encode(&proto.PlannerState{Version: 1, Planner: 1, Online: true, Term: 4, PeriodMillis: 1000})
	if err != nil {
		t.Fatal(err)
	}
	first.link.in <- proto.Packet{Topic: "ocs/v1/f1/planner/state", Payload: state}
	inLoopback := func(p proto.Packet) bool {
		var r proto.Reported
		if !strings.HasSuffix(p.Topic, "/reported") {
			return false
		}
		_, err := proto.Decode(p.Payload, &r)
		for _, b := range r.Bundles {
			if b.Path != proto.Loopback || b.State != proto.Tuned {
				return false
			}
		}
		return err == nil && r.Mode == proto.ModeService
	}
	first.link.wait(t, "both bundles tuned", inLoopback)
	ans, err := AskSocket(first.socket, Question{Verb: "status"})
	if err != nil || ans.Status == nil || ans.Status.Bundles[0].Path != "loopback" || !ans.Status.LinkUp {
		t.Fatalf("status %+v, %v", ans, err)
	}
	if ans, err = AskSocket(first.socket, Question{Verb: "path", Bundle: 0, Path: "external2"}); err != nil || ans.Err != nil || ans.Status.Bundles[0].Path != "external2" {
		t.Fatalf("path set: %+v, %v", ans, err)
	}
	for _, q := range []Question{{Verb: "dance"}, {Verb: "path", Path: "sideways"}, {Verb: "path", Bundle: 9, Path: "dark"}} {
		if ans, err := AskSocket(first.socket, q); err != nil || ans.Err == nil {
			t.Errorf("%+v: %+v, %v", q, ans, err)
		}
	}
	if conn, err := net.Dial("unix", first.socket); err == nil { // nonsense, and a client that says nothing
		conn.Write([]byte("not json\n"))
		defer conn.Close()
		quiet, _ := net.Dial("unix", first.socket)
		defer quiet.Close()
	}
	if _, err := AskSocket(first.socket, Question{Verb: "host_fault", Text: "xid 79"}); err != nil {
		t.Fatal(err)
	}
	first.link.wait(t, "host fault", isEvent(proto.EvHostFault))
	if _, err := AskSocket(first.socket, Question{Verb: "host_ok"}); err != nil {
		t.Fatal(err)
	}
	first.link.wait(t, "host ok", isEvent(proto.EvHostOK))
	first.link.forget()
	first.link.wait(t, "both bundles tuned again", inLoopback)
	if err := Run(context.Background(), RunConfig{Agent: Config{Fabric: "f1", Board: &board, Session: 1}, Open: k.open, Journal: filepath.Join(dir, "journal")}); err == nil {
		t.Error("a second agent took the same journal")
	}
	first.stop(t)
	if _, err := AskSocket(first.socket, Question{Verb: "status"}); !errors.Is(err, ErrNoAgent) {
		t.Errorf("asking a dead agent: %v", err)
	}

	k.mu.Lock()
	k.submit = 0
	k.mu.Unlock()
	second := startRun(t, dir, k, &board, cals, 200)
	second.link.wait(t, "start", func(p proto.Packet) bool {
		if !isEvent(proto.EvStarted)(p) {
			return false
		}
		var e proto.Event
		proto.Decode(p.Payload, &e)
		return e.Session == 200 && e.Cause == proto.CauseAdopted && e.Seq > 3
	})
	ans, err = AskSocket(second.socket, Question{Verb: "status"})
	if err != nil || ans.Status.Bundles[0].Path != "loopback" || ans.Status.Bundles[1].Path != "loopback" {
		t.Errorf("second life: %+v, %v", ans.Status, err)
	}
	k.mu.Lock()
	if k.submit != 0 {
		t.Errorf("%d switching ops in the second life", k.submit)
	}
	k.mu.Unlock()
	if log := second.log.String(); !strings.Contains(log, "agent runs") || !regexp.MustCompile(`session=[0-9a-f]{16} `).MatchString(log) || strings.Contains(log, "level=ERROR") {
		t.Errorf("log:\n%s", log)
	}
}

func TestRunNamesWhatKeepsItFromRunning(t *testing.T) {
	board, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := RunConfig{Agent: Config{Fabric: "f1", Board: &board, Session: 1}}
	cfg.Open = func(func(hal.Event)) (Hardware, error) { return nil, hal.ErrNoDevice }
	if err := Run(context.Background(), cfg); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("no board: %v", err)
	}
	cfg.Journal = filepath.Join(dir, "journal")
	laid(t, cfg.Journal, map[string][]byte{snapshotName: formatLine(formatHead+"9", "")})
	if err := Run(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), snapshotName+" is of version 9") {
		t.Errorf("snapshot of a later version: %v", err)
	}
	other, err := json.Marshal(record{State: &node.State{Applied: &node.Held{Desired: proto.Desired{Node: 7}}}})
	if err != nil {
		t.Fatal(err)
	}
	laid(t, cfg.Journal, map[string][]byte{snapshotName: formatLine(snapshotHead, "1 "+string(other)), logName + "1": nil})
	if err := Run(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "it is of node 7, this is node 0") {
		t.Errorf("journal of another node: %v", err)
	}
}

func TestRunTellsOfADamagedJournal(t *testing.T) {
	// Goal: whoever reads the log or the planner's events learns that a journal
	// was damaged; what it consisted of is kept.
	board, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	laid(t, filepath.Join(dir, "journal"), map[string][]byte{snapshotName: []byte("rubbish\n")})
	r := startRun(t, dir, newKept(t, &board, 4), &board, nil, 9)
	r.link.wait(t, "that it started from a damaged journal", func(p proto.Packet) bool {
		var e proto.Event
		if isEvent(proto.EvStarted)(p) {
			proto.Decode(p.Payload, &e)
		}
		return strings.Contains(e.Text, "journal damaged") && e.Severity == proto.SeverityWarning
	})
	r.stop(t)
	if log := r.log.String(); !strings.Contains(log, "journal damaged; begun anew") || !strings.Contains(log, "journal.snapshot: checksum wrong") {
		t.Errorf("log:\n%s", log)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "journal", damagedName, snapshotName)); err != nil || string(raw) != "rubbish\n" {
		t.Errorf("kept: %q, %v", raw, err)
	}
}

func TestCalibrationsAreKeptWithThePreviousOne(t *testing.T) {
	dir := t.TempDir()
	cal := known(sim.Catalogue(nil, 3, 2))
	for i := range 2 {
		if err := SaveCalibration(dir, 1, cal.Encode()); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(calibrationPath(dir, 1) + ".previous")
		if (err == nil) != (i == 1) {
			t.Errorf("after %d: previous %v", i+1, err)
		}
	}
	got, damaged, err := LoadCalibrations(dir, 2)
	if err != nil || damaged != nil || got[0] != nil || got[1] == nil || got[1].Digest() != cal.Digest() {
		t.Errorf("read back %v, %v, %v", got, damaged, err)
	}
}

// Goal: a calibration file that was torn is told and costs nothing that the one
// before it, or the modules' EEPROMs, still have.
// Method: every length of a file that a crash may leave, with a good one before
// and with none; then a good one is kept, and the torn one is no previous one.
func TestTornCalibrationFileCostsNoStart(t *testing.T) {
	dir := t.TempDir()
	first, second := known(sim.Catalogue(nil, 3, 2)), known(sim.Catalogue(nil, 4, 2))
	for _, c := range []*ocs.Calibration{first, second} {
		if err := SaveCalibration(dir, 0, c.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	whole := second.Encode()
	for n := 0; n < len(whole); n += 97 {
		if err := os.WriteFile(calibrationPath(dir, 0), whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		got, damaged, err := LoadCalibrations(dir, 1)
		if err != nil || len(damaged) != 1 || !errors.Is(damaged[0], stored.ErrDamaged) || got[0] == nil || got[0].Digest() != first.Digest() {
			t.Fatalf("%d bytes left: %v, %v, %v", n, got, damaged, err)
		}
	}
	if err := SaveCalibration(dir, 0, second.Encode()); err != nil {
		t.Fatal(err)
	}
	if before, err := PreviousCalibration(dir, 0); err != nil || before.Digest() != first.Digest() {
		t.Errorf("previous: %v, %v", before, err)
	}
	for _, name := range []string{calibrationPath(dir, 0), calibrationPath(dir, 0) + previousSuffix} {
		if err := os.WriteFile(name, []byte("rubbish"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, damaged, err := LoadCalibrations(dir, 1); err != nil || len(damaged) != 1 || got[0] != nil {
		t.Errorf("both damaged: %v, %v, %v", got, damaged, err)
	}
}
