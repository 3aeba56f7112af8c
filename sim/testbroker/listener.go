package testbroker

import (
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Listener is a listener of a broker whose Close always ends. The library's own way to its
// clients takes a read lock twice and blocks for good when a writer comes in between (its
// issue 488), and it does not see a client that was let in while it looked.
type Listener struct {
	listeners.Listener
	Server *mochi.Server
}

func (l Listener) Close(listeners.CloseFn) {
	l.Listener.Close(func(string) {})
	over := make(chan struct{})
	go func() { l.Server.Listeners.ClientsWg.Wait(); close(over) }()
	for {
		for _, cl := range l.Server.Clients.GetAll() { // any order: each by itself
			if !cl.Closed() {
				_ = l.Server.DisconnectClient(cl, packets.ErrServerShuttingDown)
			}
		}
		select {
		case <-over:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
