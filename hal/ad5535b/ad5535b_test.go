package ad5535b_test

import (
	"bytes"
	"errors"
	"testing"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
)

// Golden frames: five bits of address, fourteen of code, five of nothing.
func TestGoldenFrames(t *testing.T) {
	for _, c := range []struct {
		channel int
		code    uint16
		want    []byte
	}{
		{0, 0, []byte{0x00, 0x00, 0x00}},
		{0, 1, []byte{0x00, 0x00, 0x20}},
		{0, 0x3FFF, []byte{0x07, 0xFF, 0xE0}},
		{1, 0, []byte{0x08, 0x00, 0x00}},
		{31, 0x3FFF, []byte{0xFF, 0xFF, 0xE0}},
		{21, 0x1A5C, []byte{0xAB, 0x4B, 0x80}},
	} {
		got := ad5535b.AppendWrite(nil, c.channel, c.code)
		if !bytes.Equal(got, c.want) {
			t.Errorf("channel %d code %#x: % x, want % x", c.channel, c.code, got, c.want)
		}
		// Whatever follows the nineteenth bit is ignored.
		for _, tail := range []byte{0, 0x1F} {
			frame := append(bytes.Clone(got), 0xFF)
			frame[2] |= tail
			ch, code, err := ad5535b.Decode(frame)
			if err != nil || ch != c.channel || code != c.code {
				t.Errorf("% x: channel %d code %#x, %v", frame, ch, code, err)
			}
		}
	}
}

// Negative twins: cut frames move nothing, and no driver gets a frame for what
// the chip does not have.
func TestRefusals(t *testing.T) {
	for _, frame := range [][]byte{nil, {0x08}, {0xFF, 0xFF}} {
		if _, _, err := ad5535b.Decode(frame); !errors.Is(err, ad5535b.ErrShort) || !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("% x: %v", frame, err)
		}
	}
	for _, c := range []struct {
		channel int
		code    uint16
	}{{-1, 0}, {32, 0}, {0, 0x4000}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("channel %d code %#x was built", c.channel, c.code)
				}
			}()
			ad5535b.AppendWrite(nil, c.channel, c.code)
		}()
	}
}

func TestVolts(t *testing.T) {
	for _, c := range []struct {
		code      uint16
		reference int64
		want      int64
	}{{0, 4000, 0}, {1 << 13, 4000, 100_000_000}, {1 << 13, 1000, 25_000_000}, {0x3FFF, 4000, 199_987_792}} {
		if got := ad5535b.Microvolt(c.code, c.reference); got != c.want {
			t.Errorf("code %d at %d mV: %d, want %d", c.code, c.reference, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0xAB, 0x4B, 0x80})
	f.Add([]byte{0xAB})
	f.Fuzz(func(t *testing.T, frame []byte) {
		ch, code, err := ad5535b.Decode(frame)
		if err != nil {
			return
		}
		again := ad5535b.AppendWrite(nil, ch, code)
		if !bytes.Equal(again[:2], frame[:2]) || again[2] != frame[2]&0xE0 {
			t.Errorf("% x became % x", frame, again)
		}
	})
}
