package hostile

import (
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"ringlight/proto"
)

// Goal: no number and no enumeration of what a device says is left out, and each
// lie changes its field and no other.
// Method: the fields are counted by another walk, over the types' own tags; every
// lie is told, read back without a look at its ranges, and compared with the truth.
func TestEveryFieldIsLiedAbout(t *testing.T) {
	born := &proto.Presence{Version: proto.Version, Session: 7, Online: true, GPUs: 4}
	said := &proto.Reported{Version: proto.Version, Session: 7, Seq: 9, LastEvent: 3, Bundles: make([]proto.BundleReport, 1), Sides: make([]proto.SideReport, 1)}
	for _, m := range []any{&proto.Presence{}, &proto.Reported{}, &proto.Ack{}, &proto.Event{}, &proto.Health{}} {
		told, list := map[string]bool{}, Lies(m)
		for i := range list {
			l := &list[i]
			told[l.Field] = true
			truth := Truth(l.Kind(), born, said, 1)
			var was, is map[int]any
			read(t, Encode(truth), &was)
			read(t, l.Tell(truth, 1), &is)
			changed := 0
			for k := range 64 {
				if !reflect.DeepEqual(was[k], is[k]) {
					changed++
				}
			}
			if changed > 1 {
				t.Errorf("%s changes %d fields", l, changed)
			}
		}
		if want := fields(reflect.TypeOf(m).Elem()); len(told) != want || want < 9 {
			t.Errorf("%T: %d fields are lied about, want %d", m, len(told), want)
		}
	}
}

// fields counts those that are no text.
func fields(t reflect.Type) (n int) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				n += fields(f.Type)
			}
		}
		return n
	case reflect.Slice, reflect.Pointer:
		return fields(t.Elem())
	case reflect.String:
		return 0
	}
	return 1
}

func read(t *testing.T, payload []byte, into any) {
	t.Helper()
	if err := cbor.Unmarshal(payload, into); err != nil {
		t.Fatal(err)
	}
}
