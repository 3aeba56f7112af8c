package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

const help = `ocs-bmc shows what ocs-agent knows of a node's optics on the controller's D-Bus, as
OpenBMC does, for bmcweb: adapter, ports, cables, modules, sensors, alarms. Read only.
Where there is no bus it ends with 0.

  ocs-bmc -socket /var/lib/ocs-agent/agent.sock

`

// systemBus is where a bus is if the environment says nothing.
const systemBus = "unix:path=/run/dbus/system_bus_socket"

func main() {
	socket := flag.String("socket", "/var/lib/ocs-agent/agent.sock", "the agent's `socket`")
	every := flag.Duration("every", 10*time.Second, "how often it is asked, from 100ms to 1h")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), help); flag.PrintDefaults() }
	flag.Parse()
	if flag.NArg() > 0 || *every < 100*time.Millisecond || *every > time.Hour {
		fmt.Fprintf(os.Stderr, "ocs-bmc: every: %v: 100ms to 1h; no other words: %q\n", *every, flag.Args())
		os.Exit(2)
	}
	address := cmp.Or(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), systemBus)
	if file, is := strings.CutPrefix(address, "unix:path="); is {
		file, _, _ = strings.Cut(file, ",")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "ocs-bmc: no bus at %s: nothing is shown\n", file)
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, address, *socket, *every); err != nil {
		fmt.Fprintf(os.Stderr, "ocs-bmc: %v\n", err)
		os.Exit(1)
	}
}

// run shows the agent until it is told to stop or the bus is gone.
func run(ctx context.Context, address, socket string, every time.Duration) error {
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("bus at %s: %w", address, err)
	}
	defer conn.Close()
	b, err := newBus(conn)
	if err != nil {
		return fmt.Errorf("bus at %s: %w", address, err)
	}
	said := ""
	for tick := time.NewTicker(every); ; {
		s, err := ask(socket)
		now := ""
		if err != nil {
			now = err.Error()
			err = b.put(silent(b.all))
		} else {
			err = b.put(show(s))
		}
		if err != nil {
			return err
		}
		if now != said {
			slog.Info("agent", "error", now)
			said = now
		}
		select {
		case <-tick.C:
		case <-conn.Context().Done():
			if ctx.Err() == nil {
				return errors.New("the bus is gone")
			}
			return nil
		}
	}
}
