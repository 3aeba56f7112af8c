package proto

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// Whatever arrives: no panic; what the walker accepts the library decodes;
// what is accepted encodes, and to the same bytes unless it held keys of the
// future or empty optional values.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		b, err := Encode(g.msg)
		if err != nil {
			f.Fatal(err)
		}
		for i, m := range messageTypes {
			if reflect.TypeOf(m) == reflect.TypeOf(g.msg) {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, payload []byte) {
		typ := reflect.TypeOf(messageTypes[int(which)%len(messageTypes)])
		msg := reflect.New(typ).Interface()
		unknown, err := Decode(payload, msg)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code == OK {
				t.Fatalf("%v is no *Error with a code", err)
			}
			if _, walked := check(payload, shapes[typ]); walked == nil && e.Code != Invalid {
				t.Fatalf("%v: the library refuses %x, the walker does not: %v", typ, payload, err)
			}
			return
		}
		again, err := Encode(msg)
		if err != nil {
			t.Fatalf("%v decoded from %x does not encode: %v", typ, payload, err)
		}
		if unknown == 0 && len(again) == len(payload) && !bytes.Equal(again, payload) || len(again) > len(payload) {
			t.Fatalf("%v: %x came back as %x", typ, payload, again)
		}
	})
}

func FuzzParseTopic(f *testing.F) {
	topics := Topics{"f1"}
	for _, s := range []string{topics.Planner(), topics.Desired(63), topics.Decision(0), topics.Request("ctl-1"),
		"ocs/v1/f1/n/063/ack", "ocs/v2/f1/planner/state", "ocs/v1/f1/n/+/ack", "ocs/v1/f1/n/1/ack/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		topic, err := ParseTopic(s)
		if err == nil && topic.String() != s {
			t.Fatalf("%q parsed as %q", s, topic)
		}
	})
}
