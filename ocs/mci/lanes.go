package mci

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// errLanesRefused is a module that does not commit a redirection.
var errLanesRefused = errors.New("module refuses the redirection of its lanes")

// redirection changes the permutation that a module's loopback makes: the codes
// for it are staged, and the commit brings both about.
type redirection struct {
	*Module
	to          [cmis.Lanes]uint8
	codes, back pages
	result      [2 * hal.Lanes]byte
	tries       int
	then        func(now time.Duration, err error)
}

// Redirect commits a permutation with the codes for it, and reads both back.
func (m *Module) Redirect(codes *heater.Allowed, to [cmis.Lanes]uint8, then func(now time.Duration, err error)) {
	r := &redirection{Module: m, to: to, then: then}
	r.codes.put(m.hw, codes)
	r.commit()
}

// do asks the module; what fails is done again from its staging on.
func (r *redirection) do(then func(now time.Duration) error, queue ...cmis.Request) {
	r.Ask(hal.ClassSafety, func(now time.Duration, err error) {
		if err == nil {
			err = then(now)
		}
		if err == nil {
			return
		}
		if r.tries++; r.tries < work.MaxTries && !errors.Is(err, errLanesRefused) {
			r.Forget()
			r.commit()
			return
		}
		r.then(now, err)
	}, queue...)
}

func (r *redirection) commit() {
	requests, err := cmis.RedirectionRequests(r.to)
	if err != nil {
		panic("ocs: lanes are no permutation: " + err.Error())
	}
	write := r.codes.requests(true)
	queue := write[:]
	for _, q := range requests {
		if q.Write {
			queue = append(queue, q)
		}
	}
	r.limit = 0
	r.do(func(time.Duration) error { r.look(); return nil }, queue...)
}

// look waits for the results, and reads codes and lanes back.
func (r *redirection) look() {
	r.do(func(now time.Duration) error {
		r.patience(now, applyAtMost)
		pending := false
		for lane := range r.to {
			switch result := r.result[lane]; {
			case result == cmis.RedirectionRejected:
				return fmt.Errorf("%w: lane %d", errLanesRefused, lane)
			case result != cmis.RedirectionSuccess:
				pending = true
			}
		}
		switch {
		case pending:
			return r.later(now, r.look, fmt.Errorf("%w: no result after %v", ErrState, applyAtMost))
		case [cmis.Lanes]uint8(r.result[hal.Lanes:]) != r.to:
			return fmt.Errorf("%w: lanes % d", ErrState, r.result[hal.Lanes:])
		}
		r.readBack()
		return nil
	}, cmis.Request{Page: cmis.PageLaneSwitch, Offset: cmis.RedirectionResult, Data: r.result[:hal.Lanes]},
		cmis.Request{Page: cmis.PageLaneSwitch, Offset: cmis.CommittedRedirection, Data: r.result[hal.Lanes:]})
}

func (r *redirection) readBack() {
	read := r.back.requests(false)
	r.do(func(now time.Duration) error {
		if r.back != r.codes {
			return heater.ErrReadBack
		}
		r.then(now, nil)
		return nil
	}, read[0], read[1], r.levels(proto.External1)) // and back on the service page
}
