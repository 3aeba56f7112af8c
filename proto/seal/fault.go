package seal

import (
	"errors"

	"ringlight/proto"
)

// Fault is what is wrong with how a message is sealed.
type Fault uint8

const (
	Unsealed  Fault = iota // it is not
	Malformed              // not as Sign does it
	Untrusted              // by a key that nobody stands for
	Foreign                // by a key that has no word on the topic
	Forged                 // the signature is wrong: changed, or said on another topic
	Unchecked              // more of them came than are checked
	NoRight                // an operator asks for more than is granted
	Faults                 // how many there are
)

func (f Fault) String() string {
	return [Faults + 1]string{"unsealed", "malformed", "untrusted", "foreign", "forged", "unchecked", "no_right", ""}[min(f, Faults)]
}

type refusal struct {
	err   *proto.Error
	fault Fault
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// Refuse says why a message is not to be believed.
func Refuse(f Fault, limit, reason string) error {
	code := proto.Denied
	if f == Unchecked {
		code = proto.Busy
	}
	return &refusal{&proto.Error{Code: code, Field: "seal", Limit: limit, Reason: proto.Clip(reason)}, f}
}

// FaultOf is the fault that an error of Admits, Author or Refuse is about.
func FaultOf(err error) Fault {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r.fault
	}
	return Malformed
}
