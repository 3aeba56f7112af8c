package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports that systems give out by themselves begin at 32,768 with Linux: below them nobody's
// listener or connection comes by one that a program was told and has not opened yet.
const first, count = 10_000, 22_000

var given sync.Map

// Address is an address of this machine whose port nobody listened at a moment ago, and that
// this process gave to nobody else; TCP and UDP alike.
func Address() string {
	for range count {
		address := fmt.Sprint("127.0.0.1:", first+rand.IntN(count))
		if _, twice := given.LoadOrStore(address, true); twice {
			continue
		}
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", address)
		tcp.Close()
		if err == nil {
			udp.Close()
			return address
		}
	}
	panic("freeport: of 22,000 ports none is free")
}
