package hal

import "time"

// Prompt is how soon the thread that answers edges runs when it should, as far
// as the machine could be asked for it.
type Prompt struct {
	Priority int  // of real-time scheduling; 0: none
	Locked   bool // what has been in memory stays there
	// How late timed wake-ups came when the board was opened.
	WakeP50, WakeP99, WakeMax time.Duration
	Missing                   []string // what the machine refused, and why
}
