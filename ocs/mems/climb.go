package mems

import "ringlight/proto"

// climb brings a circuit's loss down by moving its four axes one after the
// other: a step to one side, a step to the other, and on to the lowest point of
// the parabola through the three. A Gaussian beam's loss in dB is a parabola in
// every angle, so what three points tell is right however far off they are; the
// axes pull at each other a little, so that more than one sweep is needed.
//
// The algorithm asks and its caller moves and measures. The step to the next
// axis is taken together with the one to the lowest point, whose loss is
// foretold: two moves an axis, and one at the end of a sweep to look.
type climb struct {
	base  [4]int16 // the best that is known
	low   proto.MilliDBm
	axis  int
	leg   climbLeg
	right proto.MilliDBm // measured a step to the right
	step  int16
	moves int
}

type climbLeg uint8

const (
	climbRight climbLeg = iota // the next sample is a step to the right
	climbLeft
	climbCheck // at the end of a sweep, on the base itself
)

// Steps in codes; a code is about 16 microradian. chosen: a step costs 0.2 dB
// at the bottom, ten times the noise of a monitor; a leap goes as far as
// mirrors age and creep, and stays on the slope that the three points saw.
const (
	climbStep = 16
	climbLeap = 10 * climbStep
)

// MaxClimbMoves bounds one tuning. docs/board.md, MEMS board.
const MaxClimbMoves = 40

// start begins at a drive whose loss was measured, and returns where to look
// first.
func (c *climb) start(drive [4]int16, loss proto.MilliDBm) [4]int16 {
	*c = climb{base: drive, low: loss, step: climbStep}
	return c.probe(c.step)
}

func (c *climb) probe(by int16) [4]int16 {
	d := c.base
	d[c.axis] += by
	c.moves++
	return d
}

// next takes the loss at the drive last asked for and returns the next. checked
// says that a sweep is over, the loss being that of base; sweep begins another.
func (c *climb) next(loss proto.MilliDBm) (drive [4]int16, checked bool) {
	switch c.leg {
	case climbRight:
		c.right, c.leg = loss, climbLeft
		return c.probe(-c.step), false
	case climbLeft:
		c.leap(loss)
		if c.axis++; c.axis < len(c.base) {
			c.leg = climbRight
			return c.probe(c.step), false
		}
		c.axis, c.leg = 0, climbCheck
		c.moves++
		return c.base, false
	}
	c.low = loss
	return c.base, true
}

// sweepMoves is what a sweep of all four axes takes.
const sweepMoves = 2*4 + 1

// sweep begins the next one, or reports that MaxClimbMoves do not allow it.
func (c *climb) sweep() (drive [4]int16, ok bool) {
	if c.moves+sweepMoves > MaxClimbMoves {
		return c.base, false
	}
	c.leg = climbRight
	return c.probe(c.step), true
}

// leap moves base to the lowest point of an axis.
func (c *climb) leap(left proto.MilliDBm) {
	l, m, r := int64(left), int64(c.low), int64(c.right)
	bend, slope := l+r-2*m, r-l // 2 c h^2 and 2 g h
	step := int64(c.step)
	var by int64
	switch {
	case bend > 0:
		// -g/2c in whole codes, rounded.
		by = -slope * step
		if by < 0 {
			by -= bend
		} else {
			by += bend
		}
		by /= 2 * bend
		by = min(max(by, -climbLeap), climbLeap)
	case slope > 0: // noise, or a flank that is no parabola: go down it
		by = -2 * step
	case slope < 0:
		by = 2 * step
	}
	c.base[c.axis] += int16(by)
	// L(by) = m + slope/2h by + bend/2h^2 by^2
	c.low = proto.MilliDBm(m + (slope*step*by+bend*by*by)/(2*step*step))
}
