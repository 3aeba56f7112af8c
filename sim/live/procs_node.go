package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// dieUnheard cuts the broker off and takes a node's supply away: its
// neighbours bypass it by themselves.
func (p *procs) dieUnheard(ctx context.Context) error {
	began := time.Now()
	rings, err := p.rings(ctx)
	if err != nil {
		return err
	}
	ring := rings[len(rings)/2]
	if len(ring.Nodes) < 3 {
		return fmt.Errorf("ring %d has nodes %v: want an inner one", ring.Ring, ring.Nodes)
	}
	left, dead, right := ring.Nodes[0], ring.Nodes[1], ring.Nodes[2]
	over, ok := p.f.Link(proto.NodeID(left), proto.NodeID(right))
	if !ok {
		return fmt.Errorf("no fibre from node %d to %d", left, right)
	}
	before, err := p.records()
	if err != nil {
		return err
	}
	p.signal("broker", syscall.SIGSTOP)
	if _, err := p.tell(boardName(dead), "power off"); err != nil {
		return err
	}
	p.signal(agentName(dead), syscall.SIGKILL)
	p.res.ProcsKilled++
	var took time.Duration
	if _, err := await(ctx, procsBypass, "bypass with the broker cut off", func() (bool, string) {
		now := time.Now()
		a, lostA, foundA, errA := p.bypassed(left, over.Local)
		b, lostB, foundB, errB := p.bypassed(right, over.Remote)
		late := time.Since(now) // the second record is younger
		took = max(lostA, lostB-late) - min(foundA, foundB-late)
		return a && b, fmt.Sprintf("%d: %v, %d: %v, %v", left, a, right, b, errors.Join(errA, errB))
	}); err != nil {
		return err
	}
	if err := p.unchanged(before, "a node without power", map[int]bool{left: true, dead: true, right: true}); err != nil {
		return err
	}
	p.done(began, fmt.Sprintf("broker stopped; node %d loses its power", dead),
		"%d <-> %d bypassed in %.1f ms of wall time, no other light changed", left, right, float64(took.Microseconds())/1000)
	p.signal("broker", syscall.SIGCONT)
	began = time.Now()
	spare := map[int]bool{left: true, dead: true, right: true}
	if _, err := await(ctx, procsService, "the planner hears of it", func() (bool, string) {
		rings, err := p.rings(ctx)
		if err != nil {
			return false, err.Error()
		}
		for _, r := range rings {
			if r.Ring != ring.Ring {
				continue
			}
			for _, n := range r.Nodes {
				spare[n] = true
			}
			return r.State == "in_service" && !slices.Contains(r.Nodes, dead), fmt.Sprintf("ring %d is %s with %v", r.Ring, r.State, r.Nodes)
		}
		return false, "no such ring"
	}); err != nil {
		return err
	}
	if err := p.unchanged(before, "repair", spare); err != nil {
		return err
	}
	p.done(began, "broker goes on", "a spare took the place, in service; other rings untouched")
	return nil
}

// comeBack gives every node without power its supply and agent back.
func (p *procs) comeBack(ctx context.Context) error {
	began := time.Now()
	before, err := p.records()
	if err != nil {
		return err
	}
	back := map[int]bool{}
	for n := range before {
		if before[n].Powered {
			continue
		}
		back[n] = true
		if _, err := p.tell(boardName(n), "power on"); err != nil {
			return err
		}
		if err := p.startAgent(n); err != nil {
			return err
		}
	}
	if err := p.serving(ctx); err != nil {
		return err
	}
	if err := p.unchanged(before, "a node returned", back); err != nil {
		return err
	}
	p.done(began, "the node boots again", "online as a spare; no other light changed")
	return nil
}

// bypassed reports whether a board sends and listens on a port, with light;
// how long ago the light of the bundle's other fibre went, and this one's came.
func (p *procs) bypassed(node int, at fabric.Port) (ok bool, lost, found time.Duration, err error) {
	r, err := p.tell(boardName(node), "record")
	if err != nil {
		return false, 0, 0, err
	}
	other := true
	for _, path := range r.Paths {
		switch ago := time.Duration(path.AgoUS) * time.Microsecond; {
		case path.Bundle != int(at.Bundle) || path.Path == pathNames[hal.LOSLoopback]:
		case path.Path == at.Path.String():
			ok, found = path.Selected && path.Lit, ago
		default:
			other, lost = path.Lit, ago
		}
	}
	return ok && !other, lost, found, nil
}

// freePorts are UDP ports that were free a moment ago.
func freePorts(n int) (ports []int, err error) {
	for range n {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		ports = append(ports, c.LocalAddr().(*net.UDPAddr).Port)
	}
	return ports, nil
}

// freePort is a TCP port that was.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
