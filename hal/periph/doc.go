// Package periph gives the buses of an open hal.Board, a simulated one or this
// machine's, as periph's interfaces have them, so that drivers written for periph, or
// for TinyGo whose drivers ask for the same Tx, run on them unmodified:
//
//	board, _ := solo.New(solo.Config{Board: &b})
//	done, _ := periph.Register("sim/", &b, board.Do)
//	defer done()
//	bus, _ := i2creg.Open("sim/b0.slow/0x70.3") // behind channel 3 of the mux at 0x70
//	tmp102.New(bus, nil)
//
// Every transfer is an op of class housekeeping, behind whoever owns the bus: what the
// agent does to move light goes first, the deadline of the bus holds, and the mux in
// front of a chip is switched in the same op. Errors match the causes of package hal.
//
// A driver waits for its transfers, and so must not run where nothing may wait: in the
// agent's own thread, or in a step of a simulation.
package periph
