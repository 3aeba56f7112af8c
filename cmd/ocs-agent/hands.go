package main

import (
	"time"

	"ringlight/agent"
	"ringlight/hal"
)

// waitingBoard is an open board as a bench wants it: time passes while one
// waits for its events.
type waitingBoard struct {
	agent.Hardware
	events chan hal.Event
	done   chan struct{}
}

// maxBoardEvents bounds what a board may tell before the bench listens.
// chosen: a bench has some tens of ops under way.
const maxBoardEvents = 4096

func openWaiting(open func(func(hal.Event)) (agent.Hardware, error)) (*waitingBoard, error) {
	b := &waitingBoard{events: make(chan hal.Event, maxBoardEvents), done: make(chan struct{})}
	hw, err := open(func(ev hal.Event) {
		select {
		case b.events <- ev:
		case <-b.done:
		}
	})
	if err != nil {
		return nil, err
	}
	b.Hardware = hw
	return b, nil
}

// Advance waits for the next event, at most to limit.
func (b *waitingBoard) Advance(limit time.Duration) (hal.Event, bool) {
	select {
	case ev := <-b.events:
		return ev, true
	default:
	}
	select {
	case ev := <-b.events:
		return ev, true
	case <-time.After(limit - b.Now()):
		return hal.Event{}, false
	}
}

func (b *waitingBoard) Close() error {
	close(b.done)
	return b.Hardware.Close()
}
