package server

import (
	"log/slog"
	"net"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto/cert"
)

// accept hands the broker its connections. The library's own listener counts a
// connection only once its goroutine runs, which may be while, or after, the broker's
// end waits for that count: here nothing is accepted any more before the wait, and
// every connection that was accepted is in the count and ended, those too of which the
// library knows nothing yet.
type accept struct {
	in     net.Listener
	server *mochi.Server
	log    *slog.Logger
	over   chan struct{} // closed when no connection can come any more
	conns  sync.Map      // of net.Conn
	left   func(net.Conn)
}

func (a *accept) ID() string              { return "mqtt" }
func (a *accept) Address() string         { return a.in.Addr().String() }
func (a *accept) Protocol() string        { return "tcp" }
func (a *accept) Init(*slog.Logger) error { return nil }

func (a *accept) Serve(establish listeners.EstablishFn) {
	defer close(a.over)
	for {
		conn, err := a.in.Accept()
		if err != nil {
			return
		}
		a.conns.Store(conn, nil)
		a.server.Listeners.ClientsWg.Go(func() {
			if err := cert.Handshake(conn); err != nil {
				a.log.Warn("broker lets nobody in under this certificate", "remote", conn.RemoteAddr().String(), "reason", err)
			}
			_ = establish(a.ID(), conn) // its hooks have told why
			a.conns.Delete(conn)
			a.left(conn)
		})
	}
}

// Close ends the listener and its connections. The library's own way to its clients
// takes a read lock twice, and blocks for good when a writer comes in between.
func (a *accept) Close(listeners.CloseFn) {
	a.in.Close()
	<-a.over
	for _, cl := range a.server.Clients.GetAll() { // any order: each by itself
		if cl.Net.Listener == a.ID() && !cl.Closed() {
			_ = a.server.DisconnectClient(cl, packets.ErrServerShuttingDown)
		}
	}
	a.conns.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
}
