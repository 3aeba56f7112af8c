package mems_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/ocs/stored"
)

// Losses are keyed by path, frequency and temperature.
func TestFactoryLoss(t *testing.T) {
	f := &mems.Factory{Ports: 2, Losses: []mems.Losses{
		{MilliTHz: 193_100, Celsius: 20, MilliDB: []uint16{1500, 1600, 1700, 1800}},
		{MilliTHz: 193_100, Celsius: 60, MilliDB: []uint16{1700, 1600, 1900, 1600}},
		{MilliTHz: 230_000, Celsius: 40, MilliDB: []uint16{2500, 2600, 2700, 2800}},
	}}
	for _, c := range []struct {
		pair     circuit.Pair
		milliTHz int32
		celsius  int32
		want     int32
	}{
		{circuit.Pair{A: 0, B: 0}, 193_100, 20, 1500},
		{circuit.Pair{A: 0, B: 0}, 193_100, 30, 1550},
		{circuit.Pair{A: 1, B: 1}, 193_400, 50, 1650},
		{circuit.Pair{A: 1, B: 0}, 193_100, 10, 1700},
		{circuit.Pair{A: 1, B: 0}, 193_100, 75, 1900},
		{circuit.Pair{A: 0, B: 1}, 228_000, 10, 2600},
		{circuit.Pair{A: 0, B: 1}, 228_000, 70, 2600},
	} {
		if got := f.Loss(c.pair, c.milliTHz, c.celsius*1000); int32(got) != c.want {
			t.Errorf("%v at %d mTHz and %d C: %d, want %d", c.pair, c.milliTHz, c.celsius, got, c.want)
		}
	}
}

// What is kept comes back; each way to be wrong has its error.
func TestFactoryStored(t *testing.T) {
	r := newRig(t, 5, 30)
	good := r.factory.Encode()
	back, err := mems.DecodeFactory(good)
	if err != nil || !reflect.DeepEqual(back, r.factory) {
		t.Fatalf("%v", err)
	}
	body := func() []byte { return bytes.Clone(good[:len(good)-4]) }
	flipped := bytes.Clone(good)
	flipped[40] ^= 1
	version := body()
	version[2] = 9 // map, key 0, its value
	ports := body()
	ports[4] = 6
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":     {nil, stored.ErrDamaged},
		"cut":       {good[:len(good)-1], stored.ErrDamaged},
		"flipped":   {flipped, stored.ErrDamaged},
		"version":   {stored.Seal(version), stored.ErrVersion},
		"ports":     {stored.Seal(ports), stored.ErrMismatch},
		"trailing":  {stored.Seal(append(body(), 0)), stored.ErrMismatch},
		"truncated": {stored.Seal(body()[:100]), stored.ErrMismatch},
	} {
		if _, err := mems.DecodeFactory(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecodeFactory(f *testing.F) {
	small := &mems.Factory{Ports: 1, Drive: make([][4]int16, 1), Losses: []mems.Losses{{MilliTHz: 193_100, Celsius: 20, MilliDB: []uint16{1500}}}}
	small.Park[0], small.Park[1] = make([][2]int16, 1), make([][2]int16, 1)
	f.Add(small.Encode()[:len(small.Encode())-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := mems.DecodeFactory(stored.Seal(bytes.Clone(body)))
		if err != nil {
			return
		}
		if again, err := mems.DecodeFactory(got.Encode()); err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%v", err)
		}
	})
}
