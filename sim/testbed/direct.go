package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"ringlight/planner/topo"
)

// DirectConfig is an experiment: servers joined directly send on for each other, and what
// of light they have is the next job's at a flip ([TOPO] sec 5.5 and 6).
type DirectConfig struct {
	Config
	Ocsctl  string
	Request topo.Request  // of the job, and of those that come after it
	Mbit    int           `flag:"mbit" usage:"Mb/s of every link"`
	Bytes   int64         // that a server sends another in a step
	For     time.Duration `flag:"for" usage:"TIME that each collective runs" takes:"TIME"`
	Flips   int           `flag:"flips" usage:"times that the next job starts"`
	Rate    int           `flag:"rate" usage:"datagrams a second from each server to two others meanwhile"`
	Told    func(Flip)
}

// Ask has a job of all servers reduce, and exchange so much between all pairs, percent of that.
func (c *DirectConfig) Ask(percent int64) error {
	const reduced = 800_000_000 // bytes. chosen: as the example of circuit apply
	core := c.Fabric.Core
	n := core.Direct.Servers
	all := topo.Group{Servers: upTo(n, func(s int) int { return s }), Bytes: reduced}
	c.Request = topo.Request{Servers: n, Degree: core.Degree, Bidirectional: true, AllReduce: []topo.Group{all}}
	if percent > 0 {
		c.Request.MP = topo.AllToAll(n, reduced*percent/100/int64(n*(n-1)))
	}
	return c.Request.Check()
}

// DirectResult is what it came to.
type DirectResult struct {
	Servers   int       `json:"servers"`
	Hops      float64   `json:"hops_mean"` // by the search, of all pairs; and its tax of the job's traffic
	Tax       float64   `json:"tax_ratio"`
	AllReduce Collected `json:"allreduce"`
	AllToAll  Collected `json:"all_to_all"`
	Flips     []Flip    `json:"flips"`
}

// Collected is what a collective came to.
type Collected struct {
	Tax  float64 `json:"tax_ratio"`   // bytes of all links over those that servers sent themselves
	Mbit float64 `json:"server_mbit"` // a second, that a server sends
}

// Flip is what one came to.
type Flip struct {
	LightMicros int64 `json:"dark_us"` // from the first light that went to the last that came
	GapMicros   int64 `json:"gap_us"`  // the longest of any stream
	Lost        int   `json:"lost"`
	Outside     int   `json:"lost_outside"` // of these sent when light was neither gone nor just going
	Routes      bool  `json:"routes_changed"`
}

// Direct has servers reduce and exchange over direct links, and then flips to job after job.
func Direct(ctx context.Context, cfg DirectConfig) (res *DirectResult, err error) {
	found, err := topo.Find(cfg.Request)
	if err != nil {
		return nil, err
	}
	res = &DirectResult{Servers: cfg.Request.Servers, Hops: float64(found.Hops.Sum) / float64(found.Hops.Pairs), Tax: float64(found.Carried) / float64(found.Asked)}
	b, err := Start(ctx, cfg.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	d := direct{Bed: b, cfg: &cfg}
	if err := errors.Join(d.address(), b.shape(cfg.Mbit)); err != nil {
		return nil, err
	}
	if _, err := b.apply(ctx, cfg.Ocsctl, []string{d.job(1, 0)}); err != nil {
		return nil, err
	}
	words, err := b.routing(ctx, cfg.Ocsctl, RoutedAlone)
	if err != nil {
		return nil, err
	}
	if err := b.tell(words); err != nil {
		return nil, err
	}
	ranks := upTo(res.Servers, func(s int) rank { return rank{b.NS(serverName(s)), d.addresses(s)} })
	m, err := newMesh(ctx, ranks, d.face)
	if err != nil {
		return nil, err
	}
	defer m.close()
	var one struct{ Rings []struct{ Servers []int } }
	if err := b.ocsctl(ctx, cfg.Ocsctl, &one, "circuit", "show", "1"); err != nil {
		return nil, err
	}
	var reduce, exchange [][][2]int // steps
	var both [][2]int
	for _, r := range one.Rings { // each a share, at once, both ways round
		for i, a := range r.Servers {
			z := r.Servers[(i+1)%len(r.Servers)]
			both = append(both, [2]int{a, z}, [2]int{z, a})
		}
	}
	reduce = append(reduce, both)
	for by := 1; by < res.Servers; by++ {
		exchange = append(exchange, shifted(res.Servers, by))
	}
	if res.AllReduce, err = d.collect(ctx, m, reduce); err != nil {
		return res, err
	}
	if res.AllToAll, err = d.collect(ctx, m, exchange); err != nil {
		return res, err
	}
	res.Flips, err = d.flips(ctx, words)
	return res, err
}

// direct is servers joined directly.
type direct struct {
	*Bed
	cfg *DirectConfig
}

// job asks for the traffic of the experiment, for the servers of the job before.
func (d *direct) job(id, next int) string {
	mp := each(d.cfg.Request.MP, func(x topo.Demand) string { return fmt.Sprintf("[%d,%d,%d]", x.From, x.To, x.Bytes) })
	groups := each(d.cfg.Request.AllReduce, func(g topo.Group) string { return fmt.Sprintf(`{"group":%d,"bytes":%d}`, len(g.Servers), g.Bytes) })
	after := ""
	if next > 0 {
		after = fmt.Sprintf(`"next":%d,`, next)
	}
	return fmt.Sprintf(`{"id":%d,%s"servers":%d,"topology":{"degree":%d,"bidirectional":true,"allreduce":[%s],"mp":[%s]}}`,
		id, after, d.cfg.Request.Servers, d.cfg.Request.Degree, strings.Join(groups, ","), strings.Join(mp, ","))
}

func (d *direct) addresses(server int) []netip.Addr {
	n := d.fabric.Core.Degree
	return upTo(n, func(face int) netip.Addr { return hostAddress(server*n + face) })
}

// address gives every interface its address.
func (d *direct) address() error {
	for s := range d.fabric.Core.Servers() {
		lines := d.plain(serverName(s))
		for face, a := range d.addresses(s) {
			lines = append(lines, fmt.Sprintf("addr add %v/32 dev if%d", a, face))
		}
		if err := ip(d.NS(serverName(s)), lines...); err != nil {
			return err
		}
	}
	return nil
}

// face is by which interfaces two servers talk: those that light joins, else any of the same number.
func (d *direct) face(a, z int) int {
	n := d.fabric.Core.Degree
	for face := range n {
		if int(d.relay.ports[a*n+face].to.Load()) == z*n+face {
			return face
		}
	}
	return (a + z) % n
}

// collect runs the steps of a collective round and round for a while.
func (d *direct) collect(ctx context.Context, m *mesh, steps [][][2]int) (c Collected, err error) {
	n := d.fabric.Core.Degree
	servers, of := d.fabric.Core.Servers(), map[netip.Addr]int{}
	for s := range servers {
		for _, a := range d.addresses(s) {
			of[a] = s
		}
	}
	t := newTally(len(d.optics.ports), servers, of)
	d.relay.tally.Store(t)
	begun, sent := time.Now(), 0
	for time.Since(begun) < d.cfg.For {
		for _, flows := range steps { // whole rounds: each pair as often as any
			if err := errors.Join(ctx.Err(), m.exchange(d.cfg.Bytes, flows)); err != nil {
				return c, err
			}
			sent += len(flows)
		}
	}
	took := time.Since(begun)
	if err := pause(ctx, late); err != nil { // the last answers are under way
		return c, err
	}
	d.relay.tally.Store(nil)
	own := uint64(0)
	for port := range d.optics.ports {
		own += t.bytes[port*servers+port/n].Load()
	}
	_, _, _, all := t.links()
	return Collected{Tax: float64(all) / float64(own), Mbit: float64(8*int64(sent)*d.cfg.Bytes) / float64(took.Microseconds()) / float64(servers)}, nil
}

// flips has the next job stand by and start, again and again, while datagrams go from each
// server to one that is joined to it and to one that others send on to.
func (d *direct) flips(ctx context.Context, words map[string][]string) (out []Flip, err error) {
	n, servers := d.fabric.Core.Degree, d.fabric.Core.Servers()
	var streams []*stream
	defer func() {
		for _, s := range streams {
			err = errors.Join(err, s.Stop())
		}
	}()
	for a := range servers {
		for _, joined := range []bool{true, false} {
			for i := range servers - 1 {
				z := (a + 1 + i) % servers
				face := d.face(a, z)
				if near := int(d.relay.ports[a*n+face].to.Load()) == z*n+face; near != joined {
					continue
				}
				to := net.JoinHostPort(hostAddress(z*n+face).String(), fmt.Sprint(20_000+a*2+map[bool]int{true: 1}[joined]))
				s, err := newStream(ctx, "udp4", d.NS(serverName(a)), d.NS(serverName(z)), hostAddress(a*n+face).String(), to, time.Second/time.Duration(d.cfg.Rate))
				if err != nil {
					return out, err
				}
				streams = append(streams, s)
				break
			}
		}
	}
	for id := 1; id <= d.cfg.Flips; id++ {
		if _, err := d.apply(ctx, d.cfg.Ocsctl, []string{d.job(id, 0), d.job(id+1, id)}); err != nil {
			return out, err
		}
		f, err := d.flip(ctx, id+1, streams, words)
		if err != nil {
			return out, fmt.Errorf("flip %d: %w", id, err)
		}
		out = append(out, *f)
		if d.cfg.Told != nil {
			d.cfg.Told(*f)
		}
	}
	return out, nil
}

// slack is how long before and after its light a record may be under way that is lost with
// it. chosen: what a busy machine takes.
const slack = 20 * time.Millisecond

// flip starts the job that stands by.
func (d *direct) flip(ctx context.Context, id int, streams []*stream, words map[string][]string) (*Flip, error) {
	if err := pause(ctx, afterward); err != nil {
		return nil, err
	}
	d.relay.first.Store(0)
	var started jobList
	if err := d.ocsctl(ctx, d.cfg.Ocsctl, &started, "circuit", "flip", fmt.Sprint(id)); err != nil {
		return nil, err
	}
	lit := func() bool {
		for i := range d.relay.ports {
			if d.relay.ports[i].to.Load() == nowhere {
				return false
			}
		}
		return d.relay.first.Load() > 0
	}
	if err := until(ctx, "light on all interfaces", lit); err != nil {
		return nil, err
	}
	if err := pause(ctx, afterward); err != nil {
		return nil, err
	}
	now, err := d.routing(ctx, d.cfg.Ocsctl, RoutedAlone)
	if err != nil {
		return nil, err
	}
	from, to := d.relay.begun.Add(time.Duration(d.relay.first.Load())), d.relay.begun.Add(time.Duration(d.relay.last.Load()))
	f := &Flip{LightMicros: to.Sub(from).Microseconds(), Routes: !sameRules(words, now)}
	for _, s := range streams {
		dark, light := from.Sub(s.begun), to.Sub(s.begun)
		gap, _ := s.Gap(dark - slack)
		f.GapMicros = max(f.GapMicros, gap.Microseconds())
		_, before := s.between(dark-afterward/2, dark-slack)
		_, all := s.between(dark-afterward/2, s.Now()-late)
		_, after := s.between(light+slack, s.Now()-late)
		f.Lost, f.Outside = f.Lost+all, f.Outside+before+after
	}
	return f, nil
}

// sameRules: devices are told the same, but for the job's number.
func sameRules(a, b map[string][]string) bool {
	rules := func(of map[string][]string, at string) string {
		_, text, _ := strings.Cut(strings.Join(of[at], "\n"), "\n")
		return text
	}
	for at := range a { // any order: all have to be
		if rules(a, at) != rules(b, at) {
			return false
		}
	}
	return len(a) == len(b)
}
