package planner

import "ringlight/planner/hbd"

// What breaks next, tried on a copy; see package hbd. Switches are counted by what they
// carry; see package core.
type (
	Outlook = hbd.Outlook
	Loss    = hbd.Loss
)

// LookAhead copies what is committed, so that every node and fibre can be lost once on
// the copy, by whoever asked and in his own time. Some bytes a node are copied;
// a try costs some 50 us however large the fabric is, so a Step must not try
// more than a few.
func LookAhead(p *Planner) *Outlook { return p.rings.Outlook() }
