package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/health"
	"ringlight/proto"
)

// ringJSON is the form that scripts rely on.
type ringJSON struct {
	Ring           proto.RingID     `json:"ring"`
	Nodes          []proto.NodeID   `json:"nodes"`
	GPUsTotal      uint32           `json:"gpus_total"`
	State          string           `json:"state"`
	Generation     proto.Generation `json:"generation"`
	Links          uint16           `json:"links"`
	LinksConfirmed uint16           `json:"links_confirmed"`
	Job            string           `json:"job,omitempty"`       // that has it; absent: nobody's
	Joints         []jointJSON      `json:"link_list,omitempty"` // left to right; only of one ring
	GPUOrder       [][2]uint32      `json:"gpu_order,omitempty"` // node and GPU, as light meets them; only of one ring, absent while light does not close it
}

// jointJSON is a link of a ring.
type jointJSON struct {
	A         endJSON `json:"a"`
	B         endJSON `json:"b"`
	Fibre     string  `json:"fibre"` // the label on it
	Confirmed bool    `json:"confirmed"`
}

type endJSON struct {
	Node     proto.NodeID    `json:"node"`
	Bundle   proto.BundleID  `json:"bundle"`
	Path     string          `json:"path"`
	State    string          `json:"state"`
	Measured *proto.MilliDBm `json:"measured_mdbm"` // null: never measured
	Expected *proto.MilliDBm `json:"expected_mdbm"`
	Losses   uint32          `json:"losses"` // of light, ever
}

func ringOf(s *proto.RingStatus) ringJSON {
	j := ringJSON{Ring: s.Ring, Nodes: append([]proto.NodeID{}, s.Nodes...), GPUsTotal: s.GPUs, State: s.State.String(), Generation: s.Generation, Links: s.Links, LinksConfirmed: s.LinksConfirmed, Job: s.Job}
	for _, x := range s.Joints {
		j.Joints = append(j.Joints, jointJSON{endOf(&x.A), endOf(&x.B), x.Fibre, x.Confirmed})
	}
	for _, g := range s.GPUOrder {
		j.GPUOrder = append(j.GPUOrder, [2]uint32{uint32(g.Node), uint32(g.GPU)})
	}
	return j
}

func endOf(e *proto.JointEnd) endJSON {
	return endJSON{e.Node, e.Bundle, e.Path.String(), e.State.String(), e.Measured.Known(), e.Expected.Known(), e.Losses}
}

func ringNoun(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	return listing[proto.RingStatus, ringJSON]{
		noun: "ring", help: help("ring"), list: proto.NounRings,
		show: func(word string, q *proto.OpRequest) error {
			id, err := number("ring", word, 1)
			q.Noun, q.Ring = proto.NounRing, proto.RingID(id)
			return err
		},
		of:   func(r *proto.OpReply) []proto.RingStatus { return r.Rings },
		form: ringOf, table: ringRows, print: printRing,
		keep: func(r *ringJSON, f *filters) bool {
			return (f.state == "" || strings.ReplaceAll(f.state, " ", "_") == r.State) && (f.ring == 0 || f.ring == uint(r.Ring))
		},
	}.run(ctx, c, args, out)
}

func ringRows(out io.Writer, rings []ringJSON) {
	rows(out, "RING\tSTATE\tGPUS\tLINKS\tGENERATION\tJOB\tNODES", rings, func(r ringJSON) string {
		return fmt.Sprintf("%d\t%s\t%d\t%d/%d\t%d\t%s\t%s", r.Ring, r.State, r.GPUsTotal, r.LinksConfirmed, r.Links, r.Generation, dash(r.Job), spans(r.Nodes))
	})
}

func printRing(out io.Writer, r *ringJSON) {
	ringRows(out, []ringJSON{*r})
	fmt.Fprintln(out)
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "LINK\tPORT\tSTATE\tLIGHT\tEXPECTED\tLOSSES\tFIBRE")
		for _, x := range r.Joints {
			lit := cli.Either(x.Confirmed, "lit", "no light")
			for i, e := range []endJSON{x.A, x.B} {
				first := [2]string{fmt.Sprintf("%d-%d", x.A.Node, x.B.Node), "  " + lit}[i]
				fmt.Fprintf(w, "%s\t%d/%d %s\t%s\t%s\t%s\t%d\t%s\n", first, e.Node, e.Bundle, e.Path, e.State, orDash(e.Measured), orDash(e.Expected), e.Losses, dash(x.Fibre))
			}
		}
	})
	order := "light does not close the ring now"
	if len(r.GPUOrder) > 0 {
		order = ""
		for _, g := range r.GPUOrder {
			order += fmt.Sprintf(" %d/%d", g[0], g[1])
		}
	}
	fmt.Fprintln(out)
	cli.Say(out, "GPUs as light meets them: %s", strings.TrimSpace(order))
}

// spans writes 1-4,6 for 1 2 3 4 6.
func spans[N proto.NodeID | proto.RingID](ids []N) string {
	return strings.ReplaceAll(health.Spans(ids, len(ids)), ", ", ",")
}
