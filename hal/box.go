package hal

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// PortPair is a connection of a switch box: ports of its input and its output
// side, both counted from 0. How a dialect names them is the dialect's.
type PortPair struct{ In, Out uint16 }

// BoxGoal is what a client of a box is to bring about before it reads back.
type BoxGoal struct {
	Only   bool       // remove everything that Create does not name
	Remove []PortPair // first
	Create []PortPair // then
	Powers bool       // read the power meters too
	// Block and Free are ports to be held off, and to be held off no more, of the inputs
	// and then of the outputs.
	Block, Free []int
	// Fresh says that the connection is new: nobody is logged in, and it may
	// lead to another box.
	Fresh bool
}

// BoxStep is what the client of a box wants next.
type BoxStep uint8

const (
	BoxDone BoxStep = iota // nothing: the result is there
	BoxSend                // this to be sent, and what comes back
	BoxWait                // more of what comes back
)

// BoxState is what a box said it is. Powers are in thousandths of a dBm, of the
// inputs and then of the outputs; nil: the box has no meters, or was not asked.
type BoxState struct {
	In, Out int
	Map     []PortPair // in the order of the inputs
	Stale   []PortPair // that the box has in its list, and knows that it does not make
	// Lights are what a box without meters says of the connections of its map itself;
	// nil: it says nothing.
	Lights    map[PortPair]BoxLight
	Powers    []int32
	Identity  string
	HasMeters bool
	Shutters  bool  // ports can be held off
	Blocked   []int // of those that the goal names, which are
	// Refused is what the box said to connections that it did not make or take away.
	Refused map[PortPair]error
	Alarms  []BoxAlarm // that stand, in the order of their text
}

// BoxLight is a box's own word for the light of a connection.
type BoxLight struct {
	Text                 string
	Lit, Tuning, Blocked bool  // none of them: it has failed
	MilliDB              int32 // that it loses; 0: not told
}

// Failed tells that there is no light where there should be, and none to be waited for.
func (l BoxLight) Failed() bool { return !l.Lit && !l.Tuning && !l.Blocked }

// BoxAlarm is what a box says of itself unasked, in its own words.
type BoxAlarm struct {
	Text  string
	Grave bool // not of the minor ones
}

// WrongPorts are those of a goal's that are not as it has them, by which are blocked.
func (g *BoxGoal) WrongPorts(blocked []int) (block, free []int) {
	is := func(p int) bool { return slices.Contains(blocked, p) }
	return slices.DeleteFunc(slices.Clone(g.Block), is), slices.DeleteFunc(slices.Clone(g.Free), func(p int) bool { return !is(p) })
}

// What a box can do wrong, besides what its transport does.
var (
	ErrBoxReply   = errors.New("reply is not what the command asked for")
	ErrBoxDenied  = errors.New("box denied the command")
	ErrBoxPowers  = errors.New("box does not say what light its ports have") // all else is known
	ErrBoxNotMade = errors.New("box reports connections other than those that were set")
)

// ParseMilli reads a power such as "-12.34", of at most three places, in
// thousandths.
func ParseMilli(s string) (milli int32, ok bool) {
	body, neg := strings.CutPrefix(s, "-")
	whole, part, _ := strings.Cut(body, ".")
	for len(part) < 3 {
		part += "0"
	}
	n, err := strconv.ParseUint(whole, 10, 16)
	m, err2 := strconv.ParseUint(part, 10, 16)
	if err != nil || err2 != nil || len(part) > 3 || n > 999 {
		return 0, false
	}
	if milli = int32(n*1000 + m); neg {
		milli = -milli
	}
	return milli, true
}
