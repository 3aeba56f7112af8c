package live

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/trace"
)

// DemoConfig says what a demo run is.
type DemoConfig struct {
	fabric.Params
	Modules int           `flag:"modules" usage:"modules of a bundle"`
	Days    int           `flag:"days" usage:"days of the trace"`
	Seed    uint64        `flag:"seed" usage:"seed of everything drawn"`
	Health  time.Duration `flag:"health" usage:"time of one health round over a node's modules, virtual"`
	Physics *sim.Physics  // of every board; nil: sim.DefaultPhysics
	Costs   sim.Costs     // of every board's computer
	// Trace to replay; nil is the built-in generator. TraceName is what the
	// first line calls it.
	Trace     *trace.Trace
	TraceName string
	// BrokerDown stops the broker at the start of a day of the trace for some
	// days; nil never.
	BrokerDown *Outage
	// Listen is the broker's address; port 0 takes a free one.
	Listen string
	// HTTP is where the live view is served; "": nowhere.
	HTTP string
	// Hold keeps the nodes, the planner and the broker running after the last
	// day, in real time, until the context ends.
	Hold bool
	// Screen takes the story, Progress a word while nothing is told yet, Log
	// what is wrong underneath. nil: nobody.
	Screen   io.Writer
	Progress io.Writer
	Log      *slog.Logger
	// Finished is given the result, before Hold. nil: nobody.
	Finished func(*Result)
}

// Outage is a time without the broker, in days of the trace.
type Outage struct{ Day, Days int }

// DefaultDemo is what the command runs without flags.
func DefaultDemo() DemoConfig {
	p := fabric.DefaultParams()
	p.Spares = 8
	return DemoConfig{Params: p, Modules: 8, Days: 348, Seed: 1,
		Health: 24 * time.Hour, Costs: sim.DefaultCosts(), Listen: "127.0.0.1:0"}
}

// maxDemoNodes is chosen: each node has a real connection with some ten
// goroutines, and all agents share one.
const (
	maxDemoNodes = 1000
	maxDemoDays  = 3650
)

// Validate joins everything that is wrong, each as a *proto.Error or a
// *fabric.Error that names the key and what would do.
func (c *DemoConfig) Validate() error {
	var errs []error
	check := func(ok bool, field, limit string, have any) {
		if !ok {
			errs = append(errs, &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf("%v is out of range", have)})
		}
	}
	check(c.Nodes >= 1 && c.Nodes <= maxDemoNodes, "nodes", fmt.Sprintf("1 to %d", maxDemoNodes), c.Nodes)
	check(c.Modules >= 1 && c.Modules <= hal.MaxModules, "modules", fmt.Sprintf("1 to %d", hal.MaxModules), c.Modules)
	check(c.Days >= 1 && c.Days <= maxDemoDays, "days", fmt.Sprintf("1 to %d", maxDemoDays), c.Days)
	check(c.Health >= time.Second, "health", "at least 1s", c.Health)
	if o := c.BrokerDown; o != nil {
		check(o.Day >= 1 && o.Days >= 1, "broker-down", "a day and a number of days from 1", fmt.Sprintf("%d:%d", o.Day, o.Days))
	}
	if c.HTTP != "" {
		errs = append(errs, (&server.HTTPConfig{Addr: c.HTTP}).Check())
	}
	_, err := fabric.New(c.Params)
	return errors.Join(append(errs, err)...)
}
