package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// A monitor tells the planner what a job was measured to send ([LUMOS] A.12, step 3),
// which is not what the job said. What becomes of it is judged by light:
//
//   - links move only where the fullest circuit carries a tenth less afterwards, of what
//     is sent, and then as much as the planner said;
//   - no circuit of another job is another one.

// streamTraffic is that of what jobs send.
const streamTraffic = 70

// worthMoving is the planner's promise: thousandths of what the fullest circuit carries.
const worthMoving = 100

// counts is of how many iterations what is sent is counted.
const counts = 8

// measured draws what a job sends and counts it: of two counts that follow one another
// nothing is different but what iterations differ by, a twentieth. It sends what it said,
// and in two cases of three more: between some servers, or of every server to one.
func measured(said *proto.JobTopology, servers int, seed, count uint64) proto.JobTopology {
	draw, noise := random{seed: detmath.Hash(seed, streamTraffic, count/2)}, random{seed: detmath.Hash(seed, streamTraffic, 1, count)}
	sends := *said
	sends.MP = slices.Clone(said.MP)
	more, bytes := draw.below(3), uint64(1)<<22<<draw.below(11)
	for x := range servers * min(more, 1) {
		to := (x + servers/2) % servers
		if more == 1 && draw.below(servers) > 1 {
			continue
		} else if more == 1 {
			to = draw.below(servers)
		}
		if to != x {
			sends.MP = append(sends.MP, proto.Demand{From: uint16(x), To: uint16(to), Bytes: bytes})
		}
	}
	counted := func(bytes uint64) (all uint64) {
		for range counts {
			all += bytes/1000*uint64(950+noise.below(101)) + 1
		}
		return all / counts
	}
	sends.AllReduce = slices.Clone(said.AllReduce)
	for n := range sends.AllReduce {
		sends.AllReduce[n].Bytes = counted(sends.AllReduce[n].Bytes)
	}
	for n := range sends.MP {
		sends.MP[n].Bytes = counted(sends.MP[n].Bytes)
	}
	return sends
}

// joined is who sends to whom by light: by job, layer and sender.
func (c *circuits) joined() map[proto.JobID]map[[2]int]int {
	d, out := c.core.Direct, map[proto.JobID]map[[2]int]int{}
	for server := range d.Servers {
		s := d.ServerSwitch(server)
		for _, x := range c.sent(s, c.desired[s][c.last[s]]) {
			layer := int(x.A)
			if from, ok := c.r.mirrors.from(c.r.world, layer, uint16(d.Port(server, int(x.B)/d.Degree))); ok {
				if out[x.Job] == nil {
					out[x.Job] = map[[2]int]int{}
				}
				sender, _ := d.PortEnd(int(from))
				out[x.Job][[2]int{layer, sender}] = server
			}
		}
	}
	return out
}

// fullest is what the fullest circuit of a job carries of its traffic: over links that
// have light and the rings that the job is told.
func (c *circuits) fullest(id proto.JobID, light map[[2]int]int, t *proto.JobTopology) uint64 {
	s := c.r.planners[0].host.Planner().Circuits.Describe(id)
	servers := slices.Compact(each(s.Seats, func(seat proto.Seat) int { return int(seat.Leaf)*c.core.LeafServers() + int(seat.Server) })) // by rank
	whole := func(n uint16) int { return int(n) }
	r := topo.Request{Servers: len(servers), Degree: int(t.Degree), Bidirectional: t.Bidirectional,
		AllReduce: each(t.AllReduce, func(g proto.Reduce) topo.Group {
			return topo.Group{Servers: each(g.Servers, whole), Bytes: int64(g.Bytes)}
		}),
		MP: each(t.MP, func(m proto.Demand) topo.Demand {
			return topo.Demand{From: int(m.From), To: int(m.To), Bytes: int64(m.Bytes)}
		})}
	layers := make([]topo.Layer, t.Degree)
	for l := range layers {
		layers[l].To = slices.Repeat([]int{-1}, len(servers))
	}
	for at, to := range light { // any order: each by itself
		layers[at[0]].To[slices.Index(servers, at[1])] = slices.Index(servers, to)
	}
	rings := each(s.Rings, func(x proto.Ring) topo.Ring {
		return topo.Ring{Order: each(x.Servers, func(server uint16) int { return slices.Index(servers, int(server)) }), Layers: each(x.Layers, whole)}
	})
	return uint64(r.Over(layers, rings).Fullest)
}

// counted tells what a job was measured to send, and judges what comes of it when all
// is quiet again.
func (c *circuits) counted(text string) error {
	r, q := c.r, proto.OpRequest{Noun: proto.NounFlip, Node: proto.FirstSwitch, Bundle: -1}
	var count uint64
	_, form := fmt.Sscanf(text, "%d:%d", &q.Job, &count)
	list, err := parseJobs(r.inject.listed)
	at := slices.IndexFunc(list, func(s proto.JobSpec) bool { return s.Job == q.Job && s.Topology != nil })
	if err != nil || form != nil || at < 0 {
		return errors.Join(err, form, fmt.Errorf("fleet: no job %d without phases to be measured", q.Job))
	}
	if r.planners[0].host.Planner().Circuits.Describe(q.Job).State != proto.JobRealised {
		return nil // it waits
	}
	sends := measured(list[at].Topology, int(list[at].Servers), detmath.Hash(r.cfg.Seed, uint64(q.Job)), count)
	q.Jobs = []proto.JobSpec{{Job: q.Job, Topology: &sends}}
	r.asked++
	q.Corr = corrOf(r.asked)
	was := c.joined()
	now := c.fullest(q.Job, was[q.Job], &sends)
	c.measuring, c.told, c.phased[q.Job] = q.Corr, nil, true
	r.inject.ask(q)
	if err := r.runTo(r.now + time.Second); err != nil {
		return err
	}
	if err := r.until("links for measured traffic", coreEvery, listWithin, r.coreStands); err != nil {
		return err
	}
	is := c.joined()
	then, moved := c.fullest(q.Job, is[q.Job], &sends), !maps.Equal(was[q.Job], is[q.Job])
	r.tracer.linef("count %d of job %d: its fullest circuit carries %d over circuits %v, and %d over %v; told %+v", count, q.Job, now, was[q.Job], then, is[q.Job], c.told)
	r.atCore.Measured++
	for id := range is { // any order: each by itself
		if id != q.Job && !maps.Equal(was[id], is[id]) {
			c.violate(0, "traffic of another job moves nothing", fmt.Sprintf("job %d has %v for traffic of job %d, had %v", id, is[id], q.Job, was[id]))
		}
	}
	if moved {
		r.atCore.Followed++
		r.atCore.FullestWas, r.atCore.FullestIs = r.atCore.FullestWas+now, r.atCore.FullestIs+then
	}
	if wrong := misfollowed(moved, now, then, c.told); wrong != "" {
		c.violate(0, "links move for a tenth", fmt.Sprintf("job %d %s: its fullest circuit carries %d, then %d; %+v", q.Job, wrong, now, then, c.told))
	}
	return nil
}

// misfollowed says what is wrong with what came of a count: what the fullest circuit
// carried and carries by light, and what was answered; nil: nobody was there to ask, or to
// answer.
func misfollowed(moved bool, now, then uint64, told *proto.ChangeStatus) string {
	switch {
	case moved && then*1000 > now*(1000-worthMoving):
		return "moves for less"
	case told == nil:
		return ""
	case told.FullestNow != now:
		return "is answered otherwise"
	case told.FullestThen*1000 <= now*(1000-worthMoving) && !moved:
		return "does not move"
	case moved && told.FullestThen != then:
		return "moves otherwise"
	}
	return ""
}
