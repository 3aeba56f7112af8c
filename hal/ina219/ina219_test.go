package ina219

import (
	"bytes"
	"testing"
)

func TestValues(t *testing.T) {
	if v := ShuntMicrovolt(Value([]byte{0x83, 0x00})); v != -320_000 {
		t.Errorf("shunt 0x8300: %d uV, want -320000", v)
	}
	if v := ShuntMicrovolt(0x7D00); v != 320_000 {
		t.Errorf("shunt 0x7D00: %d uV, want 320000", v)
	}
	if v := BusMillivolt(0x1F40<<3 | BusReady); v != 32_000 {
		t.Errorf("bus: %d mV, want 32000; flags are no part of it", v)
	}
	if got := AppendWrite(nil, RegCalibration, 0x5000); !bytes.Equal(got, []byte{5, 0x50, 0}) {
		t.Errorf("write % x", got)
	}
}

func TestTimesAndScales(t *testing.T) {
	for config, want := range map[uint16]int64{ResetConfig: 532, 0: 84, 9 << ShuntADCShift: 1064, 15 << ShuntADCShift: 68_096} { // any order: independent cases
		if got := ConversionMicros(config); got != want {
			t.Errorf("config %#04x: %d us, want %d", config, got, want)
		}
	}
	if got := FullScaleMicrovolt(ResetConfig); got != 320_000 {
		t.Errorf("full scale %d uV after reset, want 320000", got)
	}
}
