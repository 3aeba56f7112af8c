package bench

import (
	"fmt"
	"slices"
	"sort"
)

// StepKind is what a person does with plugs.
type StepKind string

// Kinds of steps.
const (
	StepSwap StepKind = "swap" // exchange the plugs at two ports
	StepMove StepKind = "move" // take the plug at From and put it into To, which is free
	StepLay  StepKind = "lay"  // join two free ports by a new fibre
	StepPull StepKind = "pull" // take a fibre out
)

// Step is one act at the patch panel.
type Step struct {
	Kind StepKind `json:"kind"`
	A    Port     `json:"a"`
	B    Port     `json:"b"`
}

func (s Step) String() string {
	switch s.Kind {
	case StepSwap:
		return fmt.Sprintf("swap the plugs at %v and %v", s.A, s.B)
	case StepMove:
		return fmt.Sprintf("move the plug at %v to %v", s.A, s.B)
	case StepLay:
		return fmt.Sprintf("lay a fibre from %v to %v", s.A, s.B)
	}
	return fmt.Sprintf("take out the fibre from %v to %v", s.A, s.B)
}

// swapsOf is a shortest list of steps that makes the expected fibres out of the
// found ones. Draw both as edges between ports: every port has at most one of
// each, so they form cycles and chains. A step changes two plugs; it splits at
// most one cycle in two, so a cycle of k found fibres takes k-1 swaps at
// least, and joining the ends of one expected fibre after the other takes no
// more. On a chain each step finishes one expected fibre, too; fibres that
// nobody expects and whose both ends are free to stay are taken out last.
func swapsOf(found, expected []Fibre) []Step {
	at := map[Port]Port{}
	for _, f := range found {
		at[f.A], at[f.B] = f.B, f.A
	}
	steps := []Step{}
	join := func(a, b Port) {
		delete(at, at[a])
		delete(at, at[b])
		at[a], at[b] = b, a
	}
	// Ends of chains first: there a plug is moved into a free port, and what it
	// leaves free is the end of the rest.
	todo := slices.Clone(expected)
	for len(todo) > 0 {
		best, rank := 0, 9
		for i, f := range todo {
			if r := rankOf(at, f); r < rank {
				best, rank = i, r
			}
		}
		f := todo[best]
		todo = slices.Delete(todo, best, best+1)
		x, hasX := at[f.A]
		y, hasY := at[f.B]
		switch {
		case hasX && x == f.B:
		case hasX && hasY: // x's plug goes to B, B's to x: x and y are joined
			steps = append(steps, Step{StepSwap, x, f.B})
			join(f.A, f.B)
			at[x], at[y] = y, x
		case hasX:
			steps = append(steps, Step{StepMove, x, f.B})
			join(f.A, f.B)
		case hasY:
			steps = append(steps, Step{StepMove, y, f.A})
			join(f.A, f.B)
		default:
			steps = append(steps, Step{StepLay, f.A, f.B})
			join(f.A, f.B)
		}
	}
	var left []Fibre
	for a, b := range at { // any order: sorted below
		if a.compare(b) < 0 && !slices.Contains(expected, Fibre{a, b}) && !slices.Contains(expected, Fibre{b, a}) {
			left = append(left, Fibre{a, b})
		}
	}
	sort.Slice(left, func(i, j int) bool { return left[i].A.compare(left[j].A) < 0 })
	for _, f := range left {
		steps = append(steps, Step{StepPull, f.A, f.B})
	}
	return steps
}

// rankOf orders what is to be joined: what is joined, then what takes a plug to
// a free port, then swaps, and new fibres when nothing else is left.
func rankOf(at map[Port]Port, f Fibre) int {
	x, hasX := at[f.A]
	_, hasY := at[f.B]
	switch {
	case hasX && x == f.B:
		return 0
	case hasX != hasY:
		return 1
	case hasX:
		return 2
	}
	return 3
}
