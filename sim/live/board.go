package live

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"ringlight/hal"
	"ringlight/hal/socket"
	"ringlight/ocs/mems"
	"ringlight/sim/solo"
)

// Outside is what a board has besides its socket.
type Outside struct {
	Fibres  string       // host:port that light comes to over UDP; "": Leads are none
	Leads   []Lead       // fibres to boards in other processes
	Control net.Listener // where its record is read and its supply switched; nil: nowhere
	Factory string       // file for what the maker of a board of mirrors measured; "": none
}

// Board serves one simulated board on the real clock to whoever dials the
// listener, until ctx ends. The board lives on when its client goes: light and
// registers stay as they are.
func Board(ctx context.Context, cfg solo.Config, l net.Listener, o Outside) error {
	fibres := &patch{}
	if o.Fibres != "" {
		var err error
		if fibres, err = newPatch(o.Fibres, o.Leads); err != nil {
			_ = l.Close()
			return err
		}
		defer fibres.conn.Close()
		cfg.Leads = fibres.leads()
	}
	rec, bundles := &recorder{}, len(cfg.Board.Bundles)
	if cfg.Board.Mirrors != nil {
		rec.ports = cfg.Board.Mirrors.Ports
	}
	server := socket.NewServer()
	board, err := solo.OpenWatched(cfg, func(ev hal.Event) { server.Event(ev) }, func(b *solo.Board) { rec.watch(b, bundles) }, func(b *solo.Board) time.Duration {
		rec.watch(b, bundles)
		if fibres.conn == nil {
			return time.Hour
		}
		return fibres.watch(b)
	})
	if err != nil {
		_ = l.Close()
		return err
	}
	if o.Factory != "" {
		board.With(func(b *solo.Board) {
			err = os.WriteFile(o.Factory, mems.Measure(b.World().Maker(b.ID()), rec.ports).Encode(), 0o600)
		})
		if err != nil {
			_ = l.Close()
			return errors.Join(err, board.Close())
		}
	}
	if fibres.conn != nil {
		go fibres.receive(board)
	}
	if o.Control != nil {
		go control(o.Control, func(line string) any { return obey(line, board, rec, bundles) })
		defer o.Control.Close()
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	err = server.Serve(l, board)
	if kept := board.Close(); err == nil {
		err = kept
	}
	return err
}
