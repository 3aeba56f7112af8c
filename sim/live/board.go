package live

import (
	"context"
	"net"

	"ringlight/hal"
	"ringlight/hal/socket"
	"ringlight/sim/solo"
)

// Board serves one simulated board on the real clock to whoever dials the
// listener, until ctx ends. The board lives on when its client goes: light and
// registers stay as they are.
func Board(ctx context.Context, cfg solo.Config, l net.Listener) error {
	server := socket.NewServer()
	board, err := solo.Open(cfg, func(ev hal.Event) { server.Event(ev) })
	if err != nil {
		_ = l.Close()
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	err = server.Serve(l, board)
	if kept := board.Close(); err == nil {
		err = kept
	}
	return err
}
