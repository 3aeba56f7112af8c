package tl1

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/hal"
)

// MaxTries bounds how often a client makes the same connections. chosen: as
// with the silent kind of box.
const MaxTries = 3

// Config is what a Client must know of a box.
type Config struct {
	Names          Names
	User, Password string
	// Group owns our connections; those of others are left alone.
	Group string
	// Patch: the box speaks of patches, see patch.go. Its ports have numbers, and
	// nobody owns them.
	Patch bool
}

type clientStep uint8

const (
	stepDone clientStep = iota
	stepLogin
	stepSystem
	stepRead   // the map, before anything is changed
	stepCancel // of connection at
	stepDelete
	stepEnter
	stepActivate
	stepVerify
	stepPower // of port at
)

// Client talks with one box: Begin says what for, Next is the command to send,
// Take what came back, until Next has no more; Exchange is both. It may be used
// again, also after an error; the session stays until a goal is fresh.
type Client struct {
	cfg    Config
	reader Reader
	state  hal.BoxState
	goal   hal.BoxGoal
	step   clientStep
	remove []hal.PortPair
	create []hal.PortPair
	at     int
	tag    uint32
	asked  bool // the command of this step is out
	in     bool // logged in
	tries  int
	why    string // an entry was denied
	err    error
	// Autonomous counts messages that answered nothing.
	Autonomous uint32
}

// NewClient makes a Client.
func NewClient(cfg Config) *Client {
	if cfg.Group == "" {
		cfg.Group = "ringlight"
	}
	c := &Client{cfg: cfg}
	c.state.In, c.state.Out, c.state.HasMeters = len(cfg.Names.In), len(cfg.Names.Out), true
	return c
}

// Result is what the box said last, and why the goal was not reached: an error
// that matches one of hal's box errors.
func (c *Client) Result() (hal.BoxState, error) { return c.state, c.err }

// Secret is what no recording of the talk may hold.
func (c *Client) Secret() []byte { return []byte(c.cfg.Password) }

// Exchange takes what arrived, nil for nothing, and appends what to send.
func (c *Client) Exchange(reply, dst []byte) ([]byte, hal.BoxStep) {
	if reply != nil {
		c.Take(reply)
	}
	line, ok := c.Next(dst)
	switch {
	case ok:
		return line, hal.BoxSend
	case c.Waiting():
		return line, hal.BoxWait
	}
	return line, hal.BoxDone
}

// Begin starts on a goal.
func (c *Client) Begin(goal hal.BoxGoal) {
	c.goal, c.err, c.tries, c.asked, c.why = goal, nil, 0, false, ""
	c.state.Powers = nil
	if goal.Fresh {
		c.reader, c.in = Reader{}, false
	}
	for _, p := range append(slices.Clone(goal.Create), goal.Remove...) {
		if int(p.In) >= c.state.In || int(p.Out) >= c.state.Out {
			c.fail(fmt.Errorf("tl1: connection %d to %d of a box of %d by %d: %w", p.In, p.Out, c.state.In, c.state.Out, hal.ErrOutOfRange))
			return
		}
	}
	c.step = stepLogin
	if c.in {
		c.step = stepRead
	}
}

func (c *Client) fail(err error) {
	if p := c.cfg.Password; p != "" && strings.Contains(err.Error(), p) { // a box may say what it was told
		err = redacted{strings.ReplaceAll(err.Error(), p, "***"), err}
	}
	c.step, c.err = stepDone, err
}

// redacted is an error in whose text the password stood.
type redacted struct {
	text string
	err  error
}

func (r redacted) Error() string { return r.text }
func (r redacted) Unwrap() error { return r.err }

// Next appends the command to send, once; ok is false when there is nothing to
// say, be it that an answer is due still (Waiting) or that all is done.
func (c *Client) Next(dst []byte) (line []byte, ok bool) {
	if c.step == stepDone || c.asked {
		return dst, false
	}
	c.asked = true
	c.tag++
	if c.step == stepLogin {
		return fmt.Appendf(dst, "ACT-USER::%s:%d::%s;", c.cfg.User, c.tag, c.cfg.Password), true
	}
	if c.cfg.Patch {
		return c.nextPatch(dst), true
	}
	switch c.step {
	case stepSystem:
		return fmt.Appendf(dst, "RTRV-NE:::%d;", c.tag), true
	case stepRead, stepVerify:
		return fmt.Appendf(dst, "RTRV-CRS:::%d::ALL;", c.tag), true
	case stepPower:
		return fmt.Appendf(dst, "RTRV-PORT-SUM::%s:%d;", c.portName(c.at), c.tag), true
	}
	list := c.create
	if c.step == stepCancel || c.step == stepDelete {
		list = c.remove
	}
	s, d := c.cfg.Names.In[list[c.at].In], c.cfg.Names.Out[list[c.at].Out]
	name, g := s+">"+d, c.cfg.Group
	switch c.step {
	case stepCancel:
		dst = fmt.Appendf(dst, "CANC-CRS::%s,%s:%d::,%s,%s;", s, d, c.tag, g, name)
	case stepDelete:
		dst = fmt.Appendf(dst, "DLT-CRS::%s,%s:%d::,%s,%s;", s, d, c.tag, g, name)
	case stepEnter:
		dst = fmt.Appendf(dst, "ENT-CRS::%s,%s:%d::%s,1WAY;", s, d, c.tag, g)
	case stepActivate:
		dst = fmt.Appendf(dst, "ACT-CRS::%s,%s:%d::%s,%s;", s, d, c.tag, name, g)
	}
	return dst, true
}

// Waiting reports whether an answer is due.
func (c *Client) Waiting() bool { return c.step != stepDone && c.asked }

// portName is the name of a port, the inputs first.
func (c *Client) portName(i int) string {
	if i < c.state.In {
		return c.cfg.Names.In[i]
	}
	return c.cfg.Names.Out[i-c.state.In]
}

// Take takes bytes that arrived; a message may come in pieces.
func (c *Client) Take(b []byte) {
	c.reader.Put(b)
	for {
		m, ok, err := c.reader.Next()
		if err != nil {
			c.reader = Reader{}
			c.fail(err)
			return
		}
		if !ok {
			return
		}
		if !c.Waiting() || m.Tag != c.tag {
			c.Autonomous++ // or late: an answer to what we gave up waiting for
			continue
		}
		c.asked = false
		c.answered(m)
	}
}

func (c *Client) answered(m Message) {
	if m.Code != "COMPLD" {
		c.denied(m)
		return
	}
	switch c.step {
	case stepLogin:
		c.in, c.step = true, stepSystem
	case stepSystem:
		c.state.Identity = strings.Join(m.Text, " ")
		c.step = stepRead
	case stepRead:
		if c.take(m) {
			c.plan()
		}
	case stepCancel:
		c.step = stepDelete
	case stepEnter:
		if c.cfg.Patch { // it is active at once
			if c.at++; c.at == len(c.create) {
				c.step = stepVerify
			}
			return
		}
		c.step, c.why = stepActivate, ""
	case stepDelete:
		if c.step, c.at = c.removing(), c.at+1; c.at == len(c.remove) {
			c.at = 0
			c.step = stepEnter
			if len(c.create) == 0 {
				c.step = stepVerify
			}
		}
	case stepActivate:
		if c.step, c.at = stepEnter, c.at+1; c.at == len(c.create) {
			c.step = stepVerify
		}
	case stepVerify:
		if c.take(m) {
			c.verify()
		}
	case stepPower:
		c.power(m)
	}
}

// denied: a cancel or delete of what is not there changes nothing that we
// want, nor does the entry of what an interrupted talk left half made; the
// activation and the read-back decide. All else ends it.
func (c *Client) denied(m Message) {
	switch c.step {
	case stepCancel:
		c.step = stepDelete
		return
	case stepDelete:
		m.Code = "COMPLD"
		c.answered(m)
		return
	case stepEnter:
		if !c.cfg.Patch {
			c.step = stepActivate
			c.why = strings.Join(m.Text, " ")
			return
		}
	case stepLogin:
		c.in = false
	}
	c.fail(fmt.Errorf("tl1: %s %s %s: %w", m.Code, strings.Join(m.Text, " "), c.why, hal.ErrBoxDenied))
}

func (c *Client) take(m Message) bool {
	parse := c.cfg.Names.parseMap
	if c.cfg.Patch {
		parse = c.cfg.Names.parsePatches
	}
	state, err := parse(m.Text, c.cfg.Group)
	if err != nil {
		c.fail(err)
		return false
	}
	c.state.Map = state
	return true
}

// plan works out what to take away and what to make. Conflicts are resolved
// here, deletes before makes: a box that must do it takes 2.5 times as long.
func (c *Client) plan() {
	c.remove, c.create, c.at = c.remove[:0], c.create[:0], 0
	g := &c.goal
	for _, have := range c.state.Map {
		gone := !slices.Contains(g.Create, have) && (g.Only || slices.Contains(g.Remove, have) ||
			slices.ContainsFunc(g.Create, func(p hal.PortPair) bool { return p.In == have.In || p.Out == have.Out }))
		if gone {
			c.remove = append(c.remove, have)
		}
	}
	for _, p := range g.Create {
		if !slices.Contains(c.state.Map, p) {
			c.create = append(c.create, p)
		}
	}
	switch {
	case len(c.remove) > 0:
		c.step = c.removing()
	case len(c.create) > 0:
		c.step = stepEnter
	default:
		c.finish()
	}
}

func (c *Client) verify() {
	if !c.goal.Wrong(c.state.Map) {
		c.finish()
		return
	}
	if c.tries++; c.tries >= MaxTries {
		c.fail(fmt.Errorf("tl1: %d tries: %w", c.tries, hal.ErrBoxNotMade))
		return
	}
	c.plan()
}

func (c *Client) finish() {
	c.step, c.at = stepDone, 0
	if c.goal.Powers {
		c.step = stepPower
	}
}

// power reads a port's summary: what comes in at an input, what leaves at an
// output.
func (c *Client) power(m Message) {
	if c.cfg.Patch {
		c.patchPowers(m)
		return
	}
	key := "INPWR"
	if c.at >= c.state.In {
		key = "OUTPWR"
	}
	text := fields(strings.Join(m.Text, ","))[key]
	v, ok := hal.ParseMilli(text)
	if !ok {
		c.fail(bad("power %.20q", text))
		return
	}
	c.state.Powers = append(c.state.Powers, v)
	if c.at++; c.at == c.state.In+c.state.Out {
		c.step = stepDone
	}
}
