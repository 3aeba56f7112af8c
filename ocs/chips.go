package ocs

import (
	"ringlight/hal"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
)

// What the chips of a module but its DACs must hold to carry light, and the
// messages that bring it there.

// enableMessages let every laser of a module shine: its pins float and the
// board pulls them up.
func enableMessages(m *hal.Module) []hal.Msg {
	return pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Config, 0, pca953x.ResetConfig)})
}
