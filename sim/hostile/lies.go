package hostile

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"ringlight/proto"
)

// Lie is one field of a message at one of its limits. Fields and their kinds are
// read off the message itself, so that a new field is lied about, too.
type Lie struct {
	Field string // as in reported.bundles[0].flaps
	Value string // as in known+1
	// Rises: of a number that has room for a hundred steps more.
	Rises bool
	at    []int // of each struct on the way, the field
	known bool  // number is what it lies above the truth
	step  uint64
}

// String is the name of a case.
func (l *Lie) String() string { return l.Field + "=" + l.Value }

// undefined is more than any enumeration has names, so far.
const undefined = 24

// Lies are all about a message, which is given by a pointer to any of its kind.
func Lies(msg any) (out []Lie) {
	t := reflect.TypeOf(msg).Elem()
	return lies(out, t, strings.ToLower(t.Name()), nil)
}

func lies(out []Lie, t reflect.Type, name string, at []int) []Lie {
	add := func(value string, known bool, step uint64) {
		out = append(out, Lie{Field: name, Value: value, at: at, known: known, step: step})
	}
	number := func(most uint64) {
		add("0", false, 0)
		add("1", false, 1)
		add("known+1", true, 1)
		if most > proto.MaxJump {
			out[len(out)-1].Rises = true
			add("known+limit", true, proto.MaxJump)
			out[len(out)-1].Rises = true
			add("known+limit+1", true, proto.MaxJump+1)
		}
		add("most", false, most)
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				to := append(at[:len(at):len(at)], i)
				out = lies(out, f.Type, name+"."+f.Name, to)
				if t == reflect.TypeFor[proto.Envelope]() { // the worst that a ring may be built with
					out = append(out, Lie{Field: name + "." + f.Name, Value: "usable", at: to, step: proto.MaxRingMicros})
				}
			}
		}
	case reflect.Pointer:
		return lies(out, t.Elem(), name, at)
	case reflect.Slice:
		return lies(out, t.Elem(), name+"[0]", at)
	case reflect.Array: // a digest, a correlation
		add("another", false, 0xA5)
	case reflect.Bool:
		add("not", true, 1)
	case reflect.Uint8:
		if t.Name() == "uint8" || t == reflect.TypeFor[proto.BundleID]() {
			number(math.MaxUint8)
			break
		}
		for v := range uint64(undefined + 1) {
			add(fmt.Sprint(v), false, v)
		}
		number(math.MaxUint8)
		out = append(out[:len(out)-4], out[len(out)-1])
	case reflect.Uint16:
		number(math.MaxUint16)
	case reflect.Uint32:
		number(math.MaxUint32)
	case reflect.Uint64:
		number(proto.MaxCount)
	case reflect.Int8, reflect.Int32:
		for _, v := range []int64{math.MinInt8, -1, 0, 1, math.MaxInt8, math.MinInt32, math.MaxInt32} {
			if !reflect.Zero(t).OverflowInt(v) {
				add(fmt.Sprint(v), false, uint64(v))
			}
		}
	}
	return out
}

// Tell puts the lie into a copy of the truth and encodes it, as a message in order
// where it is one, else as its sender would who looks at nothing. times rises it: what
// is above the known lies as often above it.
func (l *Lie) Tell(truth any, times uint64) []byte {
	m := reflect.New(reflect.TypeOf(truth).Elem())
	if err := cbor.Unmarshal(Encode(truth), m.Interface()); err != nil {
		panic("hostile: the truth does not decode: " + err.Error())
	}
	v := m.Elem()
	for _, i := range l.at {
		v = inside(v).Field(i)
	}
	switch v = inside(v); {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.Array:
		v.Index(0).SetUint(v.Index(0).Uint() ^ l.step)
	case v.CanInt():
		v.SetInt(int64(l.step))
	case l.known:
		v.SetUint(v.Uint() + l.step*times)
	default:
		v.SetUint(l.step)
	}
	if payload, err := proto.Encode(m.Interface()); err == nil {
		return payload
	}
	return Encode(m.Interface())
}

// inside goes on to what a pointer points to, or to the first of a list; where there is
// none it makes one.
func inside(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return inside(v.Elem())
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		return inside(v.Index(0))
	}
	return v
}

var blind = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.NilContainers = cbor.NilContainerAsEmpty
	mode, err := o.EncMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// Encode encodes a message as its sender would who looks at nothing.
func Encode(msg any) []byte {
	payload, err := blind.Marshal(msg)
	if err != nil {
		panic("hostile: " + err.Error())
	}
	return payload
}

// Kind is of the topic that the lie is told on.
func (l *Lie) Kind() proto.TopicKind {
	on, _, _ := strings.Cut(l.Field, ".")
	return map[string]proto.TopicKind{"presence": proto.TopicPresence, "reported": proto.TopicReported, "ack": proto.TopicAck, "event": proto.TopicEvent, "health": proto.TopicHealth}[on]
}

// Truth is what a device would say on a topic that was born and has reported so, and
// has said n messages since.
func Truth(on proto.TopicKind, born *proto.Presence, said *proto.Reported, n uint64) any {
	r := *said
	r.Seq += n
	r.UptimeMicros += n * 1000
	switch on {
	case proto.TopicPresence:
		return born
	case proto.TopicReported:
		return &r
	case proto.TopicAck:
		return &proto.Ack{Version: proto.Version, Node: r.Node, Session: r.Session, Phase: proto.PhaseCommand, Term: r.Term, Generation: r.Generation, Plan: r.Plan,
			CurrentTerm: r.SeenTerm, CurrentGeneration: r.Generation, BypassSeq: r.BypassSeq}
	case proto.TopicEvent:
		e := proto.Event{Version: proto.Version, Node: r.Node, Session: r.Session, Seq: r.LastEvent + n, Kind: proto.EvLightUnselected, AtMicros: r.UptimeMicros, FirstMicros: r.UptimeMicros,
			Path: proto.External2, Count: 1, Generation: r.Generation, BypassSeq: r.BypassSeq, Measured: proto.NoPower, Expected: proto.NoPower}
		if len(r.Sides) > 0 {
			s := &r.Sides[0]
			e.Side, e.Ring, e.Peer = s.Side, s.Ring, s.Peer
		}
		return &e
	}
	return &proto.Health{Version: proto.Version, Node: r.Node, Session: r.Session, Seq: n, Reported: r.Seq, Samples: []proto.Sample{{Sensor: proto.SensorCase, Value: 310_000}}}
}

// Answer is what a device would say to a plan.
func Answer(d *proto.Desired, s proto.Session, code proto.Code) *proto.Ack {
	return &proto.Ack{Version: proto.Version, Node: d.Node, Session: s, Phase: proto.PhasePrepare, Code: code, Term: d.Term, Generation: d.Generation, Plan: d.Plan,
		CurrentTerm: d.Term, CurrentGeneration: d.Generation, BypassSeq: d.BypassSeq}
}
