package live

import (
	"bytes"
	"testing"

	"ringlight/hal"
	"ringlight/sim"
)

// Goal: a datagram of light comes back whole, and nothing else is taken for
// one. Method: a golden, and twins of it: short, long, each bit of it flipped.
func TestLightDatagram(t *testing.T) {
	d := datagram{Magic: lightMagic, Life: 7, Seq: 1 << 40, Bundle: 1, Path: hal.LOSExternal2}
	for i := range d.Light {
		for l := range d.Light[i] {
			d.Light[i][l] = uint32(1000*i + l)
		}
	}
	raw := d.append(nil)
	if len(raw) != lightBytes {
		t.Fatalf("%d bytes, want %d", len(raw), lightBytes)
	}
	var got datagram
	if err := got.parse(raw); err != nil || got != d {
		t.Fatalf("%+v, %v", got, err)
	}
	twins := [][]byte{nil, raw[:len(raw)-1], append(bytes.Clone(raw), 0)}
	for bit := range 8 * len(raw) {
		b := bytes.Clone(raw)
		b[bit/8] ^= 1 << (bit % 8)
		twins = append(twins, b)
	}
	for i, b := range twins {
		if got.parse(b) == nil {
			t.Errorf("twin %d was taken for light", i)
		}
	}
}

func FuzzLightDatagram(f *testing.F) {
	f.Add((&datagram{Magic: lightMagic}).append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var d datagram
		if d.parse(in) == nil && !bytes.Equal(d.append(nil), in) {
			t.Error("another datagram comes back")
		}
	})
}

// Goal: what is written as a lead is what is led, and what is not one is
// refused. Method: a table.
func TestParseLead(t *testing.T) {
	l, err := ParseLead("0/external1=127.0.0.1:9001/1/external2/crossed")
	want := Lead{Port: sim.Port{Path: hal.LOSExternal1}, Far: sim.Port{Bundle: 1, Path: hal.LOSExternal2}, Addr: "127.0.0.1:9001", Crossed: true}
	if err != nil || l != want {
		t.Errorf("%+v, %v", l, err)
	}
	for _, s := range []string{"", "0/external1", "0/external1=x/1/external1", "0/loopback=127.0.0.1:1/0/external1", "0/external1=127.0.0.1:1/0/dark", "x/external1=127.0.0.1:1/0/external1"} {
		if _, err := ParseLead(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
