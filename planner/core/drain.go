package core

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Where a fabric says so, a stage asks the routers at each end of a link before it takes
// that away: no packet is to use the port. It waits for their word, or so long as the
// fabric says; when light has proven it they are asked to use the port again, and the
// next stage waits for that too. What was asked is on disk before anybody hears of it,
// so that a planner that is killed takes it up, and no port stays drained.

const prefixDrain = "portdrain/" // of the store: PortDrain, by router and port

// PortDrain is what a router is asked to do with a port.
type PortDrain struct {
	Port    string `json:"port"`              // as in routes: ocs2, up1, port3, if0
	Drained bool   `json:"drained"`           // no packet is to use it; false: they may again
	Held    bool   `json:"held"`              // the router was read back to do so
	Says    string `json:"says,omitempty"`    // why it does not
	Since   uint64 `json:"since_ms"`          // that it is asked, by the planner's clock
	Overdue bool   `json:"overdue,omitempty"` // it has not, within what the fabric allows

	router string
	asked  time.Duration // since when, in this life
	record uint64        // of the store, that says so
}

// PortSaid is what somebody read back from a router.
type PortSaid struct {
	Drained bool   `json:"drained"`        // no packet uses the port; false: they may
	Says    string `json:"says,omitempty"` // why it does not do what it must; then Drained counts for nothing
}

// drains are ports that are, or may still be, drained, by router/port.
type drains struct {
	j        *journal.Journal
	agenda   *agenda
	Evidence *evidence

	of   map[string]*PortDrain
	disk uint64 // records up to this one are on disk
	news uint64
}

func (c *drains) sorted() (out []*PortDrain) {
	for _, key := range slices.Sorted(maps.Keys(c.of)) {
		out = append(out, c.of[key])
	}
	return out
}

// ask has what routers are asked to do stored.
func (c *drains) ask(p *PortDrain, drained bool) {
	p.Drained, p.Held, p.Says, p.Since, p.asked = drained, false, "", c.j.Wall, c.j.Now
	c.keep(p)
}

func (c *drains) keep(p *PortDrain) {
	c.agenda.unreported = true
	p.record = c.j.Persist(journal.Encode(prefixDrain+p.router+"/"+p.Port, p))
}

// want asks for the ports that are to be drained, and for all others to be used
// again.
func (c *drains) want(want map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if c.of[key] == nil {
			router, port, _ := strings.Cut(key, "/")
			c.of[key] = &PortDrain{Port: port, router: router}
		}
		if p := c.of[key]; !p.Drained {
			c.ask(p, true)
		}
	}
	c.release(func(key string) bool { return want[key] })
}

// release asks routers to use ports again, but for some. What the core does not have any
// more is nobody's.
func (c *drains) release(but func(key string) bool) {
	ends := map[string]bool{}
	for _, p := range c.sorted() {
		if len(ends) == 0 {
			ends = c.ends()
		}
		switch key := p.router + "/" + p.Port; {
		case !ends[key]:
			c.forget(key)
		case p.Drained && !but(key):
			c.ask(p, false)
		}
	}
}

func (c *drains) forget(key string) {
	delete(c.of, key)
	c.news++
	c.agenda.unreported = true
	c.j.Persist(journal.Record{Key: prefixDrain + key})
}

// onDisk makes known what is asked, now that it will not be forgotten.
func (c *drains) onDisk(id uint64) {
	c.disk = max(c.disk, id)
	for _, p := range c.of { // any order: whether there is one
		if p.record == id {
			c.news++
		}
	}
}

// end is the router at a port of a switch, with its own.
func (c *drains) end(s int, port int32) string {
	device, name := c.Evidence.fab.EndOf(s, int(port))
	name, _, _ = strings.Cut(name, "/") // an interface, whichever of its fibres
	return device + "/" + name
}

func (c *drains) ends() map[string]bool {
	out := map[string]bool{}
	for s := range c.Evidence.fab.Mirrors() {
		for port := range c.Evidence.fab.PortsOf(s) {
			out[c.end(s, int32(port))] = true
		}
	}
	return out
}

func none(string) bool { return false }

// takenFrom are the ports of routers at the links with light that maps take away.
func (c *drains) takenFrom(sets []mapSet) map[string]bool {
	out := map[string]bool{}
	if c.Evidence.fab.Drain == nil {
		return out
	}
	for _, set := range sets {
		all := c.Evidence.layout.switchesOf(set.at)
		for i, j := range c.Evidence.maps[set.at].to {
			if j < 0 || set.to[i] == j || int32(i) == j {
				continue // nothing, or it stays; a port joined to itself is new
			}
			if server, is := c.Evidence.fab.ServerOf(set.at); is {
				if c.Evidence.stateOf(set.at, proto.Circuit{A: uint16(i), B: uint16(j)}).Lit() {
					out[fmt.Sprintf("server%d/if%d", server, i)] = true
				}
				continue
			}
			lit := slices.ContainsFunc(c.Evidence.layout.slots(set.at, int32(i), j), func(x slot) bool { return c.Evidence.stateOf(x.sw, proto.Circuit{A: x.a, B: x.b}).Lit() })
			if !lit {
				continue // no packet crosses it
			}
			// Who sends into side A of the even one of a pair hears from side B of the odd one.
			out[c.end(all[0], int32(i))], out[c.end(all[len(all)-1], j)] = true, true
		}
	}
	return out
}

// wait asks routers for what a stage needs of them, and says until when it waits for
// their word at most; 0: no longer.
func (c *drains) wait(sets []mapSet) (until time.Duration) {
	c.want(c.takenFrom(sets))
	for _, p := range c.of { // any order: the latest
		if !p.Held {
			until = max(until, c.patience(p))
		}
	}
	if until <= c.j.Now {
		return 0
	}
	return until
}

// patience is until when a stage waits for a port.
func (c *drains) patience(p *PortDrain) time.Duration {
	switch d := c.Evidence.fab.Drain; {
	case d == nil:
		return 0
	case p.Drained && d.Stays():
		return journal.Never
	default:
		return p.asked + d.Within()
	}
}

// waits: routers have not said that they have drained what they are asked to.
func (c *drains) waits() bool {
	return slices.ContainsFunc(c.sorted(), func(p *PortDrain) bool { return p.Drained && !p.Held })
}

// why says whose words a stage waits for, "" when for none.
func (c *drains) why() string {
	for _, drained := range []bool{true, false} {
		var waits []string
		says := ""
		for _, p := range c.sorted() {
			if p.Drained == drained && c.awaited(p) {
				waits = append(waits, p.router+" "+p.Port)
				says = cmp.Or(says, p.Says)
			}
		}
		if len(waits) == 0 {
			continue
		}
		text := "a stage waits until routers " + map[bool]string{true: "have drained ", false: "use again "}[drained] + strings.Join(waits[:min(4, len(waits))], ", ")
		if n := len(waits) - 4; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		if says != "" {
			text += ": " + says
		}
		return text
	}
	return ""
}

// awaited: a stage waits for a router's word of a port.
func (c *drains) awaited(p *PortDrain) bool { return !p.Held && c.patience(p) > c.j.Now }

// restore takes one record of the store.
func (c *drains) restore(rest string, raw []byte) error {
	p := &PortDrain{asked: c.j.Now}
	if err := json.Unmarshal(raw, p); err != nil {
		return err
	}
	ok := false
	if p.router, _, ok = strings.Cut(rest, "/"); !ok || p.router == "" || rest != p.router+"/"+p.Port {
		return fmt.Errorf("want ROUTER/PORT, not %.80q", rest)
	}
	c.of[rest] = p
	return nil
}

// Drains are the ports that routers are asked to drain, or to use again, by router.
func (x Claims) Drains() map[string][]PortDrain {
	out := map[string][]PortDrain{}
	for _, p := range x.c.drains.sorted() {
		if p.record <= x.c.drains.disk {
			d := *p
			d.Overdue = !p.Held && x.c.j.Now >= p.asked+x.c.Evidence.fab.Drain.Within()
			out[p.router] = append(out[p.router], d)
		}
	}
	return out
}

// DrainNews counts what has happened to them.
func (x Claims) DrainNews() uint64 { return x.c.drains.news }

// Said takes what somebody read back from a router of a port.
func (x Claims) Said(router, port string, got PortSaid) error {
	c := x.c
	p := c.drains.of[router+"/"+port]
	switch {
	case p == nil && !got.Drained && got.Says == "":
		return nil // it is known already
	case p == nil:
		return &proto.Error{Code: proto.NotFound, Field: "port", Limit: "one that is asked for: GET /v1/routers", Reason: fmt.Sprintf("%.80q of %.80q is not", port, router)}
	case got.Says != "" && (p.Says != got.Says || p.Held):
		p.Held, p.Says = false, proto.Clip(got.Says)
		c.drains.keep(p)
		c.j.Note(journal.Warn, "router does not drain", journal.Note{Rule: "drain", Node: -1, Text: proto.Clip(fmt.Sprintf("%s %s: %s", router, port, p.Says))})
		return nil
	case got.Says != "":
		return nil
	case got.Drained != p.Drained:
		return &proto.Error{Code: proto.Conflict, Field: "drained", Limit: fmt.Sprint(p.Drained), Reason: fmt.Sprintf("%.80q of %.80q is asked for otherwise", port, router)}
	case !p.Drained:
		c.drains.forget(router + "/" + port)
	case !p.Held:
		p.Held, p.Says = true, ""
		c.drains.keep(p)
	}
	if len(c.Stages.todo) > 0 && !slices.ContainsFunc(c.drains.sorted(), c.drains.awaited) {
		c.agenda.replan(0)
	}
	return nil
}
