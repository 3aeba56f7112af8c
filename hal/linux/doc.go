// Package linux opens a hal.Board on the devices that the board names, by the
// kernel's own interfaces: i2c-dev, spidev and version 2 of the GPIO character
// device.
//
// From an edge to the write that answers it there is one thread and no hop.
// Whoever calls Attach makes his own thread that one: at real-time priority
// where the machine allows it, in memory that stays there. Its Wait sleeps on
// the lines of the board, and carries out what is then submitted for an idle bus
// of latches. An edge has the kernel's stamp of its interrupt; where the
// kernel's numbers show that it had no room for one, the levels are read again.
//
// One goroutine owns each bus for all other work. It takes it by class from a
// bounded queue, gives each op a deadline, and posts its completion; a transfer
// that the kernel does not end in time is reported as timed out and its bus as
// stuck until it does, so that nothing ever waits for a hanging bus: where it is
// the thread that hangs, its relief takes over. What the kernel
// reads and writes lies in memory of the bus, never on a stack and never in
// the caller's buffers: on a stack that moves it would read silently wrong.
//
// An adapter is left as it was found: its timeout and retries belong to all of
// its users, and cannot be read to be given back.
//
// A bus with two GPIO lines beside its controller (hal.Bus.SCL, SDA) is freed
// by nine clocks when an op leaves it hanging, and the lines tell a stretched
// clock from a stuck data line; without them the adapter's driver must free it,
// as most do on a timeout, and both show as a timeout. Lines that the controller
// holds itself are refused: it frees its bus by itself.
//
// The levels of latches are not touched by opening or closing a board.
package linux
