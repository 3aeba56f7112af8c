package cert

import "time"

// SetClock is this machine's clock from now on.
func SetClock(now func() time.Time) { clock = now }

// SetBuilt is when this program was built, in seconds.
func SetBuilt(s string) { built = s }

// Heirs are the roots that a list leads to.
var Heirs = heirs
