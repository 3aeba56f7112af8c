package box

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// Config is what a Box is told at birth.
type Config struct {
	Bus    hal.BusID // a text line
	Client *hal.BoxClient
	End    byte // what ends a reply: '\n', or ';'
	Ports  int  // of either side
	// Deadline of an answer; 0: DefaultDeadline.
	Deadline time.Duration
}

// LinkState is how a Box stands with its switch.
//
//	     Start             read               goal
//	Off -------> Opening --------> Quiet <------------> Talking
//	                |  ^                                   |
//	    no answer   |  | Start      no answer, work.MaxTries    |
//	                v  |  <--------------------------------'
//	              Silent
//
// Start may be called in every state.
type LinkState uint8

const (
	LinkOff     LinkState = iota
	LinkOpening           // reading what the box is and does
	LinkQuiet             // nothing to do
	LinkTalking           // bringing a goal about
	LinkSilent            // it does not answer; its light stays as it is
	numLinkStates
)

var linkNames = [numLinkStates]string{"off", "opening", "quiet", "talking", "silent"}

func (s LinkState) String() string { return proto.NameOf(linkNames[:], uint8(s)) }

var linkEdges = [numLinkStates]uint8{
	LinkOff:     1 << LinkOpening,
	LinkOpening: 1<<LinkQuiet | 1<<LinkSilent | 1<<LinkOpening,
	LinkQuiet:   1<<LinkTalking | 1<<LinkOpening,
	LinkTalking: 1<<LinkQuiet | 1<<LinkSilent | 1<<LinkOpening,
	LinkSilent:  1 << LinkOpening,
}

func (x *Box) become(s LinkState) {
	if linkEdges[x.state]>>s&1 == 0 {
		panic("ocs: box: " + x.state.String() + " cannot become " + s.String())
	}
	x.state = s
}

// Deadlines of an answer. chosen: ten times the slowest bulk change of the field; what
// answers no sooner than the greatest is of no use to a planner.
const (
	LeastDeadline    = 100 * time.Millisecond
	DefaultDeadline  = 5 * time.Second
	GreatestDeadline = time.Minute
)

// Limits of a Box.
const (
	boxReply = 16 << 10 // of one read; a longer reply comes in several
	maxGoals = 16       // that wait
	// A path of a box that loses more than this has no light on it. chosen: the
	// boxes of the field lose at most 3 dB, their meters err by less than 2.
	boxLost = 10_000
	// lookAgain is when what a box is tuning is read again. chosen: a box of the field says
	// how its ports are once a second.
	lookAgain = 500 * time.Millisecond
)

// ErrNoMeters is why a circuit of a box cannot be proven.
var ErrNoMeters = errors.New("box has no power meters to prove it by, or they cannot be read")

// errSilent is what a line means that answered nothing, or not in time: the box, what is
// between, or somebody else who has it.
var errSilent = errors.New("box does not answer")

// What a box without meters says of its light.
var (
	errTunes   = errors.New("box tunes it once more")
	errNoLight = errors.New("box says that it has no light")
)

// Box is a commercial switch behind the same methods as a Crossbar.
type Box struct {
	cfg      Config
	state    LinkState
	err      error
	circuits []circuit.Circuit       // as they ought to be, in the order of A
	foreign  []circuit.Pair          // of them: nobody here has asked for these since the start
	unwanted map[hal.PortPair]string // taken away here, and not yet there: what the box said to it
	block    []int                   // ports to be held off, as a goal names them
	free     []int                   // and to be held off no more
	alarms   []hal.BoxAlarm          // as told
	goals    []request
	tries    int
	tuning   bool          // a circuit is being tuned
	look     time.Duration // when it is looked at again
	until    time.Duration // when the answer is due
	report   hal.BoxState
	work     work.Queue
	events   []circuit.Event
}

type request struct {
	hal.BoxGoal
	at time.Duration
}

// New makes a Box; it does nothing before Start.
func New(cfg Config) *Box {
	cfg.Deadline = cmp.Or(cfg.Deadline, DefaultDeadline)
	return &Box{cfg: cfg, unwanted: map[hal.PortPair]string{}}
}

// Start reads the box and takes up its circuits as they are.
func (x *Box) Start(now time.Duration) {
	x.become(LinkOpening)
	x.work.Restart()
	x.err, x.tries = nil, 0
	x.circuits, x.foreign = x.circuits[:0], x.foreign[:0]
	x.goals = append(x.goals[:0], request{hal.BoxGoal{Fresh: true, Powers: true}, now})
	x.talk(now)
}

// talk begins on the first goal.
func (x *Box) talk(now time.Duration) {
	g := &x.goals[0].BoxGoal
	g.Block, g.Free = x.block, x.free
	x.cfg.Client.Begin(*g)
	x.exchange(now, nil)
}

// exchange hands the client what came back and puts out what it says. Whatever else a
// box says meanwhile, its answer has a deadline.
func (x *Box) exchange(now time.Duration, reply []byte) (done bool, err error) {
	line, step := x.cfg.Client.Exchange(reply, nil)
	switch {
	case step == hal.BoxDone:
		return true, nil
	case step == hal.BoxSend:
		x.until = now + x.cfg.Deadline
	case now >= x.until:
		return false, hal.ErrTimeout
	}
	x.work.Put(x.cfg.Bus, &hal.Op{
		Token: x.work.Token(0, 0), Class: hal.ClassSwitch, Deadline: x.until - now,
		Msgs: []hal.Msg{{W: line, R: make([]byte, boxReply), Frame: x.cfg.End, Secret: x.cfg.Client.Secret()}},
	})
	return false, nil
}

// Poll takes completions and puts out bus work.
func (x *Box) Poll(now time.Duration, done []*hal.Completion, out []hal.BusOp) ([]hal.BusOp, time.Duration) {
	for _, c := range done {
		if _, _, mine := x.work.Mine(c.Op); mine {
			x.completed(now, c)
		}
	}
	if x.state == LinkQuiet && len(x.goals) > 0 {
		x.become(LinkTalking)
		x.talk(now)
		if x.work.Empty() {
			x.done(now)
		}
	}
	if x.state == LinkQuiet && x.tuning && now >= x.look {
		x.HealthRound(now)
		return x.Poll(now, nil, out)
	}
	if out = x.work.Take(out); x.state == LinkQuiet && x.tuning {
		return out, x.look
	}
	return out, hal.Never
}

func (x *Box) completed(now time.Duration, c *hal.Completion) {
	done, err := false, c.Err
	if err == nil {
		reply := c.Op.Msgs[0].R
		if n := bytes.IndexByte(reply, 0); n >= 0 {
			reply = reply[:n]
		}
		done, err = x.exchange(now, reply)
	}
	if done { // a line that was torn answers nothing: asked again, it may be whole
		if _, err := x.cfg.Client.Result(); !errors.Is(err, hal.ErrBoxReply) || !x.again(now) {
			x.done(now)
		}
		return
	}
	if err != nil && !x.again(now) {
		x.silent(now, err)
	}
}

// silent: what the box is at nobody knows.
func (x *Box) silent(now time.Duration, err error) {
	if errors.Is(err, hal.ErrTimeout) || errors.Is(err, hal.ErrBusStuck) { // a line of text has no levels to be stuck at
		err = fmt.Errorf("%w within %v: %w", errSilent, x.cfg.Deadline, hal.ErrTimeout)
	}
	x.err, x.goals = err, x.goals[:0]
	x.become(LinkSilent)
	x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now, Err: err})
}

// again talks about the first goal once more, from the beginning: nobody knows
// what of it arrived. It reports whether there was a try left.
func (x *Box) again(now time.Duration) bool {
	if x.tries++; x.tries >= work.MaxTries {
		return false
	}
	x.work.Restart()
	x.goals[0].Fresh = true
	x.talk(now)
	return true
}

// done: the client has a result.
func (x *Box) done(now time.Duration) {
	report, err := x.cfg.Client.Result()
	if errors.Is(err, hal.ErrBoxPowers) { // what was switched is; whether it has light nobody can say
		err, report.HasMeters = nil, false
	}
	if err != nil && !errors.Is(err, hal.ErrBoxNotMade) { // it was not read back
		x.silent(now, err)
		return
	}
	opening := x.state == LinkOpening
	if opening && x.cfg.Ports > 0 && report.In != x.cfg.Ports {
		x.silent(now, fmt.Errorf("box has %d ports on side A, want the %d of its configuration: %w", report.In, x.cfg.Ports, hal.ErrOutOfRange))
		return
	}
	goal := x.goals[0]
	x.goals = append(x.goals[:0], x.goals[1:]...)
	x.tries = 0
	x.become(LinkQuiet)
	x.report, x.tuning, x.look = report, false, now+lookAgain
	for i := range x.circuits {
		x.judge(now, &x.circuits[i], goal, err)
	}
	if len(x.goals) == 0 {
		x.others(now, goal, opening)
	}
	x.free = slices.DeleteFunc(x.free, func(p int) bool {
		return slices.Contains(goal.Free, p) && report.Shutters && !slices.Contains(report.Blocked, p)
	})
	x.tellAlarms(now)
	if opening {
		x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now})
	}
}

func (x *Box) find(p circuit.Pair) int {
	i, _ := slices.BinarySearchFunc(x.circuits, p.A, func(c circuit.Circuit, a uint16) int { return int(c.Pair.A) - int(a) })
	return i
}

func (x *Box) insert(p circuit.Pair) {
	x.circuits = slices.Insert(x.circuits, x.find(p), circuit.Circuit{Pair: p, State: proto.Tuning})
}

func (x *Box) at(side int, port uint16) (circuit.Pair, bool) {
	for _, c := range x.circuits {
		if at := [hal.NumSides]uint16{c.Pair.A, c.Pair.B}[side]; at == port {
			return c.Pair, true
		}
	}
	return circuit.Pair{}, false
}

// Apply makes a change in one act, after those asked for before it.
func (x *Box) Apply(now time.Duration, ch circuit.Change) error {
	switch {
	case x.state == LinkOff || x.state == LinkOpening:
		return fmt.Errorf("ocs: box: %w", circuit.ErrNotReady)
	case x.state == LinkSilent:
		return fmt.Errorf("ocs: box: %w: %w", circuit.ErrOutOfService, x.err)
	case len(x.goals) >= maxGoals:
		return fmt.Errorf("ocs: box: %d changes wait: %w", len(x.goals), hal.ErrQueueFull)
	}
	if err := ch.Check(x.report.In, x.report.Out, x.at); err != nil {
		return fmt.Errorf("ocs: box: %w", err)
	}
	goal := hal.BoxGoal{Only: ch.Mode == circuit.Overwrite, Powers: true}
	for i := len(x.circuits) - 1; i >= 0; i-- {
		p := x.circuits[i].Pair
		inWay := slices.ContainsFunc(ch.Create, func(q circuit.Pair) bool { return q != p && (q.A == p.A || q.B == p.B) })
		if slices.Contains(ch.Create, p) || !goal.Only && !inWay && !slices.Contains(ch.Remove, p) {
			continue
		}
		goal.Remove = append(goal.Remove, hal.PortPair{In: p.A, Out: p.B})
		x.foreign = slices.DeleteFunc(x.foreign, func(f circuit.Pair) bool { return f == p })
		x.events = append(x.events, circuit.Event{Kind: circuit.Removed, At: now, Pair: p})
		x.circuits = slices.Delete(x.circuits, i, i+1)
	}
	for _, p := range ch.Create {
		goal.Create = append(goal.Create, hal.PortPair{In: p.A, Out: p.B})
		if i := x.find(p); i == len(x.circuits) || x.circuits[i].Pair != p {
			x.insert(p)
		}
		x.circuits[x.find(p)].State, x.circuits[x.find(p)].Err = proto.Tuning, nil // its end is told
		x.foreign = slices.DeleteFunc(x.foreign, func(f circuit.Pair) bool { return f == p })
	}
	for _, p := range goal.Remove {
		x.unwanted[p] = ""
	}
	for _, p := range goal.Create {
		delete(x.unwanted, p)
	}
	x.goals = append(x.goals, request{goal, now})
	return nil
}

// HealthRound reads the box: circuits that others took away or made show. What was not
// taken away is once more.
func (x *Box) HealthRound(now time.Duration) {
	if x.state == LinkQuiet && len(x.goals) == 0 {
		goal := hal.BoxGoal{Powers: true}
		for _, p := range x.report.Map {
			if _, unwanted := x.unwanted[p]; unwanted {
				goal.Remove = append(goal.Remove, p)
			}
		}
		x.goals = append(x.goals, request{goal, now})
	}
}

// Circuits appends all circuits in the order of their ports of side A. Of a
// silent box nobody knows any more that one of them has light.
func (x *Box) Circuits(buf []circuit.Circuit) []circuit.Circuit {
	from := len(buf)
	buf = append(buf, x.circuits...)
	if x.state == LinkSilent {
		for i := range buf[from:] {
			if c := &buf[from+i]; c.State != proto.Failed {
				c.State, c.Err = proto.Tuning, x.err
			}
		}
	}
	return buf
}

// TakeEvents appends what happened since the last call.
func (x *Box) TakeEvents(buf []circuit.Event) []circuit.Event {
	buf = append(buf, x.events...)
	x.events = x.events[:0]
	return buf
}

// Recall does nothing: the box says itself what its circuits are.
func (x *Box) Recall([]circuit.Saved, bool) {}

// Stray is false: all that a box does is one of its circuits.
func (x *Box) Stray() bool { return false }

// Busy tells whether the box is being told something, or has to be.
func (x *Box) Busy() bool {
	return x.state == LinkOpening || x.state == LinkTalking || len(x.goals) > 0
}

// Save appends nothing: a box keeps its circuits itself, and says them.
func (x *Box) Save(buf []circuit.Saved) []circuit.Saved { return buf }

// errNoOverride is why a port of a box cannot be held off.
var errNoOverride = errors.New("no command of the box holds a port off")

// Override holds a port off, or lets it go, with the next talk; an alarm says where it is
// not so.
func (x *Box) Override(now time.Duration, side, port int, o proto.Override) error {
	state, _ := x.cfg.Client.Result()
	if !state.Shutters || x.cfg.Ports == 0 {
		if o == proto.Normal {
			return nil
		}
		return fmt.Errorf("ocs: box: %w", errNoOverride)
	}
	p := side*x.cfg.Ports + port
	is := func(q int) bool { return q == p }
	x.block, x.free = slices.DeleteFunc(x.block, is), slices.DeleteFunc(x.free, is)
	if o == proto.Normal {
		x.free = append(x.free, p)
	} else {
		x.block = append(x.block, p)
	}
	x.HealthRound(now)
	return nil
}

// Power is what a port's meter last showed.
func (x *Box) Power(side, port int) (proto.MilliDBm, error) {
	if err := circuit.CheckPort(side, port, x.report.In, x.report.Out); err != nil {
		return 0, err
	}
	at := side*x.report.In + port
	if at >= len(x.report.Powers) {
		return 0, fmt.Errorf("ocs: box: %w", ErrNoMeters)
	}
	return proto.MilliDBm(x.report.Powers[at]), nil
}

// Link is how the box stands, what it last reported, and why it is silent.
func (x *Box) Link() (LinkState, hal.BoxState, error) { return x.state, x.report, x.err }
