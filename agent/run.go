package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
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
	// Lines is the TCP address on which scripts drive a switch; "": none.
	Lines string
	// Calibrated keeps a new calibration; nil: it is lost with the process.
	Calibrated func(proto.BundleID, *ocs.Calibration) error
	Log        *slog.Logger // nil: silence
	// RealTime is set on real hardware: the switching goroutine keeps its
	// thread, and waits under a millisecond are not left to the runtime's
	// timers, which are a millisecond coarse.
	RealTime bool
	// RecordBytes is the memory of the bus recorder; 0: record.DefaultRing,
	// negative: none, what happens is known to Record alone.
	RecordBytes int
	// Record takes every block of the recording from the first on; nil: nobody
	// does. An error ends it.
	Record func(block []byte) error
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
	// maxAsks bounds the questions under way on the socket.
	maxAsks = 16
)

// runner is an agent among its goroutines.
type runner struct {
	cfg      RunConfig
	log      *slog.Logger
	host     *Host
	hardware Hardware
	events   chan hal.Event
	sends    chan proto.Packet
	records  chan savedRecord
	inputs   chan Input // from the disk and the link's sender
	asks     chan question
	answers  *desk
	visitors *visitors
	lost     <-chan struct{} // the board is out of reach for good; nil: it cannot be
	side     *side
}

type savedRecord struct {
	id  uint64
	raw []byte
}

// Run runs an agent until ctx ends. It changes no light when it starts or
// ends.
func Run(ctx context.Context, cfg RunConfig) error {
	r := &runner{cfg: cfg, log: cfg.Log, events: make(chan hal.Event, maxEventsWaiting),
		sends: make(chan proto.Packet, maxSends), records: make(chan savedRecord, maxRecords),
		inputs: make(chan Input, maxSends), asks: make(chan question, maxAsks)}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.answers = &desk{to: r.asks}
	r.visitors = newVisitors(r.inputs)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var journal Journal
	var file *fileJournal
	if cfg.Journal != "" {
		var err error
		if file, journal, err = openJournal(cfg.Journal); err != nil {
			return err
		}
		defer file.close()
	}
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
	if r.side, err = newSide(r, &journal); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	r.answers.record = r.side
	r.host = NewHost(cfg.Agent, journal, r, r.side.rec)
	r.host.Calibrated, r.host.Line, r.host.Log = r.calibrated, r.visitors.answer, r.say
	if err := r.host.Levels(hw.Now(), hw.Level); err != nil {
		return err
	}
	finished := make(chan struct{})
	go func() { defer close(finished); r.keep(ctx, file) }()
	defer func() { cancel(); <-finished }()
	if cfg.Link != nil {
		go r.transmit(ctx)
	}
	if cfg.Socket != "" {
		stop, err := r.answers.listen(cfg.Socket)
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		defer stop()
	}
	if cfg.Lines != "" {
		stop, err := r.visitors.listen(ctx, cfg.Lines)
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		defer stop()
	}
	r.log.Info("agent runs", "fabric", cfg.Agent.Fabric, "node", cfg.Agent.Node, "session", cfg.Agent.Session,
		"bundles", len(cfg.Agent.Board.Bundles), "events_queued", len(journal.Events), "software", cfg.Agent.Software)
	return r.loop(ctx)
}

// loop is the agent's own goroutine.
func (r *runner) loop(ctx context.Context) error {
	if r.cfg.RealTime {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	var packets <-chan proto.Packet
	if r.cfg.Link != nil {
		packets = r.cfg.Link.Recv()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, err := r.poll()
		if err != nil {
			return err
		}
		wait := time.Hour
		if next != Never {
			wait = min(wait, next-r.hardware.Now())
		}
		if r.cfg.RealTime && wait < shortWait {
			if wait > 0 && len(r.events) == 0 {
				shortSleep(wait)
			}
			wait = 0
		}
		// Events of the board first: they may be light.
		select {
		case ev := <-r.events:
			r.deliver(ev)
			continue
		default:
		}
		if wait <= 0 {
			// Due already; let the others in without waiting for them.
			select {
			case in := <-r.inputs:
				r.host.Deliver(r.hardware.Now(), in)
			case p, ok := <-packets:
				packets = r.packet(packets, p, ok)
			case ask := <-r.asks:
				r.asked(ask)
			case t := <-r.side.tapped:
				r.side.listen(t)
			case <-r.lost:
				return errBoardLost
			case <-ctx.Done():
				return r.end()
			default:
			}
			continue
		}
		timer.Reset(wait)
		select {
		case ev := <-r.events:
			r.deliver(ev)
		case in := <-r.inputs:
			r.host.Deliver(r.hardware.Now(), in)
		case p, ok := <-packets:
			packets = r.packet(packets, p, ok)
		case ask := <-r.asks:
			r.asked(ask)
		case t := <-r.side.tapped:
			r.side.listen(t)
		case <-timer.C:
		case <-r.lost:
			return errBoardLost
		case <-ctx.Done():
			return r.end()
		}
	}
}

// errBoardLost ends Run: whoever restarts the agent opens the board anew.
var errBoardLost = fmt.Errorf("agent: the board is out of reach: %w", hal.ErrNoDevice)

func (r *runner) end() error {
	if r.side.rec != nil {
		r.side.rec.Flush()
	}
	r.log.Info("agent ends; the light stays as it is")
	return nil
}

// deliver hands on one event and whatever else has come meanwhile.
func (r *runner) deliver(ev hal.Event) {
	now := r.hardware.Now()
	for {
		r.hears(now, ev)
		select {
		case ev = <-r.events:
		default:
			return
		}
	}
}

func (r *runner) packet(packets <-chan proto.Packet, p proto.Packet, ok bool) <-chan proto.Packet {
	if !ok {
		return nil // the link has ended; the node works on
	}
	now := r.hardware.Now()
	r.host.Deliver(now, Input{Kind: InPacket, Packet: p, At: now})
	switch p.Kind {
	case proto.LinkUp:
		r.log.Info("link up")
	case proto.LinkDown:
		r.log.Warn("link down; events queue")
	case proto.Refused:
		r.log.Error("broker refuses a topic", "topic", p.Topic)
	}
	return packets
}

// poll polls the agent until it is quiet, or the board has something to say.
func (r *runner) poll() (next time.Duration, err error) {
	for {
		now := r.hardware.Now()
		r.side.polled(now)
		asked, err := r.host.Round(now)
		if err != nil || !asked || r.host.Quiet(now) || len(r.events) > 0 { // light first
			return r.host.Next(), err
		}
	}
}

// Submit gives work to the board, unless its device is kept off the bus.
func (r *runner) Submit(now time.Duration, w Work) error {
	if err := r.side.quarantine.Refuse(now, w.Bus, w.Op); err != nil {
		return err
	}
	return r.hardware.Submit(w.Bus, w.Op)
}

// errSendQueue says that the link is slower than the agent.
var errSendQueue = errors.New("agent: too many packets wait for the link")

// Send queues a packet for the link.
func (r *runner) Send(_ time.Duration, p proto.Packet) error {
	if r.cfg.Link == nil {
		return nil
	}
	select {
	case r.sends <- p:
		return nil
	default:
		return errSendQueue
	}
}

// Persist queues a record for the disk; the agent has one under way at a time.
func (r *runner) Persist(_ time.Duration, id uint64, record []byte) error {
	r.records <- savedRecord{id, record}
	return nil
}

func (r *runner) calibrated(b proto.BundleID, c *ocs.Calibration) {
	if r.cfg.Calibrated == nil {
		return
	}
	if err := r.cfg.Calibrated(b, c); err != nil {
		r.log.Error("calibration not kept", "bundle", b, "error", err)
	}
}

func (r *runner) say(level uint8, text string) {
	r.log.Log(context.Background(), []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError}[min(level, 2)], text)
}

// diskRetry is how long a disk that refuses a record is left alone. chosen.
const diskRetry = 5 * time.Second

// keep writes records to the journal; the agent waits with its answers, never
// with its light.
func (r *runner) keep(ctx context.Context, file *fileJournal) {
	for {
		var rec savedRecord
		select {
		case rec = <-r.records:
		case <-ctx.Done():
			return
		}
		for file != nil {
			err := file.append(rec.raw)
			if err == nil {
				break
			}
			r.log.Error("journal not written; answers and events wait", "error", err)
			select {
			case <-time.After(diskRetry):
			case <-ctx.Done():
				return
			}
		}
		select {
		case r.inputs <- Input{Kind: InPersisted, ID: rec.id}:
		case <-ctx.Done():
			return
		}
	}
}

// transmit hands packets to the link, which may be slow.
func (r *runner) transmit(ctx context.Context) {
	for {
		select {
		case p := <-r.sends:
			if err := r.cfg.Link.Send(p); err != nil {
				r.log.Debug("not sent", "topic", p.Topic, "error", err)
				select {
				case r.inputs <- Input{Kind: InSendFailed}:
				case <-ctx.Done():
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
