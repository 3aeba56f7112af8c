package step

import (
	"fmt"
)

// ended is how a step ends that cannot go on.
type ended struct{ err error }

// Must ends the step when something has failed.
func Must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Fail ends the step.
func Fail(format string, args ...any) { panic(ended{fmt.Errorf(format, args...)}) }

// Got is what somebody gave who did not fail.
func Got[T any](v T, err error) T {
	Must(err)
	return v
}

// Attempt does something to its end, and gives why it ended before. It sees what is
// done in its own goroutine alone.
func Attempt(do func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ended:
			err = e.err
		default:
			panic(e)
		}
	}()
	do()
	return nil
}

// Within has what ends inside of it say where that was.
func Within(where string, do func()) {
	if err := Attempt(do); err != nil {
		Fail("%s: %w", where, err)
	}
}
