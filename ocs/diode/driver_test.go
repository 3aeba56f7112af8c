package diode

import (
	"testing"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
)

// toy is an ADC with a driver of its own, whose codes are bytes in the order of channels.
type toy struct{ Driver }

func (toy) Ask(w []byte, channels []uint8, _ byte) ([]byte, int) { return append(w, 0x77), Channels }

func (toy) Codes(block, reply []byte, channels []uint8) {
	for i, ch := range channels {
		block[2*i], block[2*i+1] = 0, reply[ch]
	}
}

func TestAnADCIsAddedWithItsDriver(t *testing.T) {
	// Goal: an ADC that nobody knew is read through the driver that it was added with, and
	// one that is like another through that one's.
	data := hal.PartData{Name: "toy8", Role: hal.RoleADC, Bus: hal.I2C, MaxClock: physic.MegaHertz, FirstAddr: 8, LastAddr: 9, Channels: Channels}
	part, err := Add(data, toy{})
	if err != nil {
		t.Fatal(err)
	}
	m := hal.Module{Diodes: part, Guard: 8}
	var x Reading
	msg := x.Ask(Of(&m), Guard, hal.GuardTap1, 2, 0)
	if msg.Addr != 8 || len(msg.W) != 1 || msg.W[0] != 0x77 || len(msg.R) != Channels {
		t.Fatalf("%+v", msg)
	}
	copy(msg.R, []byte{0, 1, 2, 3, 4, 5, 6, 7})
	if b := x.Block(); len(b) != 4 || Code(b, 0) != 6<<8 || Code(b, 1) != 7<<8 {
		t.Errorf("% x", b)
	}
	if _, err := Add(data, toy{}); err == nil {
		t.Error("twice")
	}
	data.Name, data.Channels = "toy4", 4
	if _, err := Add(data, toy{}); err == nil {
		t.Error("half an ADC")
	}
	data.Name, data.Channels, data.Like = "toy7138", Channels, hal.ADS7138
	if part, err = hal.AddPart(data); err != nil {
		t.Fatal(err)
	}
	m.Diodes = part
	if msg = x.Ask(Of(&m), Guard, 0, 1, 0); len(msg.W) == 1 {
		t.Errorf("%+v is not that of an ADS7138", msg)
	}
}
