package record

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"ringlight/hal"
)

// sample is one entry of each kind.
func sample() []Entry {
	return []Entry{
		{Kind: Other, At: 5, What: 7, Blob: []byte("packet")},
		{Kind: Poll, At: 5},
		{Kind: Submit, At: 5, Bus: 3, Op: &hal.Op{Class: hal.ClassSafety, Deadline: time.Second, Msgs: []hal.Msg{
			{Addr: 0x70, W: []byte{1}}, {Addr: 0x48, Frame: 3, W: []byte{0, 9}, R: []byte{0, 0}}, {Addr: 1, W: []byte{}, R: []byte{}}}}},
		{Kind: Edge, At: 1000, Edge: hal.Edge{Line: 2, High: true, At: 900, Origin: 850}},
		{Kind: Completion, At: 2 * time.Second, Seq: 0, Start: 6, End: 7, R: [][]byte{{}, {0x19, 0x80}, {}}},
		{Kind: Submit, At: 2 * time.Second, Bus: 4, Seq: 1, Op: &hal.Op{Class: hal.ClassSwitch}},
		{Kind: Completion, At: 3 * time.Second, Seq: 1, Start: 6, End: 7, Msg: 2, R: nil},
	}
}

func encode(t *testing.T, head string, entries []Entry, every int) []byte {
	t.Helper()
	var w Writer
	raw := Head([]byte(head))
	for i := range entries {
		e := entries[i]
		raw = append(raw, w.Append(&e)...)
		if every > 0 && i%every == every-1 {
			raw = append(raw, w.Flush()...)
		}
	}
	return append(raw, w.Flush()...)
}

func decode(raw []byte) (head string, out []Entry, lost uint64, err error) {
	r, err := NewReader(raw)
	if err != nil {
		return "", nil, 0, err
	}
	for {
		e, ok, err := r.Next()
		if !ok {
			return string(r.Head), out, r.Lost(), err
		}
		out = append(out, e)
	}
}

func TestRecordingComesBack(t *testing.T) {
	// Goal: every kind of entry is read as it was written, however the blocks
	// are cut; submits are numbered.
	want := sample()
	for every := range 4 {
		head, got, lost, err := decode(encode(t, `{"a":1}`, want, every))
		if err != nil || head != `{"a":1}` || lost != 0 || len(got) != len(want) {
			t.Fatalf("every %d: %q, %d entries, %d lost, %v", every, head, len(got), lost, err)
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("every %d, entry %d: %+v, want %+v", every, i, got[i], want[i])
			}
		}
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	// Goal: an error comes back with its text and matches its cause and no
	// other, quarantine before what led to it.
	causes := []error{hal.ErrNoDevice, hal.ErrAddressNACK, hal.ErrByteNACK, hal.ErrClockStretch, hal.ErrTimeout, hal.ErrBusStuck, hal.ErrArbitrationLost,
		hal.ErrCRC, hal.ErrOutOfRange, hal.ErrUnsupported, hal.ErrQueueFull, hal.ErrQuarantined, hal.ErrClosed, hal.ErrRelieved, hal.ErrInUse}
	for _, c := range append(causes, errors.New("no cause of ours")) {
		told := fmt.Errorf("bus 3: %w", c)
		if c == hal.ErrQuarantined {
			told = fmt.Errorf("device: %w, last: %w", c, hal.ErrCRC)
		}
		_, got, _, err := decode(encode(t, "{}", []Entry{{Kind: Completion, Err: told}}, 0))
		if err != nil || len(got) != 1 || got[0].Err.Error() != told.Error() {
			t.Fatalf("%v: %v, %v", told, got, err)
		}
		for _, other := range causes {
			if errors.Is(got[0].Err, other) != (other == c) {
				t.Errorf("%v: matches %v: %v", told, other, other != c)
			}
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	// Goal: any flipped bit is an error or, in the type of the last block that
	// is cut off by it, an end; a torn end loses only its block; another
	// version, or another file, is refused.
	raw := encode(t, "{}", sample(), 3)
	_, whole, _, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			bad := bytes.Clone(raw)
			bad[i] ^= 1 << bit
			if _, got, _, err := decode(bad); err == nil && len(got) >= len(whole) {
				t.Fatalf("byte %d bit %d flipped: %d entries and no error", i, bit, len(got))
			}
		}
	}
	for n := len(Magic) + blockFrame + 2; n < len(raw); n++ {
		if _, got, _, err := decode(raw[:n]); err != nil || len(got) >= len(whole) {
			t.Fatalf("cut at %d of %d: %d entries, %v", n, len(raw), len(got), err)
		}
	}
	for _, bad := range []string{"", "RLREC", "RLREC\x02", "journal", Magic, Magic + "E\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if _, err := NewReader([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestRingForgetsTheOldest(t *testing.T) {
	// Goal: a ring stays within its bytes, forgets whole blocks, and what it
	// still has says how much is missing.
	var w Writer
	ring := NewRing(10 * blockBytes)
	const n = 20_000
	for i := range n {
		e := Entry{Kind: Submit, At: time.Duration(i) * time.Millisecond, Op: &hal.Op{Msgs: []hal.Msg{{Addr: 1, W: []byte{byte(i), byte(i >> 8)}}}}}
		if b := w.Append(&e); b != nil {
			ring.Put(b, false)
		}
		if ring.Bytes() > 10*blockBytes {
			t.Fatalf("%d bytes", ring.Bytes())
		}
	}
	ring.Put(w.Flush(), false)
	raw := Head([]byte("{}"))
	for _, b := range ring.Blocks() {
		raw = append(raw, b...)
	}
	_, got, lost, err := decode(raw)
	if err != nil || ring.Lost() == 0 || lost == 0 || lost+uint64(len(got)) != n || w.Entries() != n {
		t.Fatalf("%d entries, %d lost, %d blocks forgotten, %v", len(got), lost, ring.Lost(), err)
	}
	last := got[len(got)-1]
	if first := got[0]; first.Seq != lost || first.At != time.Duration(lost)*time.Millisecond || last.Seq != n-1 {
		t.Errorf("begins with op %d at %v after %d lost, ends with %d", first.Seq, first.At, lost, last.Seq)
	}
}

// Goal: what is put in bulk displaces no more than its share of the rest, and what is
// lost in between is counted.
func TestRingKeepsWhatIsNotBulk(t *testing.T) {
	var w Writer
	ring := NewRing(16 * blockBytes)
	fill := func(blocks int, bulk bool) {
		for blocks > 0 {
			if b := w.Append(&Entry{Kind: Submit, At: time.Duration(w.Entries()), Op: &hal.Op{Msgs: []hal.Msg{{Addr: 1, W: make([]byte, 100)}}}}); b != nil {
				ring.Put(b, bulk)
				blocks--
			}
		}
	}
	fill(10, false)
	fill(1000, true)
	if ring.bulky == 0 || ring.bytes > ring.limit {
		t.Errorf("%d bytes in bulk, %d in all, of %d", ring.bulky, ring.bytes, ring.limit)
	}
	raw := Head([]byte("{}"))
	for _, b := range ring.Blocks() {
		raw = append(raw, b...)
	}
	_, got, lost, err := decode(raw)
	if err != nil || got[0].Seq != 0 || lost == 0 || lost+uint64(len(got)) != w.Entries() {
		t.Errorf("%d entries, %d lost, begins with op %d, %v", len(got), lost, got[0].Seq, err)
	}
	fill(1000, false)
	if ring.bulky != 0 || ring.bytes > ring.limit || len(ring.Blocks()) != len(ring.bulk) {
		t.Errorf("%d bytes in bulk, %d in all", ring.bulky, ring.bytes)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(Head([]byte("{}")))
	var w Writer
	raw := Head([]byte("{}"))
	for _, e := range sample() {
		raw = append(raw, w.Append(&e)...)
	}
	f.Add(append(raw, w.Flush()...))
	// A body alone, so that the fuzzer need not guess check sums.
	f.Fuzz(func(t *testing.T, body []byte) {
		decode(body)
		_, got, _, err := decode(append(Head(nil), block(blockEntries, body)...))
		if err != nil {
			return
		}
		var w Writer
		again := Head(nil)
		for i := range got {
			e := got[i]
			again = append(again, w.Append(&e)...)
		}
		_, twice, _, err := decode(append(again, w.Flush()...))
		if err != nil || len(twice) != len(got) {
			t.Fatalf("%d entries, written again %d, %v", len(got), len(twice), err)
		}
	})
}
