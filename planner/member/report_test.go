package member

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Goal: what is kept of a report gives back every field of it, one that is added
// later too, but what it answers, which matters when it comes. Method: reports of which every field is drawn, through Keep and Whole.
func TestReportsComeBackWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := NewTable(0, 2, journal.New(), nil, nil)
	for range 500 {
		m := new(proto.Reported)
		draw(rng, reflect.ValueOf(m).Elem())
		m.Circuits, m.Node = nil, 1 // circuits are of switches, which are kept as they come
		d := &tab.Devices[1]
		tab.Keep(d, m)
		r := d.Report
		if got := d.Whole(); !reflect.DeepEqual(got, m) {
			t.Fatalf("kept\n%+v\nsaid\n%+v", got, m)
		}
		for b := range r.Bundles {
			if want := m.Bundles[0]; b != want {
				t.Fatalf("bundle %+v, said %+v", b, want)
			}
			break
		}
		at := 0
		for s := range r.Sides {
			if s != m.Sides[at] {
				t.Fatalf("side %+v, said %+v", s, m.Sides[at])
			}
			at++
		}
		if s := d.Scalars(); at != len(m.Sides) || s.Layout != m.Layout || s.Measured != m.Measured || s.StagedGeneration != m.StagedGeneration || s.RefusedMessages != m.RefusedMessages {
			t.Fatalf("%d sides and %+v, said %+v", at, s, m)
		}
		if r.Alarms() != len(m.Alarms) || r.Seq() != m.Seq || r.LastEvent() != m.LastEvent || r.BypassSeq() != m.BypassSeq || r.Mode() != m.Mode || r.Drained() != m.Drained || r.AsksRestart() != m.AsksRestart || r.Gen != m.Generation || r.Plan != m.Plan || r.Term != m.Term {
			t.Fatalf("at hand %+v, said %+v", r, m)
		}
	}
}

// draw fills a value: numbers of every length, lists of at most three.
func draw(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer: // what it answers
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				draw(rng, v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rng.IntN(4), 4))
		fallthrough
	case reflect.Array:
		if v.Kind() == reflect.Array && rng.IntN(3) == 0 {
			return // no digest
		}
		for i := range v.Len() {
			draw(rng, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "light below what calibration saw", "\xff\x00"}[rng.IntN(3)])
	case reflect.Int8, reflect.Int32:
		v.SetInt(int64(rng.Uint64()) >> rng.IntN(64))
	default:
		v.SetUint(rng.Uint64() >> rng.IntN(64))
	}
}
