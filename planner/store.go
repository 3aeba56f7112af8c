package planner

import (
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Record is one small entry of the store. A nil Value deletes it.
type Record struct {
	Key   string
	Value []byte
}

// State is the content of a store, sorted by key.
type State []Record

// Start makes a Config from what a store holds and raises the term. f is the
// fabric asked for; nil takes the stored one, else the default. The shell
// writes the returned records before it makes the planner. freshID becomes
// the planner's id when the store has none.
func Start(st State, f *fabric.Fabric, freshID uint64) (Config, []Record, error) {
	panic("being written")
}

// Overview is what a shell shows or waits for.
type Overview struct {
	Term           proto.Term
	Generation     proto.Generation // committed last
	Rings          int
	InService      int
	Degraded       int
	Spares         int // usable nodes in no ring
	Online         int
	Pending        int  // touched nodes not yet where they should be
	Quiet          bool // nothing planned, prepared, persisted or waited for
	LinksTotal     int
	LinksConfirmed int
	EventsSeen     uint64
	EventGaps      uint64
}
