package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/proto"
)

// status prints what the running agent says of itself. Without one a simulated board is
// looked at on its virtual clock; a real one is not touched: who looks for a fault does
// not change it.
func status(ctx context.Context, args []string) error {
	_, common := newFlags("status", "what the running agent says of itself", "ocs-agent status -config node7.json")
	cfg, err := common.alone(args)
	if err != nil {
		return err
	}
	return cfg.status(ctx, common.json)
}

func (c *Config) status(ctx context.Context, asJSON bool) (err error) {
	ans, err := c.askSocket(agent.Question{Verb: "status"})
	running := !errors.Is(err, agent.ErrNoAgent)
	switch {
	case running:
		ans, err = answered(ans, err)
	case c.Board.Kind == "sim":
		if ans, err = c.look(ctx); err == nil {
			defer func() {
				if err == nil {
					err = cli.Answered(fmt.Errorf("no agent runs here, %s does not answer; shown is what the simulated board says", c.socketPath()))
				}
			}()
		}
	default:
		err = fmt.Errorf("%w; journalctl -u ocs-agent says why it ended; start it: systemctl start ocs-agent, or: ocs-agent run; neither changes light", err)
	}
	if err != nil {
		return err
	}
	s := ans.Status
	if asJSON {
		return printJSON(statusJSON{running, s, proto.Plain(&s.Reported)})
	}
	r := &s.Reported
	link := cli.Either(s.LinkUp, "up", "down")
	what, number := "node", r.Node
	if number.IsSwitch() {
		what, number = "switch", number-proto.FirstSwitch
	}
	fmt.Printf("%s %d  %s  fabric %s  session %016x  term %d generation %d  link %s  board up %v  late by %v  events waiting %d  refused %d\n", what, number, r.Mode.Words(), s.Fabric, uint64(r.Session), r.Term, r.Generation,
		link, (time.Duration(s.UptimeUS) * time.Microsecond).Round(time.Millisecond), (time.Duration(s.LateUS) * time.Microsecond).Round(time.Millisecond), s.Unacked, r.RefusedMessages)
	for i := range s.Bundles {
		if b := &s.Bundles[i]; silent(b, c.healthPeriod()) {
			fmt.Printf("board  has answered nothing of bundle %d for %v: what is said of it is from before\n", b.Bundle, (time.Duration(b.ReadUS) * time.Microsecond).Round(time.Second))
		}
	}
	for _, x := range r.Sides {
		fmt.Printf("%-5v side of ring %d: %v", x.Side, x.Ring, x.State)
		if x.Current >= 0 {
			fmt.Printf(", candidate %d of plan %d, peer %d", x.Current, x.Working, x.Peer)
		}
		fmt.Println()
	}
	for _, b := range s.Bundles {
		printBundle(&b, c.healthPeriod())
	}
	if s.Switch != nil {
		printSwitch(s.Switch)
	}
	for _, q := range s.Quarantine {
		how := cli.Either(q.Absent, "gone", "answers its address")
		fmt.Printf("quarantine  device %s for %v, %s: %s\n", q.Device, (time.Duration(s.UptimeUS-q.SinceUS) * time.Microsecond).Round(time.Millisecond), how, q.Cause)
	}
	if p := s.Prompt; p != nil {
		fmt.Printf("thread  priority %d, memory locked %v, wake-ups late by p50 %d us, p99 %d us, max %d us, %d edges lost\n",
			p.Priority, p.Locked, p.WakeP50Micros, p.WakeP99Micros, p.WakeMaxMicros, p.LostEdges)
		for _, m := range p.Missing {
			fmt.Println("thread ", m)
		}
	}
	if x := s.Recorder; x != nil {
		kept := cli.Either(x.Whole, "from the start", "the last of them")
		fmt.Printf("recorder  %d entries, %d of %d KiB of memory in use, %s, %d listening\n", x.Entries, x.Bytes/1024, x.Limit/1024, kept, x.Listeners)
	}
	for _, al := range r.Alarms {
		where := ""
		if al.Kind == proto.EvPathFailed || al.Kind == proto.EvBoundNotMet || al.Kind == proto.EvRequest { // of others none is named
			where = fmt.Sprintf("bundle %d ", al.Bundle)
		}
		fmt.Printf("alarm  %v %v %s%s\n", al.Kind, al.Severity, where, al.Text)
	}
	return nil
}

// look opens a simulated board and lets it read its hardware.
func (c *Config) look(ctx context.Context) (*agent.Answer, error) {
	a, err := c.asker(ctx)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if a.bench != nil { // else an agent has come up meanwhile
		if err := a.bench.Run(a.bench.board.Now()+pathPatience, nil); err != nil {
			return nil, err
		}
	}
	return answered(a.ask(agent.Question{Verb: "status"}))
}

// statusJSON is the form that scripts rely on: the agent's own, with what it
// reports under the names of the schema.
type statusJSON struct {
	Running bool `json:"running"`
	*agent.Status
	Reported any `json:"reported"`
}

// staleAfter is how old the newest reading of a bundle may be, as the planner has it.
const staleAfter = 20 * time.Second

// printBundle prints a bundle whose modules are read once a period, -1: never.
func printBundle(b *agent.BundleStatus, period time.Duration) {
	calibrated := cli.Either(b.Calibrated, "calibrated", "not calibrated")
	lit := cmp.Or(strings.Join(b.Lit, " "), "none")
	fmt.Printf("bundle %d  %-9s %-7s %s  light on: %s", b.Bundle, b.Path, b.State, calibrated, lit)
	if b.Measured != nil {
		fmt.Printf("  own light %v (expected %v)", b.Measured, b.Expected)
	}
	if b.Step != "" {
		fmt.Printf("  calibrating: %s, module %d", b.Step, b.Modules)
	}
	if b.HeldByHand {
		fmt.Print("  held by hand")
	}
	for _, x := range [...][2]string{{"  drift: %s", b.Held}, {" (%s)", b.NotHeld}, {"  unproven: %s", b.Unproven}, {"  (%s)", b.Reason}} {
		if x[1] != "" {
			fmt.Printf(x[0], x[1])
		}
	}
	if silent(b, period) {
		fmt.Print("  from before")
	}
	fmt.Println()
}

// silent: nothing was read of a bundle for too long.
func silent(b *agent.BundleStatus, period time.Duration) bool {
	return b.Step == "" && period > 0 && time.Duration(b.ReadUS)*time.Microsecond >= max(staleAfter, 2*period)
}
