package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	busrec "ringlight/hal/record"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/solo"
)

// recordedLife is the recording of an agent that starts on a simulated board,
// reads its modules' health, is asked for two paths and sees a chip go.
func recordedLife(t *testing.T) []byte {
	t.Helper()
	hw, err := boardfile.Default(4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	board, err := solo.New(solo.Config{Board: &hw, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	w := board.World()
	cal := known([]*sim.Personality{w.Personality(board.ID(), 0, 0), w.Personality(board.ID(), 0, 1)})
	var raw []byte
	b, err := NewBench(Config{Fabric: "f1", Node: 3, Board: &hw, Calibrations: []*ocs.Calibration{cal}, Session: 77, Seed: 5,
		HealthPeriod: time.Second}, board, func(block []byte) { raw = append(raw, block...) })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []proto.Path{proto.Loopback, proto.External1} {
		if _, err := b.Ask(Ask{Verb: AskPath, Bundle: 0, Path: p}, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	m := hw.Bundles[0].Modules[1]
	if err := w.Inject(board.ID(), sim.Fault{Kind: sim.ChipGone, Bus: m.Slow, Addr: m.Mux}); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(board.Now()+3*time.Second, nil); err != nil {
		t.Fatal(err)
	}
	b.EndRecording()
	return raw
}

// rewrite makes a recording anew with change applied to each entry; false
// leaves an entry out.
func rewrite(t *testing.T, raw []byte, change func(i int, e *busrec.Entry) bool) []byte {
	t.Helper()
	rd, err := busrec.NewReader(raw)
	if err != nil {
		t.Fatal(err)
	}
	out := busrec.Head(rd.Head)
	var w busrec.Writer
	for i := 0; ; i++ {
		e, ok, err := rd.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return append(out, w.Flush()...)
		}
		if change(i, &e) {
			out = append(out, w.Append(&e)...)
		}
	}
}

func TestRecordingIsLivedAgain(t *testing.T) {
	// Goal: the production code, fed with what was recorded, asks for the same
	// bus work to the last byte; and counts the errors that the buses had.
	raw := recordedLife(t)
	res, err := Replay(raw)
	if err != nil || res.Diverged != nil || !res.Compared || res.Lost != 0 {
		t.Fatalf("%v, %+v, %+v", err, res, res.Diverged)
	}
	if res.Node != 3 || res.Ops < 50 || res.Edges < 2 || res.Told < 2 || res.Polls < res.Ops || res.Lived < 2*time.Second {
		t.Errorf("%+v", res)
	}
	nacks := 0
	for _, e := range res.Errors {
		if e.Cause == hal.ErrAddressNACK.Error() {
			nacks += e.Count
		}
	}
	if nacks == 0 {
		t.Errorf("the chip that went is not among the errors: %+v", res.Errors)
	}
	if again, err := Replay(raw); err != nil || again.Ops != res.Ops {
		t.Errorf("the second time: %+v, %v", again, err)
	}
}

func TestImagesAreNotRecorded(t *testing.T) {
	// Goal: of a firmware image a recording has the length and the sum; replay says that it
	// cannot compare what follows.
	image := bytes.Repeat([]byte("a module's firmware"), 1<<18)
	polls := 0
	raw := rewrite(t, recordedLife(t), func(_ int, e *busrec.Entry) bool {
		if e.Kind == busrec.Poll {
			if polls++; polls == 20 {
				*e = entryOf(e.At, &Input{Kind: InFirmware, Line: image}, nil)
			}
		}
		return true
	})
	want := fmt.Sprintf("%d bytes, SHA-256 %x", len(image), sha256.Sum256(image))
	if res, err := Replay(raw); err != nil || res.Compared || res.Diverged != nil || !strings.Contains(res.NotCompared, want) || res.Ops < 50 {
		t.Errorf("%v, %+v", err, res)
	}
}

func TestWhatCannotBeToldStopsAReplay(t *testing.T) {
	// Goal: an input that a recording cannot tell is not left out of it silently.
	polls := 0
	raw := rewrite(t, recordedLife(t), func(_ int, e *busrec.Entry) bool {
		if e.Kind == busrec.Poll {
			if polls++; polls == 20 {
				*e = entryOf(e.At, &Input{Kind: 200}, nil)
			}
		}
		return true
	})
	if _, err := Replay(raw); !errors.Is(err, busrec.ErrFormat) || !strings.Contains(err.Error(), "entry of what 0") {
		t.Errorf("%v", err)
	}
}

func TestFirstDivergenceIsNamed(t *testing.T) {
	// Goal: an op that the agent would not have asked for, and an answer that leads elsewhere are each found, at
	// their place.
	raw := recordedLife(t)
	nth := func(kind busrec.Kind, n int) func(e *busrec.Entry) bool {
		return func(e *busrec.Entry) bool {
			if e.Kind != kind || (kind == busrec.Submit && len(e.Op.Msgs) == 0) {
				return false
			}
			n--
			return n == 0
		}
	}
	at := -1
	is := nth(busrec.Submit, 20)
	changed := rewrite(t, raw, func(i int, e *busrec.Entry) bool {
		if is(e) {
			at = i
			e.Op.Msgs[0].Addr ^= 1
		}
		return true
	})
	if res, err := Replay(changed); err != nil || res.Diverged == nil || int(res.Diverged.Entry) != at {
		t.Errorf("a changed op at %d: %+v, %v", at, res, err)
	}
	is = nth(busrec.Completion, 3)
	hit := false
	changed = rewrite(t, raw, func(i int, e *busrec.Entry) bool {
		if is(e) {
			hit, e.Err = true, hal.ErrAddressNACK
		}
		return true
	})
	if res, err := Replay(changed); !hit || err != nil || res.Diverged == nil {
		t.Errorf("an answer that was another (%v): %+v, %v", hit, res, err)
	}
	is = nth(busrec.Poll, 30)
	changed = rewrite(t, raw, func(i int, e *busrec.Entry) bool {
		if is(e) {
			at = i
			e.Kind, e.Op = busrec.Submit, &hal.Op{Msgs: []hal.Msg{{Addr: 9, W: []byte{1}}}}
		}
		return true
	})
	if res, err := Replay(changed); err != nil || res.Diverged == nil || int(res.Diverged.Entry) != at || !strings.Contains(res.Diverged.Want, "0x9") {
		t.Errorf("an op out of nowhere at %d: %+v, %v", at, res, err)
	}
}

func TestRecordingFromTheMiddleIsNotCompared(t *testing.T) {
	// Goal: without its beginning a recording is counted, not compared, and says
	// why.
	raw := recordedLife(t)
	rd, err := busrec.NewReader(raw)
	if err != nil {
		t.Fatal(err)
	}
	head := busrec.Head(rd.Head)
	rest := raw[len(head):]
	first := 9 + int(rest[1]) + int(rest[2])<<8
	res, err := Replay(append(bytes.Clone(head), rest[first:]...))
	if err != nil || res.Compared || res.Lost == 0 || res.Ops == 0 || !strings.Contains(res.NotCompared, "missing") {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := Replay(raw[:20]); !errors.Is(err, busrec.ErrFormat) {
		t.Errorf("a piece of a head: %v", err)
	}
}

func TestForgedRecordingsAreRefused(t *testing.T) {
	// Goal: a head without a board, or with one that cannot be, and entries that
	// no agent could have lived through, are errors and nothing worse.
	raw := recordedLife(t)
	for _, head := range []string{`{}`, `{"board":{"Bundles":[{}]},"journal":{}}`, `{"board":{"Bundles":[{"Modules":[{}],"LOS":[9,9,9]}]},"journal":{}}`, `[]`,
		`{"board":{"Buses":[]},"calibrations":["AAAA"],"journal":{}}`} {
		if _, err := Replay(busrec.Head([]byte(head))); err == nil {
			t.Errorf("%s passed", head)
		}
	}
	for _, e := range []busrec.Entry{{Kind: busrec.Completion, Seq: 99}, {Kind: busrec.Other, What: 77}, {Kind: busrec.Other, What: 2, Blob: []byte("{")},
		{Kind: busrec.Other, What: 1, Blob: []byte(`{"Kind":99}`)}} {
		forged := rewrite(t, raw, func(i int, at *busrec.Entry) bool {
			if i == 40 {
				e.At = at.At
				*at = e
			}
			return true
		})
		if _, err := Replay(forged); !errors.Is(err, busrec.ErrFormat) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// entries is a block of entries with this body: type, length, body, CRC.
func entries(body []byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte{'E'}, uint32(len(body))), body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte("RLREC\x01"))
	f.Add(busrec.Head([]byte(`{"board":{"Buses":[]},"journal":{}}`)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = Replay(raw)
		// A body of entries alone, so that the fuzzer need not guess check sums.
		_, _ = Replay(append(busrec.Head([]byte(`{"board":{"Buses":[]},"journal":{}}`)), entries(raw)...))
	})
}
