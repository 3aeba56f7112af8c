package box

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// Dialect is what a box speaks: hal/scpi and hal/tl1.
type Dialect interface {
	Begin(goal hal.BoxGoal)
	// Exchange takes what came back, nil for nothing, and appends what to send.
	Exchange(reply, dst []byte) ([]byte, hal.BoxStep)
	Result() (hal.BoxState, error)
}

// Config is what a Box is told at birth.
type Config struct {
	Bus     hal.BusID // a text line
	Dialect Dialect
	End     byte // what ends a reply: '\n', or ';'
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

// Limits of a Box.
const (
	boxDeadline = 5 * time.Second // chosen: ten times the slowest bulk change of the field
	boxReply    = 16 << 10        // of one read; a longer reply comes in several
	maxGoals    = 16              // that wait
	// A path of a box that loses more than this has no light on it. chosen: the
	// boxes of the field lose at most 3 dB, their meters err by less than 2.
	boxLost = 10_000
)

// ErrNoMeters is why a circuit of a box cannot be proven.
var ErrNoMeters = errors.New("box has no power meters to prove it by, or they cannot be read")

// ErrSilent is what a line means that answered nothing, or not in time: the box, what is
// between, or somebody else who has it.
var ErrSilent = errors.New("box does not answer")

// Box is a commercial switch behind the same methods as a Crossbar. What it
// reports is compared with what was asked, and its meters with both: it does
// its own tuning, and says nothing of it.
type Box struct {
	cfg      Config
	state    LinkState
	err      error
	circuits []circuit.Circuit // as they ought to be, in the order of A
	goals    []request
	tries    int
	report   hal.BoxState
	busErr   uint32
	work     work.Queue
	events   []circuit.Event
}

type request struct {
	hal.BoxGoal
	at time.Duration
}

// New makes a Box; it does nothing before Start.
func New(cfg Config) *Box { return &Box{cfg: cfg} }

// Start reads the box and takes up its circuits as they are.
func (x *Box) Start(now time.Duration) {
	x.become(LinkOpening)
	x.work.Restart()
	x.err, x.tries = nil, 0
	x.circuits = x.circuits[:0]
	x.goals = append(x.goals[:0], request{hal.BoxGoal{Fresh: true, Powers: true}, now})
	x.talk()
}

// talk begins on the first goal.
func (x *Box) talk() {
	x.cfg.Dialect.Begin(x.goals[0].BoxGoal)
	x.exchange(nil)
}

// exchange hands the dialect what came back and puts out what it says.
func (x *Box) exchange(reply []byte) (done bool) {
	line, step := x.cfg.Dialect.Exchange(reply, nil)
	if step == hal.BoxDone {
		return true
	}
	var secret []byte
	if d, ok := x.cfg.Dialect.(interface{ Secret() []byte }); ok {
		secret = d.Secret()
	}
	x.work.Put(x.cfg.Bus, &hal.Op{
		Token: x.work.Token(0, 0), Class: hal.ClassSwitch, Deadline: boxDeadline,
		Msgs: []hal.Msg{{W: line, R: make([]byte, boxReply), Frame: x.cfg.End, Secret: secret}},
	})
	return false
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
		x.talk()
		if x.work.Empty() {
			x.done(now)
		}
	}
	return x.work.Take(out), hal.Never
}

func (x *Box) completed(now time.Duration, c *hal.Completion) {
	if c.Err != nil {
		x.busErr++
		if x.again() {
			return
		}
		if x.err = c.Err; errors.Is(c.Err, hal.ErrTimeout) || errors.Is(c.Err, hal.ErrBusStuck) { // a line of text has no levels to be stuck at
			x.err = fmt.Errorf("%w: %w", ErrSilent, hal.ErrTimeout)
		}
		x.goals = x.goals[:0]
		x.become(LinkSilent)
		x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now, Err: x.err})
		return
	}
	reply := c.Op.Msgs[0].R
	if n := bytes.IndexByte(reply, 0); n >= 0 {
		reply = reply[:n]
	}
	if !x.exchange(reply) {
		return
	}
	// A line that was torn answers nothing: asked again, it may be whole.
	if _, err := x.cfg.Dialect.Result(); errors.Is(err, hal.ErrBoxReply) && x.again() {
		return
	}
	x.done(now)
}

// again talks about the first goal once more, from the beginning: nobody knows
// what of it arrived. It reports whether there was a try left.
func (x *Box) again() bool {
	if x.tries++; x.tries >= work.MaxTries {
		return false
	}
	x.work.Restart()
	x.goals[0].Fresh = true
	x.talk()
	return true
}

// done: the dialect has a result.
func (x *Box) done(now time.Duration) {
	opening := x.state == LinkOpening
	goal := x.goals[0]
	x.goals = append(x.goals[:0], x.goals[1:]...)
	x.tries = 0
	report, err := x.cfg.Dialect.Result()
	if errors.Is(err, hal.ErrBoxPowers) { // what was switched is; whether it has light nobody can say
		err, report.HasMeters = nil, false
	}
	if opening && err != nil {
		x.err = err
		x.become(LinkSilent)
		x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now, Err: err})
		return
	}
	x.become(LinkQuiet)
	x.report = report
	for i := range x.circuits {
		x.judge(now, &x.circuits[i], goal, err)
	}
	if len(x.goals) == 0 && err == nil {
		// What nobody here asked for, somebody else did.
		for _, p := range report.Map {
			if pair := (circuit.Pair{A: p.In, B: p.Out}); !slices.ContainsFunc(x.circuits, func(c circuit.Circuit) bool { return c.Pair == pair }) {
				x.insert(pair)
				x.judge(now, &x.circuits[x.find(pair)], goal, nil)
			}
		}
	}
	if opening {
		x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now})
	}
}

// judge compares a circuit with what the box reports.
func (x *Box) judge(now time.Duration, c *circuit.Circuit, goal request, err error) {
	pair := hal.PortPair{In: c.Pair.A, Out: c.Pair.B}
	if slices.ContainsFunc(x.goals, func(g request) bool { return slices.Contains(g.Create, pair) }) {
		return // its turn comes
	}
	was := c.State
	c.Took = now - goal.at
	switch {
	case !slices.Contains(x.report.Map, pair):
		c.State, c.Err = proto.Failed, hal.ErrBoxNotMade
		if err != nil {
			c.Err = err
		}
	case !x.report.HasMeters:
		c.State, c.Err = proto.Unproven, ErrNoMeters
	case len(x.report.Powers) == x.report.In+x.report.Out:
		in, out := x.report.Powers[c.Pair.A], x.report.Powers[x.report.In+int(c.Pair.B)]
		c.Loss = proto.MilliDBm(in - out)
		switch {
		case proto.MilliDBm(in) < circuit.LeastInput:
			c.State, c.Err = proto.Tuning, circuit.ErrNoInput
		case c.Loss > boxLost:
			c.State, c.Err = proto.Failed, circuit.ErrNotTuned
		default:
			c.State, c.Err = proto.Tuned, nil
		}
	}
	e := circuit.Event{At: now, Pair: c.Pair, Loss: c.Loss, Err: c.Err}
	switch {
	case c.State == was:
		return
	case c.State == proto.Tuned:
		e.Kind = circuit.Tuned
	case c.State == proto.Unproven:
		e.Kind = circuit.Unproven
	case c.State == proto.Failed:
		e.Kind = circuit.Failed
	default:
		return
	}
	x.events = append(x.events, e)
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
		x.events = append(x.events, circuit.Event{Kind: circuit.Removed, At: now, Pair: p})
		x.circuits = slices.Delete(x.circuits, i, i+1)
	}
	for _, p := range ch.Create {
		goal.Create = append(goal.Create, hal.PortPair{In: p.A, Out: p.B})
		if i := x.find(p); i == len(x.circuits) || x.circuits[i].Pair != p {
			x.insert(p)
		}
	}
	x.goals = append(x.goals, request{goal, now})
	return nil
}

// HealthRound reads the box: circuits that others took away or made show.
func (x *Box) HealthRound(now time.Duration) {
	if x.state == LinkQuiet && len(x.goals) == 0 {
		x.goals = append(x.goals, request{hal.BoxGoal{Powers: true}, now})
	}
}

// Circuits appends all circuits in the order of their ports of side A. Of a
// silent box nobody knows any more that one of them has light.
func (x *Box) Circuits(buf []circuit.Circuit) []circuit.Circuit {
	from := len(buf)
	buf = append(buf, x.circuits...)
	if x.state == LinkSilent {
		for i := range buf[from:] {
			if c := &buf[from+i]; c.State.Lit() {
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

// ErrNoOverride is why a port of a box cannot be held off.
var ErrNoOverride = errors.New("no command of the box holds a port off")

// Override cannot be had of a box.
func (x *Box) Override(_ time.Duration, _, _ int, o proto.Override) error {
	if o == proto.Normal {
		return nil
	}
	return fmt.Errorf("ocs: box: %w", ErrNoOverride)
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
