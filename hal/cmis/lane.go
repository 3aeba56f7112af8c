package cmis

import (
	"errors"
	"fmt"
)

// Offsets on page 1Dh, host lane switching.
const (
	Redirection          = 136 // + lane
	EnableRedirection    = 152
	CommitRedirection    = 160
	RedirectionResult    = 168 // + lane
	CommittedRedirection = 184 // + lane
)

// Results of a commit, one byte a lane.
const (
	RedirectionNone     = 0
	RedirectionSuccess  = 1
	RedirectionRejected = 2
)

// errNotPermutation is a redirection that would bring two lanes to one place.
var errNotPermutation = errors.New("not a permutation of the lanes")

// CheckRedirection tells whether eight bytes of a redirection are a
// permutation.
func CheckRedirection(b []byte) error {
	if len(b) < Lanes {
		return fmt.Errorf("cmis: redirection of %d lanes: %w", len(b), errShort)
	}
	seen := 0
	for i, to := range b[:Lanes] {
		if to >= Lanes || seen>>to&1 != 0 {
			return fmt.Errorf("cmis: lane %d to %d: %w", i, to, errNotPermutation)
		}
		seen |= 1 << to
	}
	return nil
}

// RedirectionRequests are what a host does to redirect its lanes: provision,
// enable, commit.
func RedirectionRequests(to [Lanes]uint8) ([]Request, error) {
	if err := CheckRedirection(to[:]); err != nil {
		return nil, err
	}
	return []Request{
		{Write: true, Page: PageLaneSwitch, Offset: Redirection, Data: append([]byte(nil), to[:]...)},
		{Write: true, Page: PageLaneSwitch, Offset: EnableRedirection, Data: []byte{1}},
		{Write: true, Page: PageLaneSwitch, Offset: CommitRedirection, Data: []byte{1}},
		{Page: PageLaneSwitch, Offset: RedirectionResult, Data: make([]byte, Lanes)},
		{Page: PageLaneSwitch, Offset: CommittedRedirection, Data: make([]byte, Lanes)},
	}, nil
}
