package scpi

import (
	"fmt"
	"strconv"
	"strings"

	"ringlight/hal"
)

// MaxTries bounds how often a client sets the same connections. chosen: the
// drivers of the field try three times.
const MaxTries = 3

// maxStale is how many lines a client passes over that do not identify the
// switch: what is left of an exchange that was broken off. chosen: the replies of
// one goal.
const maxStale = 8

// maxPowerPorts is the most ports of one power query.
const maxPowerPorts = 256

type clientStep uint8

const (
	stepDone clientStep = iota
	stepIdentity
	stepSize
	stepRemove
	stepCreate
	stepState
	stepPower
	stepError
)

// Client talks with one switch: Begin says what for, Next is the line to send,
// Take what came back, until Next has no more; Exchange is both. It may be used
// again, also after an error.
type Client struct {
	state hal.BoxState
	goal  hal.BoxGoal
	step  clientStep
	tries int
	from  int // first port of the power query
	stale int // lines passed over
	wait  bool
	err   error
}

// Begin starts on a goal.
func (c *Client) Begin(goal hal.BoxGoal) {
	if goal.Fresh {
		*c = Client{}
	}
	c.goal, c.err, c.tries, c.from = goal, nil, 0, 0
	c.state.Powers = nil
	c.step = stepIdentity
	if c.state.In > 0 {
		c.set()
	}
}

// Result is what the switch said last, and why the goal was not reached: an
// error that matches one of hal's box errors.
func (c *Client) Result() (hal.BoxState, error) { return c.state, c.err }

// Exchange takes a reply, nil for none, and appends what to send.
func (c *Client) Exchange(reply, dst []byte) ([]byte, hal.BoxStep) {
	if reply != nil {
		c.Take(reply)
	}
	if c.wait {
		return dst, hal.BoxWait
	}
	line, ok := c.Next(dst)
	if !ok {
		return line, hal.BoxDone
	}
	return line, hal.BoxSend
}

// set goes to the first command that the goal needs.
func (c *Client) set() {
	switch {
	case c.goal.Only:
		c.step = stepCreate // one command for the whole map
	case len(c.goal.Remove) > 0:
		c.step = stepRemove
	case len(c.goal.Create) > 0:
		c.step = stepCreate
	default:
		c.step = stepState
	}
	for _, p := range append(append([]hal.PortPair{}, c.goal.Create...), c.goal.Remove...) {
		if int(p.In) >= c.state.In || int(p.Out) >= c.state.Out {
			c.fail(fmt.Errorf("scpi: connection %d to %d of a switch of %d by %d: %w", p.In, p.Out, c.state.In, c.state.Out, hal.ErrOutOfRange))
			return
		}
	}
}

func (c *Client) fail(err error) { c.step, c.err = stepDone, err }

// Next appends the line to send, with its newline. ok is false when there is
// nothing more to say. While a line of an older exchange stood where the identity
// should, it is the next line that has it; Exchange knows.
func (c *Client) Next(dst []byte) (line []byte, ok bool) {
	switch c.step {
	case stepDone:
		return dst, false
	case stepIdentity:
		dst = append(dst, "*IDN?"...)
	case stepSize:
		dst = append(dst, ":oxc:swit:size?"...)
	case stepRemove:
		dst = append(dst, ":oxc:swit:conn:sub "...)
		dst = append(appendPairs(dst, c.goal.Remove, c.state.In), ";*OPC?"...)
	case stepCreate:
		verb := "add "
		if c.goal.Only {
			verb = "only "
		}
		dst = append(append(dst, ":oxc:swit:conn:"...), verb...)
		dst = append(appendPairs(dst, c.goal.Create, c.state.In), ";*OPC?"...)
	case stepState:
		dst = append(dst, ":oxc:swit:conn:stat?"...)
	case stepPower:
		var ports []int
		for p := c.from; p < c.from+c.powers(); p++ {
			ports = append(ports, p+1)
		}
		dst = appendList(append(dst, ":pmon:pow? "...), ports)
	case stepError:
		dst = append(dst, ":syst:err?"...)
	}
	return append(dst, '\n'), true
}

// powers is how many ports the next power query asks for.
func (c *Client) powers() int { return min(maxPowerPorts, c.state.In+c.state.Out-c.from) }

// Take takes the line that came back, its newline being optional.
func (c *Client) Take(line []byte) {
	reply := strings.TrimSpace(string(line[:min(len(line), MaxLine)]))
	c.wait = false
	switch c.step {
	case stepDone:
	case stepIdentity:
		c.identity(reply)
	case stepSize:
		c.size(reply)
	case stepRemove, stepCreate:
		if reply != "1" {
			c.fail(bad("%q to *OPC?", reply))
			return
		}
		if c.step == stepRemove && len(c.goal.Create) > 0 {
			c.step = stepCreate
			return
		}
		c.step = stepState
	case stepState:
		c.compare(reply)
	case stepPower:
		powers, err := ParsePowers(reply, c.powers())
		if err != nil {
			c.state.Powers = nil
			c.fail(fmt.Errorf("%w: %w", hal.ErrBoxPowers, err))
			return
		}
		c.state.Powers = append(c.state.Powers, powers...)
		if c.from += len(powers); c.from >= c.state.In+c.state.Out {
			c.step = stepDone
		}
	case stepError:
		c.fail(fmt.Errorf("scpi: %d tries, the switch says %s: %w", c.tries, reply, hal.ErrBoxNotMade))
	}
}

// identity reads "maker,model,serial,version". Of the models, those whose code
// begins with I-OST have no power meters.
func (c *Client) identity(reply string) {
	parts := strings.Split(reply, ",")
	// Two lists of two ports have four parts too.
	if len(parts) != 4 || strings.TrimSpace(parts[1]) == "" || strings.ContainsAny(reply, "()@") {
		if c.stale++; c.stale <= maxStale {
			c.wait = true
			return
		}
		c.fail(bad("identity %q", reply))
		return
	}
	c.stale = 0
	c.state.Identity = reply
	c.state.HasMeters = !strings.HasPrefix(strings.TrimSpace(parts[1]), "I-OST")
	c.step = stepSize
}

func (c *Client) size(reply string) {
	in, out, ok := strings.Cut(reply, ",")
	a, err := strconv.ParseUint(strings.TrimSpace(in), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(out), 10, 16)
	if !ok || err != nil || err2 != nil || a == 0 || b == 0 || a+b > MaxPorts {
		c.fail(bad("size %q", reply))
		return
	}
	c.state.In, c.state.Out = int(a), int(b)
	c.set()
}

// compare is the read-back.
func (c *Client) compare(reply string) {
	state, err := ParseMap(reply, c.state.In, c.state.Out)
	if err != nil {
		c.fail(err)
		return
	}
	c.state.Map = state
	if c.goal.Wrong(state) {
		if c.tries++; c.tries < MaxTries {
			c.set()
		} else {
			c.step = stepError
		}
		return
	}
	c.step = stepDone
	if c.goal.Powers && c.state.HasMeters {
		c.step = stepPower
	}
}
