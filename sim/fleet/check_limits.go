package fleet

import (
	"fmt"

	"periph.io/x/conn/v3/physic"
)

// Invariant 6, limits: no heater ever left its voltage, current and power,
// no module its power. docs/board.md; the record is the world's own.
const (
	maxVolt   = 8500*physic.MilliVolt + 5*physic.MilliVolt // one step of the converter
	maxAmpere = 10*physic.MilliAmpere + 100*physic.MicroAmpere
	maxHeater = 60*physic.MilliWatt + 100*physic.MicroWatt
	maxModule = 2*physic.Watt + physic.MilliWatt
)

func (a *audit) limits(st *station) {
	if st.watch.shorted {
		return // its current is what the converter stops at, whatever is written
	}
	l := a.r.world.Limits(st.board)
	if l.Volt > maxVolt || l.Current > maxAmpere || l.Heater > maxHeater || l.Module > maxModule {
		a.violate(st.id, "limits", fmt.Sprintf("a heater saw %v, %v, %v, a module %v", l.Volt, l.Current, l.Heater, l.Module))
	}
}
