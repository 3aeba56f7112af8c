package live

import (
	"context"
	"errors"
	"log/slog"
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
	c := &Central{broker: broker, addr: broker.Addr(), State: state, ran: make(chan error, 1), skips: make(chan time.Duration, 1), log: log}
	cfg := server.Config{Fabric: f, Broker: c.Link().Broker, State: filepath.Join(state, "planner.db"), Log: log,
		MinReconnect: minReconnect, MaxReconnect: maxReconnect, Observe: observe, Skip: c.skips, HTTP: http}
	served := make(chan string, 1)
	cfg.HTTPReady = func(url string) { served <- url }
	go func() { c.ran <- server.Run(ctx, cfg) }()
	if http != "" {
		select {
		case c.View = <-served:
		case err := <-c.ran:
			return nil, errors.Join(err, broker.Close(), os.RemoveAll(state))
		}
	}
	return c, nil
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
