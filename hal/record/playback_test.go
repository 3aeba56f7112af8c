package record

import (
	"fmt"
	"reflect"
	"testing"

	"periph.io/x/conn/v3/conntest"
	"periph.io/x/conn/v3/i2c/i2ctest"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spitest"

	"ringlight/hal"
)

func reader(t *testing.T, raw []byte) *Reader {
	t.Helper()
	r, err := NewReader(raw)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordingsOfPeriphComeAndGo(t *testing.T) {
	// Goal: what periph's recorders wrote is a recording of ours, and comes back the same,
	// so that its playback is content.
	ops := []i2ctest.IO{{Addr: 0x48, W: []byte{0}, R: []byte{0x19, 0x80}}, {Addr: 0x50, W: []byte{1, 2}}, {Addr: 0x50, R: []byte{9}}}
	theirs := &i2ctest.Record{Bus: &i2ctest.Playback{Ops: ops}}
	for _, op := range ops {
		if err := theirs.Tx(op.Addr, op.W, make([]byte, len(op.R))); err != nil {
			t.Fatal(err)
		}
	}
	got, failed, err := I2C(reader(t, Played(4, theirs.Ops)), 4)
	if err != nil || failed != 0 || !reflect.DeepEqual(got, ops) {
		t.Errorf("%v, %d failed, %v", got, failed, err)
	}
	if none, _, err := I2C(reader(t, Played(4, ops)), 3); len(none) != 0 || err != nil {
		t.Errorf("another bus: %v, %v", none, err)
	}
}

func TestTransfersInTheirOrder(t *testing.T) {
	// Goal: a playback has what one bus carried, in the order in which it was carried and
	// not submitted, without what failed, which is counted.
	var w Writer
	raw := Head([]byte("{}"))
	put := func(e Entry) { raw = append(raw, w.Append(&e)...) }
	op := func(addrs ...uint16) *hal.Op {
		o := &hal.Op{}
		for _, a := range addrs {
			o.Msgs = append(o.Msgs, hal.Msg{Addr: a, W: []byte{byte(a)}, R: make([]byte, 1)})
		}
		return o
	}
	put(Entry{Kind: Submit, Bus: 1, Op: op(0x10)})
	put(Entry{Kind: Submit, Bus: 2, Op: op(0x66)})
	put(Entry{Kind: Submit, Bus: 1, Op: op(0x11, 0x12, 0x13)})
	put(Entry{Kind: Completion, Seq: 2, Start: 5, End: 9, Msg: 1, Err: hal.ErrAddressNACK, R: [][]byte{{0xa1}, {0}, {0}}})
	put(Entry{Kind: Completion, Seq: 1, Start: 6, End: 9, R: [][]byte{{0xa6}}})
	put(Entry{Kind: Completion, Seq: 0, Start: 2, End: 4, R: [][]byte{{0xa0}}})
	ops, failed, err := I2C(reader(t, append(raw, w.Flush()...)), 1)
	want := []i2ctest.IO{{Addr: 0x10, W: []byte{0x10}, R: []byte{0xa0}}, {Addr: 0x11, W: []byte{0x11}, R: []byte{0xa1}}}
	if err != nil || failed != 2 || !reflect.DeepEqual(ops, want) {
		t.Errorf("%v, %d failed, %v", ops, failed, err)
	}
}

func TestFramesOfAChipSelect(t *testing.T) {
	// Goal: frames of one select are what an spitest.Playback wants, one by one.
	ops := []conntest.IO{{W: []byte{1, 2, 3}, R: []byte{4, 5, 6}}, {W: []byte{7, 8, 9}}}
	raw, err := PlayedSPI(3, 2, ops)
	if err != nil {
		t.Fatal(err)
	}
	if none, _, err := SPI(reader(t, raw), 3, 1); len(none) != 0 || err != nil {
		t.Errorf("another select: %v, %v", none, err)
	}
	got, failed, err := SPI(reader(t, raw), 3, 2)
	if err != nil || failed != 0 || !reflect.DeepEqual(got, ops) {
		t.Fatalf("%v, %d failed, %v", got, failed, err)
	}
	p := &spitest.Playback{Playback: conntest.Playback{Ops: got}}
	c, err := p.Connect(physic.MegaHertz, spi.Mode0, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if err := c.Tx(op.W, make([]byte, len(op.R))); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []conntest.IO{{}, {W: make([]byte, 256)}, {W: []byte{1}, R: []byte{1, 2}}} {
		if _, err := PlayedSPI(3, 2, []conntest.IO{bad}); err == nil {
			t.Errorf("%s was taken", fmt.Sprint(bad))
		}
	}
}
