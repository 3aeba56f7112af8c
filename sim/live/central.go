package live

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto/mqtt"
)

// Central is what stands above the agents of a run: an embedded broker, and
// the planner with its store.
type Central struct {
	broker *server.Broker
	addr   string // the broker's, also while it is down
	State  string // folder of the store, and of the agents' journals
	View   string // URL of the live view, "" when none was asked for
	cfg    server.Config
	end    context.CancelFunc // of the planner
	ran    chan error
	skips  chan time.Duration // how far the planner's clock goes on at once
	log    *slog.Logger
}

// StartCentral starts both; observe is called by the planner's goroutine after
// each of its steps. The planner ends with ctx. http is where its view is
// served, "" for nowhere.
func StartCentral(ctx context.Context, f *fabric.Fabric, listen, http string, log *slog.Logger, observe func(*planner.Planner)) (*Central, error) {
	state, err := os.MkdirTemp("", "ringlight-run-")
	if err != nil {
		return nil, err
	}
	broker, err := server.StartBroker(listen, log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(state))
	}
	c := &Central{broker: broker, addr: broker.Addr(), State: state, skips: make(chan time.Duration, 1), log: log}
	c.cfg = server.Config{Fabric: f, Broker: c.Link().Broker, State: filepath.Join(state, "planner.db"), Log: log,
		MinReconnect: minReconnect, MaxReconnect: maxReconnect, Observe: observe, Skip: c.skips, HTTP: http}
	if err := c.Revive(ctx); err != nil {
		return nil, errors.Join(err, broker.Close(), os.RemoveAll(state))
	}
	return c, nil
}

// Kill ends the planner as a crash does: its link breaks without a goodbye, and what was
// not stored is lost.
func (c *Central) Kill() {
	c.end()
	c.ran <- <-c.ran
}

// Revive starts the planner by what is stored, its view where it was.
func (c *Central) Revive(ctx context.Context) error {
	ctx, c.end = context.WithCancel(ctx)
	ran, served := make(chan error, 1), make(chan string, 1)
	c.ran, c.cfg.HTTPReady = ran, func(url string) { served <- url }
	go func(cfg server.Config) { ran <- server.Run(ctx, cfg) }(c.cfg)
	if c.cfg.HTTP == "" {
		return nil
	}
	select {
	case c.View = <-served:
		at, err := url.Parse(c.View)
		if err != nil {
			c.Kill()
			return err
		}
		c.cfg.HTTP = at.Host
		return nil
	case err := <-ran:
		ran <- err
		return errors.Join(errors.New("live: the planner stopped"), err)
	}
}

// Link is how to reach the broker.
func (c *Central) Link() mqtt.Config {
	return mqtt.Config{Broker: c.broker.URL(), MinReconnect: minReconnect, MaxReconnect: maxReconnect}
}

// stop stops the broker alone, restart starts it again where it was.
func (c *Central) stop() error { return c.broker.Close() }

func (c *Central) restart() (err error) {
	c.broker, err = server.StartBroker(c.addr, c.log)
	return err
}

// gone is an error when the planner has ended, with what ended it.
func (c *Central) gone() error {
	select {
	case err := <-c.ran:
		c.ran <- err
		return errors.Join(errors.New("live: the planner stopped"), err)
	default:
		return nil
	}
}

// Close is called when ctx has ended.
func (c *Central) Close() {
	<-c.ran
	_ = c.broker.Close()
	_ = os.RemoveAll(c.State)
}
