package proto

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// The one encoder and the decoders, one a class of messages. They are frozen:
// a change of any option is a change of the wire.
var (
	encMode = must(func() (cbor.UserBufferEncMode, error) {
		o := cbor.CoreDetEncOptions()
		o.NilContainers = cbor.NilContainerAsEmpty // null is refused everywhere
		o.TagsMd = cbor.TagsForbidden
		return o.UserBufferEncMode()
	})
	// The walker has checked each field's own limit before the library sees it.
	decMode = must(decOptions().DecMode)
)

func decOptions() cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxArrayElements: max(MaxMembers, MaxCircuits),
		MaxMapPairs:      MaxPairs,
		MaxNestedLevels:  MaxNesting,
		UTF8:             cbor.UTF8RejectInvalid,
	}
}

func must[T any](f func() (T, error)) T {
	v, err := f()
	if err != nil {
		panic("proto: " + err.Error())
	}
	return v
}

// message is what may stand alone on a topic.
type message interface {
	// Validate checks what the form alone does not say: ranges, references,
	// duplicates. The error is an *Error and names field and limit.
	Validate() error
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Encode returns the one canonical encoding of a message, given by value or
// by pointer. It refuses what a receiver would refuse.
func Encode(msg any) ([]byte, error) { return AppendEncode(nil, msg) }

// AppendEncode is Encode appending to dst, which it returns unchanged with an
// error.
func AppendEncode(dst []byte, msg any) ([]byte, error) {
	t := reflect.TypeOf(msg)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := shapes[t]
	if s == nil {
		panic(fmt.Sprintf("proto: %T is not a message", msg))
	}
	if err := msg.(message).Validate(); err != nil {
		return dst, err
	}
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	if err := encMode.MarshalToBuffer(msg, buf); err != nil {
		return dst, AsError(err)
	}
	if _, err := check(buf.Bytes(), s); err != nil {
		return dst, err
	}
	return append(dst, buf.Bytes()...), nil
}

// Decode reads a payload into msg, a pointer to a message, which is cleared
// first. It returns how many unknown keys it skipped. The error is an *Error.
// With code Invalid, which is Validate's, msg is filled so that an answer can
// echo it; with any other code it is empty.
func Decode(payload []byte, msg any) (unknown int, err error) {
	v := reflect.ValueOf(msg)
	if v.Kind() != reflect.Pointer || v.IsNil() || shapes[v.Type().Elem()] == nil {
		panic(fmt.Sprintf("proto: %T is not a pointer to a message", msg))
	}
	s := shapes[v.Type().Elem()]
	v.Elem().SetZero()
	if unknown, err = check(payload, s); err != nil {
		return unknown, err
	}
	if err := decMode.Unmarshal(payload, msg); err != nil {
		v.Elem().SetZero()
		return unknown, AsError(err)
	}
	return unknown, msg.(message).Validate()
}

// Fits tells whether a payload has the form of a message of such a topic, at the
// price of walking over it.
func (k TopicKind) Fits(payload []byte) bool {
	if k == 0 || int(k) >= len(topicShapes) {
		return false
	}
	_, err := check(payload, topicShapes[k])
	return err == nil
}

var topicShapes = func() (s [TopicEnrolCRT + 1]*shape) {
	for k, msg := range [...]any{TopicPlanner: PlannerState{}, TopicDesired: Desired{}, TopicCommand: Command{}, TopicDecision: Decision{}, TopicAck: Ack{},
		TopicReported: Reported{}, TopicPresence: Presence{}, TopicHealth: Health{}, TopicEvent: Event{}, TopicRequest: OpRequest{}, TopicReply: OpReply{}, TopicTrust: Trust{},
		TopicCSR: CertRequest{}, TopicCRT: CertAnswer{}, TopicEnrolCSR: CertRequest{}, TopicEnrolCRT: CertAnswer{}} {
		s[k] = shapes[reflect.TypeOf(msg)]
	}
	return s
}()

// check holds a payload against its shape without decoding it.
func check(payload []byte, s *shape) (unknown int, err error) {
	if len(payload) > MaxPayload {
		return 0, &Error{Code: TooLarge, Limit: strconv.Itoa(MaxPayload) + " bytes", Reason: strconv.Itoa(len(payload)) + " bytes"}
	}
	w := walker{in: payload, maxArr: MaxArray}
	if s.wide {
		w.maxArr = MaxMembers
	}
	if e := w.message(s); e != nil {
		return w.unknown, e
	}
	return w.unknown, nil
}
