package fabric

import (
	"errors"
	"fmt"
	"time"
)

// Drain is how long a stage waits for routers, and what it does then.
type Drain struct {
	WithinMillis int    `json:"within_ms"`
	Silent       string `json:"silent,omitempty"` // a router says nothing: SilentMove, also where it is empty, or SilentStay
}

// What a stage does when a router has said nothing within its time.
const (
	SilentMove = "move" // its links move all the same
	SilentStay = "stay" // they do not, and nothing after them, until it does or an operator speaks for it
)

const minDrain, maxDrain = 100, 600_000 // ms. chosen: below, no router has new routes; above, a person is faster

const lateDrain = time.Minute // of ports to be used again where nothing is drained any more. chosen: some tries

// Within is how long a stage waits for a port, and after which one is late.
func (d *Drain) Within() time.Duration {
	if d == nil {
		return lateDrain
	}
	return time.Duration(d.WithinMillis) * time.Millisecond
}

// Stays: a link does not move without its routers' word.
func (d *Drain) Stays() bool { return d.Silent == SilentStay }

func (d *Drain) validate() error {
	if d == nil {
		return nil
	}
	var errs []error
	if d.WithinMillis < minDrain || d.WithinMillis > maxDrain {
		errs = append(errs, wrong("core.drain.within_ms", fmt.Sprintf("%d to %d", minDrain, maxDrain), "%d", d.WithinMillis))
	}
	if d.Silent != "" && d.Silent != SilentMove && d.Silent != SilentStay {
		errs = append(errs, wrong("core.drain.silent", SilentMove+" or "+SilentStay, "%.40q", d.Silent))
	}
	return errors.Join(errs...)
}
