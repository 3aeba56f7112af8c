package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

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
}

func ringOf(s *proto.RingStatus) ringJSON {
	return ringJSON{s.Ring, append([]proto.NodeID{}, s.Nodes...), s.GPUs, s.State.String(), s.Generation, s.Links, s.LinksConfirmed}
}

const ringHelp = `ocsctl ring list | show RING [flags]

A ring is in_service when all its members report the generation that last
touched it and light confirms every link; degraded when it is closed with
fewer GPUs.

  ocsctl ring list
  ocsctl ring show 3 -json
`

func ringNoun(ctx context.Context, args []string, out io.Writer) error {
	return listing[proto.RingStatus, ringJSON]{
		noun: "ring", help: ringHelp, least: 1, list: proto.NounRings,
		show: func(id uint32) proto.OpRequest {
			return proto.OpRequest{Noun: proto.NounRing, Ring: proto.RingID(id)}
		},
		of:   func(r *proto.OpReply) []proto.RingStatus { return r.Rings },
		form: ringOf, table: ringRows,
	}.run(ctx, args, out)
}

func ringRows(w io.Writer, rings []ringJSON) {
	fmt.Fprintln(w, "RING\tSTATE\tGPUS\tLINKS\tGENERATION\tNODES")
	for _, r := range rings {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d/%d\t%d\t%s\n", r.Ring, r.State, r.GPUsTotal, r.LinksConfirmed, r.Links, r.Generation, spans(r.Nodes))
	}
}

// spans writes 1-4,6 for 1 2 3 4 6.
func spans(nodes []proto.NodeID) string {
	var b strings.Builder
	for i := 0; i < len(nodes); {
		j := i
		for j+1 < len(nodes) && nodes[j+1] == nodes[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(nodes[i]), 10))
		if j > i {
			b.WriteString("-" + strconv.FormatUint(uint64(nodes[j]), 10))
		}
		i = j + 1
	}
	return b.String()
}
