package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"ringlight/agent/pm"
	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/metric"
	"ringlight/proto/metric/self"
)

// Hardware is an open board. Its events go to the function that was given
// when it was opened.
type Hardware interface {
	Submit(bus hal.BusID, op *hal.Op) error
	Level(line hal.LineID) (bool, error)
	Now() time.Duration
	Close() error
}

// Link is a transport of packets: proto/mqtt in production.
type Link interface {
	Send(proto.Packet) error
	Recv() <-chan proto.Packet
}

// RunConfig is what Run needs besides the agent's own configuration.
type RunConfig struct {
	Agent Config
	// Open opens the board; events may come from any goroutine, one after the
	// other.
	Open func(events func(hal.Event)) (Hardware, error)
	Link Link // nil: the agent reports to nobody
	// Journal is the folder of the journal; "": nothing is remembered.
	Journal string
	// Socket is the path of the unix socket for people on this host; "": none.
	Socket string
	// Process is what measures the process for the metrics; nil: nobody does.
	Process *self.Process
	// Further writes what else is measured in the process; nil: nothing is.
	Further func(*metric.Page)
	// Lines is the TCP address on which scripts drive a switch; "": none.
	Lines string
	// Requests are served to tools that drive a switch; nil: none.
	Requests *Requests
	// Calibrated keeps a new calibration; nil: it is lost with the process.
	Calibrated func(proto.BundleID, *ocs.Calibration) error
	Log        *slog.Logger // nil: silence
	// Manager started the process and is told how it is; nil: nobody is.
	Manager Manager
	// Restart says whether a software, "" any, can be started in this one's place. Then
	// Run may end with ErrRestart, and the caller starts it. nil: Agent.NoRestart says
	// why it cannot.
	Restart func(software string) error
	// Firmware is the folder that has the files of the modules' firmware.
	Firmware string
	// RecordBytes is the memory of the bus recorder; 0: record.DefaultRing,
	// negative: none, what happens is known to Record alone.
	RecordBytes int
	// Record takes every block of the recording from the first on; nil: nobody
	// does. An error ends it.
	Record func(block []byte) error
}

// Manager starts a process anew that ends or hangs. Only the goroutine that drives the
// board speaks to it.
type Manager interface {
	Ready() // the hardware was read back
	// Beat tells that the loop turns, where that is due, and returns after which
	// time it is to be called again.
	Beat() time.Duration
}

// Limits of the queues around the agent.
const (
	// maxEventsWaiting bounds what a board may tell before the agent listens.
	// chosen: a board has some tens of ops under way.
	maxEventsWaiting = 4096
	// maxSends bounds what waits for the link. Beyond it a packet is lost and
	// the agent told so.
	maxSends = 1024
	// maxRecords bounds what waits for the disk; the agent has one record
	// under way.
	maxRecords = 4
	// maxCalls bounds what other goroutines want of the agent's own. chosen:
	// some for each of its connections.
	maxCalls = 64
)

// runner is an agent among its goroutines. All fields but the channels belong
// to the one that steps it.
type runner struct {
	cfg        RunConfig
	log        *slog.Logger
	plan       standing // of the log
	host       *Host
	hardware   Hardware
	thread     threaded // the hardware, where it is; else nil
	quarantine *hal.Quarantine
	recording  *recording           // nil: off
	accesses   map[*hal.Op]register // being read or written by hand
	scripts    *scriptServer
	made       calls // of buses

	packets <-chan proto.Packet // of the link; nil: none, or it has ended

	// Of the thread.
	ended     chan error // of the loop that has relieved Run's
	heard     []hal.Event
	submitted bool // since the last Wait
	lostEdges uint64
	collector collector

	ready bool // the manager was told
	over  bool // the agent is to be started anew

	events  chan hal.Event
	calls   chan func() // of other goroutines: to be done by the agent's own
	sends   chan proto.Packet
	records chan savedRecord
	bins    *binsFile // nil: none are kept
	rows    chan savedBins
	lost    <-chan struct{} // the board is out of reach for good; nil: it cannot be
}

type savedRecord struct {
	id  uint64
	raw []byte
}

// ErrRestart ends Run: the agent's software is to be started anew, on the board as it
// is.
var ErrRestart = errors.New("agent: it is to be started anew")

// Run runs an agent until ctx ends. It changes no light when it starts or
// ends.
func Run(ctx context.Context, cfg RunConfig) error {
	r := &runner{cfg: cfg, quarantine: hal.NewQuarantine(cfg.Agent.Board), accesses: map[*hal.Op]register{}, made: newCalls(),
		ended: make(chan error, 1), events: make(chan hal.Event, maxEventsWaiting), calls: make(chan func(), maxCalls),
		sends: make(chan proto.Packet, maxSends), records: make(chan savedRecord, maxRecords), rows: make(chan savedBins, pm.Slots)}
	r.log = limit.Logger(cfg.Log)
	r.log = slog.New(planned{r.log.Handler(), &r.plan})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var journal Journal
	var file *fileJournal
	if cfg.Journal != "" {
		var err error
		if file, journal, err = openJournal(cfg.Journal, cfg.Agent.lostEvent()); err != nil {
			return err
		}
		defer file.close()
		if err := r.tellOfJournal(file, &journal); err != nil {
			return err
		}
	}
	if r.cfg.Agent.Wall == nil {
		r.cfg.Agent.Wall = func(time.Duration) int64 { return time.Now().Unix() }
	}
	r.openBins(&journal)
	done := make(chan struct{})
	hw, err := cfg.Open(func(ev hal.Event) {
		select {
		case r.events <- ev:
		case <-done:
		}
	})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer hw.Close()
	defer close(done)
	r.hardware = hw
	if h, ok := hw.(interface{ Lost() <-chan struct{} }); ok {
		r.lost = h.Lost()
	}
	r.thread, _ = hw.(threaded)
	if r.thread != nil {
		r.attach(ctx)
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collections are ours to begin: see collect
	}
	if err := r.begin(ctx, journal); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer r.lastBins()
	finished := make(chan struct{})
	go func() { defer close(finished); r.keep(ctx, file) }()
	defer func() { cancel(); <-finished }()
	if cfg.Link != nil {
		go r.transmit(ctx)
		r.packets = r.receive(ctx)
	}
	if r.thread != nil {
		defer context.AfterFunc(ctx, r.thread.Wake)()
	}
	if cfg.Socket != "" {
		stop, err := r.listenQuestions(ctx, cfg.Socket)
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		defer stop()
	}
	if cfg.Lines != "" {
		stop, err := r.scripts.listen(ctx, cfg.Lines, r.scripts.serve)
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		defer stop()
	}
	if cfg.Requests != nil {
		stop, err := r.scripts.listen(ctx, cfg.Requests.Address, r.scripts.request)
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		defer stop()
	}
	r.look()
	// The session is spelt as planners spell it.
	r.log.Info("agent runs", "fabric", cfg.Agent.Fabric, "node", cfg.Agent.Node, "session", fmt.Sprintf("%016x", uint64(cfg.Agent.Session)),
		"bundles", len(cfg.Agent.Board.Bundles), "events_queued", len(journal.Events), "software", cfg.Agent.Software)
	if err = r.loop(ctx); errors.Is(err, hal.ErrRelieved) {
		return <-r.ended
	}
	return err
}

// begin makes the agent, and its recorder.
func (r *runner) begin(ctx context.Context, journal Journal) (err error) {
	var rec *Recorder
	r.cfg.Agent.Restarts = r.cfg.Restart != nil
	if r.recording, err = newRecording(&r.cfg, &journal, r.log); err != nil {
		return err
	}
	if r.recording != nil {
		rec = r.recording.Recorder
	}
	r.scripts = &scriptServer{tell: func(ctx context.Context, in Input) { r.call(ctx, func() { r.tell(in) }) }, log: r.log, requests: r.cfg.Requests, out: map[uint64]chan []byte{}}
	r.host = NewHost(r.cfg.Agent, journal, r, rec)
	r.host.Restart, r.host.End = func(software string) { go r.restart(ctx, software) }, func() { r.over = true }
	r.host.Firmware = func(version string) { go r.firmware(ctx, version) }
	r.host.Calibrated, r.host.Line, r.host.Log, r.host.Bins = r.calibrated, r.scripts.answer, r.say, r.keepBins
	return r.host.Levels(r.hardware.Now(), r.hardware.Level)
}

// call lets the agent's own goroutine do something.
func (r *runner) call(ctx context.Context, do func()) {
	select {
	case r.calls <- do:
		r.wake()
	case <-ctx.Done():
	}
}

// wake tells the agent's own thread that a queue is not empty.
func (r *runner) wake() {
	if r.thread != nil {
		r.thread.Wake()
	}
}

func (r *runner) tell(in Input) { r.host.Deliver(r.hardware.Now(), in) }

// loop is the agent's own goroutine.
func (r *runner) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	over := make(chan time.Time) // a wait that is over
	close(over)
	for {
		next, err := r.poll()
		if err != nil {
			return err
		}
		if r.over {
			if r.recording != nil {
				r.recording.Flush()
			}
			return ErrRestart
		}
		next = r.tellManager(next)
		due := (<-chan time.Time)(over)
		if r.thread != nil {
			if err := r.listen(ctx, next); err != nil {
				return err
			}
			r.collect()
		} else if wait := next - r.hardware.Now(); wait > 0 {
			timer.Reset(min(wait, time.Hour))
			due = timer.C
		}
		// Events of the board first: they may be light.
		select {
		case ev := <-r.events:
			r.deliver(ev)
			continue
		default:
		}
		select {
		case ev := <-r.events:
			r.deliver(ev)
		case do := <-r.calls:
			do()
		case p, ok := <-r.packets:
			r.packet(p, ok)
		case <-due:
		case <-r.lost:
			return errBoardLost
		case <-ctx.Done():
			if r.recording != nil {
				r.recording.Flush()
			}
			r.log.Info("agent ends; the light stays as it is")
			return nil
		}
	}
}

// tellManager tells whoever started this process that it runs, and returns when the
// loop must come by again.
func (r *runner) tellManager(next time.Duration) time.Duration {
	m := r.cfg.Manager
	if m == nil {
		return next
	}
	if !r.ready && r.host.Adopted() {
		r.ready = true
		m.Ready()
	}
	return min(next, r.hardware.Now()+m.Beat())
}

// errBoardLost ends Run: whoever restarts the agent opens the board anew.
var errBoardLost = fmt.Errorf("agent: the board is out of reach: %w", hal.ErrNoDevice)

// deliver hands on one event and whatever else has come meanwhile.
func (r *runner) deliver(ev hal.Event) {
	now := r.hardware.Now()
	for {
		r.boardEvent(now, ev)
		select {
		case ev = <-r.events:
		default:
			return
		}
	}
}

func (r *runner) packet(p proto.Packet, ok bool) {
	if !ok {
		r.packets = nil // the link has ended; the node works on
		return
	}
	now := r.hardware.Now()
	r.host.Deliver(now, Input{Kind: InPacket, Packet: p, At: now})
	r.look()
	switch p.Kind {
	case proto.Shed:
		r.log.Warn("messages were not read: more than a topic may carry, or not sealed as they must be", "not_read", p.ShedCount())
	}
}

// comeBy is how often an agent is called though nothing is due, so that it finds out
// that it has too little of a processor. chosen: shorter than what a starved process
// stands still for, and some calls a second, which cost nothing.
const comeBy = 250 * time.Millisecond

// poll polls the agent until it is quiet, or the board has something to say.
func (r *runner) poll() (next time.Duration, err error) {
	for {
		now := r.hardware.Now()
		if r.recording != nil {
			r.recording.flush(now)
		}
		asked, err := r.host.Round(now)
		if err != nil || !asked || r.host.Quiet(now) || len(r.events) > 0 { // light first
			return r.host.NextWithin(now + comeBy), err
		}
		if r.thread != nil && r.submitted { // a write may wait for this thread
			r.submitted = false
			return now, nil
		}
	}
}
