package pca953x

import (
	"bytes"
	"testing"

	"ringlight/hal"
)

// Goal: registers lie where the kernel's driver has them: function shifted by the
// number of bits that ports take, bit 7 to go on with 24 pins.
func TestMessages(t *testing.T) {
	one, two, three := Of(hal.TCA9534), Of(hal.PCA9535), Of(hal.PCAL6524)
	for _, tc := range []struct{ got, want []byte }{
		{one.AppendWrite(nil, Config, 0, 0), []byte{3, 0}},
		{one.AppendRead(nil, Input), []byte{0}},
		{two.AppendWrite(nil, Output, 1, 0xC0), []byte{3, 0xC0}},
		{two.AppendWriteAll(nil, Config, 0x1234), []byte{6, 0x34, 0x12}},
		{two.AppendRead(nil, Input), []byte{0}},
		{three.AppendWrite(nil, Output, 2, 0xC0), []byte{6, 0xC0}},
		{three.AppendWriteAll(nil, Config, 0x563412), []byte{0x8c, 0x12, 0x34, 0x56}},
		{three.AppendRead(nil, Output), []byte{0x84}},
	} {
		if !bytes.Equal(tc.got, tc.want) {
			t.Errorf("message % x, want % x", tc.got, tc.want)
		}
	}
	if v := two.Value([]byte{0x34, 0x12}); v != 0x1234 {
		t.Errorf("two ports %#x", v)
	}
	if v := three.Value([]byte{1, 2, 3}); v != 0x030201 {
		t.Errorf("three ports %#x", v)
	}
}

// Bytes of one message must never leave their function, and stay at their port where
// nobody asked to go on.
func TestBytesStayInTheirFunction(t *testing.T) {
	for _, part := range []hal.Part{hal.TCA9534, hal.PCA9535, hal.PCAL6524} {
		c := Of(part)
		for f := range byte(numFuncs) {
			for port := range c.Ports {
				for _, cmd := range []byte{c.Reg(f, port), c.goOn | c.Reg(f, port)} {
					function, next := c.At(c.Next(cmd))
					want := (port + 1) % c.Ports
					if c.goOn != 0 && cmd&c.goOn == 0 {
						want = port
					}
					if function != f || next != want {
						t.Errorf("%v: after %#02x comes port %d of function %d, want %d of %d", part, cmd, next, function, want, f)
					}
				}
			}
		}
	}
}
