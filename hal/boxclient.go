package hal

import (
	"errors"
	"fmt"
	"slices"
)

// BoxTries bounds how often a client sets the same connections. chosen: as the field's drivers.
const BoxTries = 3

// BoxVerb is what a box is told or asked.
type BoxVerb uint8

const (
	BoxGreet  BoxVerb = iota // the n-th exchange of a new connection
	BoxRead                  // what is connected
	BoxRemove                // connections
	BoxCreate
	BoxPorts // which of its ports are blocked
	BoxBlock
	BoxFree
	BoxMeter // the n-th part of its meters
)

// BoxWord is one exchange with a box.
type BoxWord struct {
	Verb  BoxVerb
	N     int // counts where one verb takes several
	Pairs []PortPair
	Ports []int
}

// BoxLanguage is how a kind of box is spoken to: hal/scpi and hal/tl1.
type BoxLanguage interface {
	// Exchanges is how many a verb takes: of BoxRemove and BoxCreate to set one connection
	// alone, or several at once; 0: that cannot be.
	Exchanges(v BoxVerb, alone bool, s *BoxState) int
	// Say appends a word; each is said once.
	Say(dst []byte, w BoxWord, s *BoxState) []byte
	// Hear takes what came back. done: it was the answer, and s has what it says.
	Hear(reply []byte, w BoxWord, s *BoxState) (done bool, err error)
	// Secret is what no recording of the talk may hold; nil: all may be told.
	Secret() []byte
}

// BoxRefusal is a box's own word for what it does not do.
type BoxRefusal string

func (r BoxRefusal) Error() string   { return ErrBoxDenied.Error() + ": " + string(r) }
func (r BoxRefusal) Is(e error) bool { return e == ErrBoxDenied }

// BoxClient talks with one box: Begin says what for, Next is what to send, Take what came
// back, until neither is due; Exchange is both. It reads, sets what is missing, and reads
// again, as boxes have been seen to acknowledge what they did not do. What was set in vain
// is set connection by connection: one that is refused is in no other's way.
//
// It may be used again, also after an error; a connection stays until a goal is fresh.
type BoxClient struct {
	language BoxLanguage
	start    BoxState
	state    BoxState
	goal     BoxGoal
	words    []BoxWord // the first is said, or next
	asked    bool
	greeted  bool
	tries    int
	shuts    int
	err      error
}

// NewBoxClient makes a client; start is what is known of a box before it is asked.
func NewBoxClient(l BoxLanguage, start BoxState) *BoxClient {
	return &BoxClient{language: l, start: start, state: start}
}

// Begin starts on a goal.
func (c *BoxClient) Begin(goal BoxGoal) {
	c.goal, c.err, c.tries, c.shuts, c.asked = goal, nil, 0, 0, false
	c.words = c.words[:0]
	if c.greeted = c.greeted && !goal.Fresh; !c.greeted {
		c.state = c.start
		c.add(BoxWord{Verb: BoxGreet}, true)
	}
	c.state.Powers, c.state.Refused, c.state.Blocked, c.state.Shutters = nil, nil, nil, c.start.Shutters
	c.add(BoxWord{Verb: BoxRead}, true)
}

// add appends the exchanges of a verb.
func (c *BoxClient) add(w BoxWord, alone bool) {
	for n := range c.language.Exchanges(w.Verb, alone, &c.state) {
		w.N = n
		c.words = append(c.words, w)
	}
}

// Result is what the box said last, and why the goal was not reached: an error
// that matches one of hal's box errors.
func (c *BoxClient) Result() (BoxState, error) { return c.state, c.err }

// Secret is the language's.
func (c *BoxClient) Secret() []byte { return c.language.Secret() }

// Exchange takes what arrived, nil for nothing, and appends what to send.
func (c *BoxClient) Exchange(reply, dst []byte) ([]byte, BoxStep) {
	if reply != nil {
		c.Take(reply)
	}
	line, ok := c.Next(dst)
	switch {
	case ok:
		return line, BoxSend
	case c.Waiting():
		return line, BoxWait
	}
	return line, BoxDone
}

// Next appends what to send, once; ok is false when there is nothing to say, be it that
// an answer is due still (Waiting) or that all is done.
func (c *BoxClient) Next(dst []byte) (line []byte, ok bool) {
	if len(c.words) == 0 || c.asked {
		return dst, false
	}
	c.asked = true
	return c.language.Say(dst, c.words[0], &c.state), true
}

// Waiting reports whether an answer is due.
func (c *BoxClient) Waiting() bool { return c.asked }

// Take takes bytes that arrived; an answer may come in pieces.
func (c *BoxClient) Take(b []byte) {
	if !c.asked {
		return
	}
	w := c.words[0]
	done, err := c.language.Hear(b, w, &c.state)
	if !done && err == nil {
		return
	}
	c.words, c.asked = c.words[1:], false
	last := len(c.words) == 0 || c.words[0].Verb != w.Verb // of its exchanges
	var refusal BoxRefusal
	switch refused := errors.As(err, &refusal); {
	case refused && len(w.Pairs) > 0:
		if c.state.Refused == nil {
			c.state.Refused = map[PortPair]error{}
		}
		c.state.Refused[w.Pairs[0]] = refusal
	case refused && w.Verb == BoxPorts:
		c.state.Shutters = false
		c.meters()
	case refused && (w.Verb == BoxBlock || w.Verb == BoxFree): // the states are read behind it
	case err != nil && w.Verb == BoxMeter:
		c.fail(fmt.Errorf("%w: %w", ErrBoxPowers, err))
	case err != nil:
		c.fail(err)
	case w.Verb == BoxGreet:
		c.greeted = last
	case w.Verb == BoxRead && last:
		c.compare()
	case w.Verb == BoxPorts && last:
		c.shut()
	}
}

func (c *BoxClient) fail(err error) {
	c.words, c.err = c.words[:0], err
	if c.state.Powers = nil; !errors.Is(err, ErrBoxNotMade) && !errors.Is(err, ErrBoxPowers) {
		c.greeted = false
	}
}

// compare works out what to take away and what to make. Conflicts are resolved here,
// deletes before makes: a box that must do it takes 2.5 times as long.
func (c *BoxClient) compare() {
	g := &c.goal
	var remove, create []PortPair
	failed := func(p PortPair) bool { // it is made anew, once
		l, told := c.state.Lights[p]
		return told && l.Failed() && c.tries == 0
	}
	for _, p := range g.Create {
		if int(p.In) >= c.state.In || int(p.Out) >= c.state.Out {
			c.fail(fmt.Errorf("connection %d to %d of a box of %d by %d: %w", p.In, p.Out, c.state.In, c.state.Out, ErrOutOfRange))
			return
		}
		if !slices.Contains(c.state.Map, p) || failed(p) {
			create = append(create, p)
		}
	}
	for i, have := range slices.Concat(c.state.Map, c.state.Stale) {
		if wanted := slices.Contains(g.Create, have); wanted && (i >= len(c.state.Map) || failed(have)) {
			remove = append(remove, have) // a key that is there is passed over
		} else if !wanted && (g.Only || slices.Contains(g.Remove, have) ||
			slices.ContainsFunc(g.Create, func(p PortPair) bool { return p.In == have.In || p.Out == have.Out })) {
			remove = append(remove, have)
		}
	}
	switch {
	case len(remove)+len(create) == 0:
		c.state.Refused = nil
		c.ports()
		return
	case c.tries == BoxTries:
		c.fail(fmt.Errorf("%d tries: %w", c.tries, ErrBoxNotMade))
		return
	}
	for _, w := range [...]BoxWord{{Verb: BoxRemove, Pairs: remove}, {Verb: BoxCreate, Pairs: create}} {
		if alone := c.tries > 0 || c.language.Exchanges(w.Verb, false, &c.state) == 0; !alone && len(w.Pairs) > 0 {
			c.add(w, false)
		} else if alone {
			for one := range slices.Chunk(w.Pairs, 1) {
				c.add(BoxWord{Verb: w.Verb, Pairs: one}, true)
			}
		}
	}
	c.tries++
	c.add(BoxWord{Verb: BoxRead}, true)
}

// ports asks for the shutters that a goal names.
func (c *BoxClient) ports() {
	if all := append(slices.Clone(c.goal.Block), c.goal.Free...); c.state.Shutters && len(all) > 0 {
		c.add(BoxWord{Verb: BoxPorts, Ports: all}, true)
		return
	}
	c.meters()
}

// shut has those moved that are not as they should be.
func (c *BoxClient) shut() {
	block, free := c.goal.WrongPorts(c.state.Blocked)
	if c.shuts++; c.shuts > BoxTries || len(block)+len(free) == 0 {
		c.meters()
		return
	}
	if len(block) > 0 {
		c.words = append(c.words, BoxWord{Verb: BoxBlock, Ports: block})
	}
	if len(free) > 0 {
		c.words = append(c.words, BoxWord{Verb: BoxFree, Ports: free})
	}
	c.ports()
}

// meters is the last of a goal.
func (c *BoxClient) meters() {
	if c.words = c.words[:0]; c.goal.Powers && c.state.HasMeters {
		c.add(BoxWord{Verb: BoxMeter}, true)
	}
}
