package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// topoPrefix and topoSuffix stand around a host's name in the name of its file.
const topoPrefix, topoSuffix = "nccl_topo_", ".xml"

// TopoFiles are the names of the files for NCCL's view of each host of a job, in
// the order in which light meets the hosts.
func (v *View) TopoFiles() (names []string) {
	var all []GPU
	for _, r := range v.Rings {
		all = append(all, r.GPUOrder...)
	}
	if v.Circuits != nil {
		for _, d := range v.Circuits.Domains {
			all = append(all, d.GPUs...)
		}
	}
	seen := map[string]bool{}
	for _, g := range all {
		if !seen[g.Host] {
			names = append(names, topoPrefix+g.Host+topoSuffix)
		}
		seen[g.Host] = true
	}
	return names
}

// topology writes what is known of a host for NCCL. NCCL does not detect again a
// device that the file has, nor what is above it. So the file has GPUs alone, and
// only those whose place is known.
func (v *View) topology(name string, ranks []GPU) (text []byte, err error) {
	host := strings.TrimSuffix(strings.TrimPrefix(name, topoPrefix), topoSuffix)
	var mine []int // ranks
	for rank, g := range ranks {
		if g.Host == host {
			mine = append(mine, rank)
		}
	}
	if mine == nil {
		return nil, &proto.Error{Code: proto.NotFound, Field: "name", Limit: "a host of the job", Reason: fmt.Sprintf("no host %.80q", host)}
	}
	row := v.hosts[host]
	if len(row) == 0 || slices.ContainsFunc(row, func(g fabric.GPU) bool { return g.PCI == "" || g.NUMA == nil }) {
		return nil, &proto.Error{Code: proto.Conflict, Field: "gpu_table", Limit: "pci and numa of every GPU of the host, in the fabric's description", Reason: fmt.Sprintf("host %.80q is not described so far", host)}
	}
	var b strings.Builder
	// Names may have two hyphens in a row, which no comment may.
	fmt.Fprintf(&b, "<!-- generation %d, %s: ranks %s of the job. -->\n%s", v.Generation, v.State, runs(mine), topoNote)
	fmt.Fprintf(&b, "<system version=\"1\" name=\"job %s generation %d host %s\">\n", v.ID, v.Generation, host)
	row = slices.Clone(row)
	slices.SortStableFunc(row, func(x, y fabric.GPU) int {
		if d := *x.NUMA - *y.NUMA; d != 0 {
			return d
		}
		return strings.Compare(x.Switch+" "+x.PCI, y.Switch+" "+y.PCI)
	})
	for i, g := range row {
		newCPU := i == 0 || *row[i-1].NUMA != *g.NUMA
		newSwitch := newCPU || row[i-1].Switch != g.Switch
		if newCPU {
			fmt.Fprintf(&b, "  <cpu numaid=\"%d\">\n", *g.NUMA)
		}
		if newSwitch && g.Switch != "" {
			fmt.Fprintf(&b, "    <pci busid=\"%s\" class=\"0x060400\">\n", g.Switch)
		}
		fmt.Fprintf(&b, "      <pci busid=\"%s\" class=\"0x030200\">\n        <gpu dev=\"%d\"/>\n      </pci>\n", g.PCI, g.Index)
		last := i == len(row)-1 || *row[i+1].NUMA != *g.NUMA
		if g.Switch != "" && (last || row[i+1].Switch != g.Switch) {
			b.WriteString("    </pci>\n")
		}
		if last {
			b.WriteString("  </cpu>\n")
		}
	}
	b.WriteString("</system>\n")
	return []byte(b.String()), nil
}

// runs are numbers in short.
func runs(list []int) string {
	var words []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		word := strconv.Itoa(list[i])
		if j > i {
			word += " to " + strconv.Itoa(list[j])
		}
		words, i = append(words, word), j+1
	}
	return strings.Join(words, ", ")
}

// topoNote says what the file leaves out.
const topoNote = `<!-- For NCCL_TOPO_FILE, of this host alone: no file of NCCL describes a ring of
hosts. It has the numbers of the GPUs, their PCI addresses, the switch above them
and the NUMA node, as the fabric's description has them. Left out, for NCCL to find
on the host: sm, rank and gdr of GPUs, NVLink, speed and width of PCI links, CPUs'
kind, and all NICs. Light of a ring is no NIC: which GPU it leads to is in ranks. -->
`
