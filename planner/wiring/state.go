package wiring

import "slices"

// phase is what a block does next. Only become assigns it.
//
//	             +----------------- next round -----------------+
//	             v                                              |
//	keeping -> descending -> polishing -> pricing --------------'
//	   |  '        |   '--- given up -->  ^  |
//	   |  '--------|-------------|--------'  |
//	   '-----------+-------------+-----------+---> settled
//
// A block whose ports are nearly all in use skips the descent without prices
// and goes from keeping to pricing.
type phase uint8

const (
	keeping    phase = iota // what can stay stays, the rest is inserted
	descending              // places what is missing, ever more eagerly
	polishing               // forces single lost circuits back
	pricing                 // improves the prices of ports
	settled                 // nothing better exists
)

func (p phase) String() string {
	return [...]string{"keeping", "descending", "polishing", "pricing", "settled"}[p]
}

var follows = [...][]phase{
	keeping:    {descending, pricing, settled},
	descending: {polishing, pricing, settled},
	polishing:  {pricing, settled},
	pricing:    {descending, settled},
	settled:    {},
}

func (b *Block) become(next phase) {
	if !slices.Contains(follows[b.phase], next) {
		panic("wiring: invariant: a block never goes from " + b.phase.String() + " to " + next.String())
	}
	b.phase, b.began = next, b.steps
}
