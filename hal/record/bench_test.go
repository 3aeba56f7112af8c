package record

import (
	"testing"
	"time"

	"ringlight/hal"
)

// BenchmarkAnOpAndItsPolls is what the recorder costs an agent for one op with
// its completion and four polls.
func BenchmarkAnOpAndItsPolls(b *testing.B) {
	var w Writer
	ring := NewRing(DefaultRing)
	op := &hal.Op{Class: hal.ClassHousekeeping, Msgs: []hal.Msg{{Addr: 0x70, W: []byte{1}}, {Addr: 0x48, W: []byte{0}, R: make([]byte, 2)}}}
	replies := [][]byte{nil, {0x19, 0x80}}
	bytes := 0
	put := func(e Entry) {
		if full := w.Append(&e); full != nil {
			ring.Put(full, false)
			bytes += len(full)
		}
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		at := time.Duration(n) * time.Millisecond
		put(Entry{Kind: Submit, At: at, Bus: 4, Op: op})
		for range 4 {
			put(Entry{Kind: Poll, At: at})
		}
		put(Entry{Kind: Completion, At: at, Seq: uint64(n), Start: at, End: at, R: replies})
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/op-recorded")
}
