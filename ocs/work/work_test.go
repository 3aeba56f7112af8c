package work

import (
	"testing"

	"ringlight/hal"
)

// Goal: the end of bus work is told to whom it belongs, and to nobody in a later
// life, whatever the caller has put into its byte of the token.
func TestOnlyThisLifesWorkIsMine(t *testing.T) {
	var q Queue
	q.Restart()
	op := &hal.Op{Token: q.Token(7, 0x12_3456)}
	q.Put(3, op)
	out := q.Take(nil)
	if len(out) != 1 || out[0].Bus != 3 || !q.Empty() {
		t.Fatalf("%+v", out)
	}
	out[0].Op.Token |= 0xAB << 56
	if task, n, mine := q.Mine(op); !mine || task != 7 || n != 0x12_3456 {
		t.Errorf("task %d, number %x, mine %v", task, n, mine)
	}
	q.Put(3, &hal.Op{Token: q.Token(7, 1)})
	q.Restart()
	if _, _, mine := q.Mine(op); mine || !q.Empty() {
		t.Errorf("of an earlier life: mine %v, nothing waits: %v", mine, q.Empty())
	}
}
