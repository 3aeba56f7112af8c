package ad5676

import (
	"bytes"
	"errors"
	"testing"
)

// Goal: every command's frame is the golden one and is taken apart again; its
// twins, cut short, run on, of a reserved command or channel, are refused.
// Method: a table of golden frames with both directions.
func TestGoldenFrames(t *testing.T) {
	for _, tc := range []struct {
		golden  []byte
		cmd     byte
		channel int
		value   uint16
	}{
		{[]byte{0x00, 0x00, 0x00}, CmdNoop, 0, 0},
		{[]byte{0x15, 0xAB, 0xCD}, CmdInput, 5, 0xABCD},
		{[]byte{0x20, 0x00, 0xFF}, CmdUpdate, 0, AllChannels},
		{[]byte{0x37, 0x12, 0x34}, CmdBoth, 7, 0x1234},
		{[]byte{0x40, 0xC0, 0x01}, CmdPower, 0, 0xC001},
		{[]byte{0x50, 0x00, 0x0F}, CmdMask, 0, 0x000F},
		{[]byte{0x60, 0x00, 0x00}, CmdReset, 0, 0},
		{[]byte{0x70, 0x00, 0x01}, CmdReference, 0, ReferenceOff},
		{[]byte{0x80, 0x00, 0x01}, CmdDaisy, 0, 1},
		{[]byte{0x93, 0x00, 0x00}, CmdReadback, 3, 0},
		{[]byte{0xA0, 0x12, 0x34}, CmdAllInputs, 0, 0x1234},
		{[]byte{0xB0, 0x12, 0x34}, CmdAllBoth, 0, 0x1234},
	} {
		if built := AppendWrite(nil, tc.cmd|byte(tc.channel), tc.value); !bytes.Equal(built, tc.golden) {
			t.Errorf("built % x, golden % x", built, tc.golden)
		}
		cmd, channel, value, err := Parse(tc.golden)
		if err != nil || cmd != tc.cmd || channel != tc.channel || value != tc.value {
			t.Errorf("% x: command %#x channel %d value %#x, %v", tc.golden, cmd, channel, value, err)
		}
		for _, twin := range [][]byte{tc.golden[:2], nil, append(bytes.Clone(tc.golden), 0)} {
			if _, _, _, err := Parse(twin); !errors.Is(err, errFrame) {
				t.Errorf("% x: %v", twin, err)
			}
		}
	}
	for _, first := range []byte{0xC0, 0xD5, 0xF0} {
		if _, _, _, err := Parse([]byte{first, 0, 0}); !errors.Is(err, errCommand) {
			t.Errorf("a reserved command %#x: %v", first, err)
		}
	}
	for _, first := range []byte{CmdInput | 8, CmdBoth | 15, CmdReadback | 9} {
		if _, _, _, err := Parse([]byte{first, 0, 0}); !errors.Is(err, errChannel) {
			t.Errorf("channel of %#x: %v", first, err)
		}
	}
	if got := AppendRead([]byte{9}, 6); !bytes.Equal(got, []byte{9, 0x96, 0, 0, 0, 0, 0}) {
		t.Errorf("a readback is % x", got)
	}
	for channel, want := range []uint16{1, 0, 0, 0, 0, 0, 0, 3} {
		if got := Power(0xC001, channel); got != want {
			t.Errorf("power of channel %d: %d, want %d", channel, got, want)
		}
	}
}

// FuzzParse must not panic, and what it accepts must be built to the same frame.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x15, 0x12, 0x34})
	f.Add([]byte{0x93, 0, 0})
	f.Fuzz(func(t *testing.T, frame []byte) {
		cmd, channel, value, err := Parse(frame)
		if err != nil {
			return
		}
		if got := AppendWrite(nil, cmd|byte(channel), value); !bytes.Equal(got, frame) {
			t.Errorf("% x comes back as % x", frame, got)
		}
	})
}
