package fabric

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ringlight/proto"
)

// ToR is a switch of the data centre network and the nodes right under it.
type ToR struct {
	Name   string         `json:"name,omitempty"`
	Domain int            `json:"domain,omitempty"` // ToRs with the same number are under the same aggregation switches
	Nodes  []proto.NodeID `json:"nodes"`
}

// maxDomain of a ToR; chosen: one for every node there can be.
const maxDomain = MaxNodes

// KnowsToRs reports whether the description says under which ToR nodes are.
func (f *Fabric) KnowsToRs() bool { return f.NodesPerToR > 0 || len(f.ToRs) > 0 }

// ToRCount is the number of ToRs.
func (f *Fabric) ToRCount() int {
	if len(f.ToRs) > 0 {
		return len(f.ToRs)
	}
	return f.Nodes / f.NodesPerToR
}

// ToR is the number of the switch that a node is under, where the description says.
func (f *Fabric) ToR(n proto.NodeID) int {
	if len(f.ToRs) > 0 {
		return int(f.under[n])
	}
	return int(n) % f.ToRCount()
}

// ToRDomain is the aggregation domain of a ToR.
func (f *Fabric) ToRDomain(tor int) int {
	if len(f.ToRs) > 0 {
		return f.ToRs[tor].Domain
	}
	return tor / (f.NodesPerDomain / f.NodesPerToR)
}

// shelve makes the index of who is under which ToR; Validate has passed.
func (f *Fabric) shelve() {
	f.under = nil
	if len(f.ToRs) > 0 {
		f.under = make([]int32, f.Nodes)
	}
	for tor := range f.ToRs {
		for _, n := range f.ToRs[tor].Nodes {
			f.under[n] = int32(tor)
		}
	}
}

// validateDCN checks where the nodes stand in the data centre network.
func (f *Fabric) validateDCN() []error {
	tor, domain := f.NodesPerToR, f.NodesPerDomain
	switch {
	case len(f.ToRs) > 0 && (tor != 0 || domain != 0):
		return []error{wrong("tors", "instead of nodes_per_tor and nodes_per_domain, not beside them", "%d and %d", tor, domain)}
	case len(f.ToRs) > 0:
		return f.validateToRs()
	case f.Rails && tor == 0:
		return []error{wrong("rails", "absent where nothing says which nodes share switches", "true")}
	case tor == 0 && domain == 0:
	case tor < 1 || f.Nodes%tor != 0:
		return []error{wrong("nodes_per_tor", fmt.Sprintf("a divisor of the %d nodes; tors takes ToRs of any sizes", f.Nodes), "%d", tor)}
	case domain < tor || domain%tor != 0 || domain > f.Nodes:
		return []error{wrong("nodes_per_domain", fmt.Sprintf("a multiple of nodes_per_tor %d, up to %d", tor, f.Nodes), "%d", domain)}
	}
	return nil
}

func (f *Fabric) validateToRs() (errs []error) {
	add := func(field, limit, format string, args ...any) bool {
		errs = append(errs, wrong(field, limit, format, args...))
		return len(errs) < maxErrors
	}
	under := make([]int, f.Nodes) // ToR, from 1
	for i, t := range f.ToRs {
		key := fmt.Sprintf("tors[%d].", i)
		if t.Name != "" && !validLabel(t.Name) && !add(key+"name", "1 to 64 letters, digits and . _ - /", "%.80q", t.Name) ||
			(t.Domain < 0 || t.Domain > maxDomain) && !add(key+"domain", fmt.Sprintf("0 to %d", maxDomain), "%d", t.Domain) ||
			len(t.Nodes) == 0 && !add(key+"nodes", "at least one node", "none") {
			return errs
		}
		for _, n := range t.Nodes {
			if int(n) >= f.Nodes {
				if !add(key+"nodes", fmt.Sprintf("nodes below %d", f.Nodes), "%d", n) {
					return errs
				}
			} else if under[n] != 0 && !add(key+"nodes", "every node under one ToR", "node %d is under tors[%d], too", n, under[n]-1) {
				return errs
			} else {
				under[n] = i + 1
			}
		}
	}
	if n := slices.Index(under, 0); n >= 0 && len(errs) == 0 {
		add("tors", "every node under one ToR", "node %d is under none", n)
	}
	return errs
}

// ReadToRs makes a description with the ToRs of a list: CSV without a heading, in
// each line a node by number or name, the name of its ToR, and the number of the
// aggregation domain, which may be absent. # begins a line that is skipped.
func (f *Fabric) ReadToRs(list []byte) (*Fabric, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(list, []byte("\ufeff")))) // spreadsheets write one
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, wrong("tors", "lines of NODE,TOR[,DOMAIN]", "%v", err)
	}
	g := *f
	g.ToRs, g.NodesPerToR, g.NodesPerDomain = nil, 0, 0
	at := map[string]int{}
	for i, row := range rows {
		line := fmt.Sprintf("tors, line %d", i+1)
		if len(row) != 2 && len(row) != 3 {
			return nil, wrong(line, "NODE,TOR[,DOMAIN]", "%d fields", len(row))
		}
		n, ok := f.FindNode(row[0])
		if !ok {
			return nil, wrong(line, "a node of the fabric, by number or name", "%.80q", row[0])
		}
		domain := 0
		if len(row) == 3 {
			if domain, err = strconv.Atoi(row[2]); err != nil {
				return nil, wrong(line, "the number of a domain", "%.80q", row[2])
			}
		}
		tor, ok := at[row[1]]
		if !ok {
			tor, at[row[1]] = len(g.ToRs), len(g.ToRs)
			g.ToRs = append(g.ToRs, ToR{Name: row[1], Domain: domain})
		}
		if g.ToRs[tor].Domain != domain {
			return nil, wrong(line, "one domain a ToR", "%s is in %d and %d", row[1], g.ToRs[tor].Domain, domain)
		}
		g.ToRs[tor].Nodes = append(g.ToRs[tor].Nodes, n)
	}
	if err := errors.Join(g.validateDCN()...); err != nil {
		return nil, err
	}
	g.shelve()
	return &g, nil
}
