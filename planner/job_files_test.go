package planner

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// hostTable is a fabric of which every host counts its GPUs in its own way.
func hostTable(t *testing.T, pci bool) *fleet {
	p := fabric.Params{Name: "f", Nodes: 12, GPUsPerNode: 4, K: 2, TP: 16}
	for id := range p.Nodes {
		p.NodeNames = append(p.NodeNames, fmt.Sprintf("n--%02d", id)) // two hyphens end no comment
		var row []fabric.GPU
		for i := range 4 {
			g := fabric.GPU{Index: (i*3 + id) % 4} // a permutation of its own
			if pci {
				numa := g.Index / 2
				g.PCI, g.NUMA = fmt.Sprintf("0000:%02x:00.0", 0x10+g.Index*8+id), &numa
				if g.Index != 3 {
					g.Switch = fmt.Sprintf("0000:0%d:00.0", numa+1)
				}
			}
			row = append(row, g)
		}
		p.GPUTable = append(p.GPUTable, row)
	}
	return started(t, p)
}

// Goal: a host that counts its GPUs otherwise than light goes through it is given
// its own numbers, in the order, ranks, torch_mesh.json and nccl.env.
// Method: the order by places, of the planner's rings, turned by hand.
func TestHostsNumbersOfGPUs(t *testing.T) {
	w := hostTable(t, false)
	if r := w.put("a", `{"tp":24,"nodes":["n--[00-05]"]}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	a := w.job("a")
	if a.State != job.Ready || len(a.Rings[0].GPUOrder) != 24 {
		t.Fatalf("%+v", a)
	}
	var ranks, mesh []string
	for rank, g := range w.p.Rings.Placed.Ring(a.Rings[0].Ring).GPUOrder {
		index := (int(g.GPU)*3 + int(g.Node)) % 4
		if got := a.Rings[0].GPUOrder[rank]; got != (job.GPU{Host: fmt.Sprintf("n--%02d", g.Node), GPU: index}) {
			t.Errorf("rank %d is %v, want node %d index %d", rank, got, g.Node, index)
		}
		ranks = append(ranks, fmt.Sprintf("%d n--%02d %d 0 %d", rank, g.Node, index, rank))
		mesh = append(mesh, fmt.Sprint(index))
	}
	file := func(name string) string {
		text, _, err := a.File(name, job.Split{})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := strings.Join(slices.DeleteFunc(strings.Split(strings.TrimSpace(file("ranks")), "\n"), func(l string) bool { return l[0] == '#' }), "\n"); got != strings.Join(ranks, "\n") {
		t.Errorf("ranks:\n%s\nwant\n%s", got, strings.Join(ranks, "\n"))
	}
	if got := strings.Join(strings.Fields(file("torch_mesh.json")), ""); !strings.Contains(got, `"gpus":[`+strings.Join(mesh, ",")+`]`) {
		t.Errorf("%s, want %v", got, mesh)
	}
	if got := file("nccl.env"); !strings.Contains(got, "# n--01: its GPUs from left to right are 1 0 3 2;") || strings.Contains(got, "n--07") {
		t.Error(got)
	}
	if _, _, err := a.File("nccl_topo_n--01.xml", job.Split{}); proto.AsError(err) == nil || proto.AsError(err).Field != "gpu_table" {
		t.Errorf("without addresses: %v", err)
	}
}

// Goal: nccl_topo_{host}.xml is one that NCCL's parser takes, has each GPU of the
// host once where the table says, and nothing that nobody knows.
// Method: a reader by the rules of that parser, written for this: which element may
// stand in which, what each must have, how long a value is, a blank alone between
// attributes, at most so many children; and a reader of XML that is not ours.
func TestTopologyFilesAreNCCLs(t *testing.T) {
	w := hostTable(t, true)
	if r := w.put("a", `{"tp":24,"nodes":["n--[00-05]"]}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	a := w.job("a")
	if len(a.TopoFiles()) != 6 {
		t.Fatal(a.TopoFiles())
	}
	for id := range 6 {
		text, kind, err := a.File(fmt.Sprintf("nccl_topo_n--%02d.xml", id), job.Split{})
		if err != nil || kind != "application/xml" {
			t.Fatal(kind, err)
		}
		gpus, err := readTopology(string(text))
		if err != nil {
			t.Errorf("node %d: %v\n%s", id, err, text)
		}
		want := map[string]string{}
		for _, g := range w.fab.GPUTable[id] {
			place := fmt.Sprintf("cpu %d", *g.NUMA)
			if g.Switch != "" {
				place += " pci " + g.Switch
			}
			want[fmt.Sprint(g.Index)] = place + " pci " + g.PCI
		}
		if fmt.Sprint(gpus) != fmt.Sprint(want) {
			t.Errorf("node %d: %v, want %v", id, gpus, want)
		}
		if !strings.Contains(string(text), fmt.Sprintf(`name="job a generation %d host n--%02d"`, a.Generation, id)) || !strings.Contains(string(text), "Left out") {
			t.Errorf("%s", text)
		}
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			if _, err := d.Token(); err != nil {
				if err.Error() != "EOF" {
					t.Error(err)
				}
				break
			}
		}
		for what, spoilt := range map[string]string{
			"version": strings.Replace(string(text), `version="1"`, `version="2"`, 1), "element": strings.ReplaceAll(string(text), "gpu dev", "fpga dev"),
			"blank": strings.Replace(string(text), `" class`, "\"\tclass", 1), "close": strings.Replace(string(text), "</cpu>", "", 1),
			"busid": strings.Replace(string(text), "busid", "bus", 1), "numaid": strings.Replace(string(text), "numaid", "numa", 1),
		} {
			if got, err := readTopology(spoilt); err == nil && fmt.Sprint(got) == fmt.Sprint(want) {
				t.Errorf("a wrong %s passes", what)
			}
		}
	}
	for _, name := range []string{"nccl_topo_n--07.xml", "nccl_topo_.xml", "nccl_topo_x.xml"} {
		if _, _, err := a.File(name, job.Split{}); proto.AsError(err) == nil || proto.AsError(err).Code != proto.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readTopology reads a file by the rules of NCCL's parser; gpus are the places of
// GPUs by number.
func readTopology(text string) (gpus map[string]string, err error) {
	children := map[string]string{"": "system", "system": "cpu", "cpu": "pci nic", "pci": "pci gpu nic pcilink", "gpu": "nvlink c2c", "nic": "net"}
	needs := map[string][]string{"system": {"version"}, "cpu": {"numaid"}, "pci": {"busid", "class"}, "gpu": {"dev"}, "net": {"name"}}
	gpus = map[string]string{}
	var open, place []string
	count := map[int]int{}
	for {
		text = strings.TrimLeft(text, " \n\r")
		if text == "" {
			break
		}
		if text[0] != '<' {
			return gpus, fmt.Errorf("expected <, got %.20q", text)
		}
		if strings.HasPrefix(text, "<!--") {
			_, rest, ok := strings.Cut(text, "-->")
			if !ok {
				return gpus, fmt.Errorf("a comment without an end")
			}
			text = rest
			continue
		}
		tag, rest, _ := strings.Cut(text[1:], ">")
		text = rest
		if name, closing := strings.CutPrefix(tag, "/"); closing {
			if len(open) == 0 || open[len(open)-1] != name {
				return gpus, fmt.Errorf("%s closes %v", name, open)
			}
			open, place = open[:len(open)-1], place[:len(place)-1]
			continue
		}
		tag, single := strings.CutSuffix(tag, "/")
		words := strings.SplitN(tag, " ", 2)
		name, attrs := words[0], map[string]string{}
		for left := strings.Join(words[1:], ""); left != ""; {
			key, value, ok := strings.Cut(left, "=\"")
			value, next, closed := strings.Cut(value, "\"")
			if !ok || !closed || strings.ContainsAny(key, " \t\n") || len(value) > 253 || len(attrs) == 16 {
				return gpus, fmt.Errorf("attribute %q of %s", left, name)
			}
			attrs[key] = value
			if left = strings.TrimPrefix(next, " "); left == next && left != "" {
				return gpus, fmt.Errorf("no blank before %q", left)
			}
		}
		parent := ""
		if len(open) > 0 {
			parent = open[len(open)-1]
		}
		if !slices.Contains(strings.Fields(children[parent]), name) {
			return gpus, fmt.Errorf("%s in %q", name, parent)
		}
		if count[len(open)]++; count[len(open)] > 128 {
			return gpus, fmt.Errorf("too many %s", name)
		}
		for _, key := range needs[name] {
			if attrs[key] == "" {
				return gpus, fmt.Errorf("%s without %s", name, key)
			}
		}
		switch name {
		case "system":
			if attrs["version"] != "1" {
				return gpus, fmt.Errorf("version %s", attrs["version"])
			}
		case "gpu":
			gpus[attrs["dev"]] = strings.TrimSpace(strings.Join(place, " "))
		}
		if !single {
			open = append(open, name)
			place = append(place, map[string]string{"cpu": "cpu " + attrs["numaid"], "pci": "pci " + attrs["busid"]}[name])
		}
	}
	if len(open) > 0 {
		return gpus, fmt.Errorf("unterminated %v", open)
	}
	return gpus, nil
}
