// Package linux opens a hal.Board on the devices that the board names: I2C by
// our own back end over i2c-dev, SPI and input lines by periph.
//
// One goroutine owns each bus. It takes work by class from a bounded queue,
// gives each op a deadline, and posts its completion; a transfer that the
// kernel does not end in time is reported as timed out and its bus as stuck
// until it does, so that nothing ever waits for a hanging bus. What the kernel
// reads and writes lies in memory of the bus, never on a stack and never in
// the caller's buffers: periph's own I2C keeps it on the stack across a lock
// and then reads silently wrong when the stack moves.
//
// A bus with two GPIO lines beside its controller (hal.Bus.SCL, SDA) is freed
// by nine clocks when an op leaves it hanging, and the lines tell a stretched
// clock from a stuck data line; without them the adapter's driver must free it,
// as most do on a timeout, and both show as a timeout.
//
// The levels of latches are not touched by opening or closing a board.
package linux
