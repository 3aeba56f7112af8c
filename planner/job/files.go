package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
)

// Files for launchers, by the order of the light. A rank is a place in a tensor
// parallel domain, of rings each ring: rank = domain x TP + position, where position
// counts GPUs as light meets them, which is Megatron's order tp-cp-ep-dp-pp with the
// domain's number cp + CP x (dp + DP x pp). Nodes alone would not do: light meets a
// middle node of a line twice.

// Files that there are, beside one of TopoFiles for each host.
var Files = []string{"ranks", "hostfile", "nccl.env", "torch_mesh.json", "megatron.env", "collectives.json"}

// Split is how a job is divided: rings of one pipeline, or stages of circuits, and
// of those of a stage how many share a sequence. 0: as the job has it, and 1.
type Split struct {
	PP, CP int
	// Of routes: the addresses of GPUs, or of interfaces of servers joined directly, and
	// those of ports of leaves and spines. Zero: DefaultHosts and DefaultPorts.
	Hosts, Ports netip.Prefix
}

// groups are the GPUs of the tensor parallel domains, or why there are none now.
func (v *View) groups() (out [][]GPU, err error) {
	lacks := func(limit, format string, args ...any) error {
		return &proto.Error{Code: proto.Conflict, Field: "state", Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	if v.Circuits != nil {
		for _, d := range v.Circuits.Domains {
			out = append(out, d.GPUs)
		}
	}
	for i, r := range v.Rings {
		if len(r.GPUOrder) == 0 {
			return nil, lacks("a job whose rings are all closed by light", "job %s is %s, and its ring %d is not", v.ID, v.State, i)
		}
		if n := len(v.Rings[0].GPUOrder); len(r.GPUOrder) != n {
			return nil, lacks("rings of one size", "job %s is %s: its ring %d has %d GPUs, its first %d", v.ID, v.State, i, len(r.GPUOrder), n)
		}
		out = append(out, r.GPUOrder)
	}
	if len(out) == 0 {
		return nil, lacks("a job that has its rings or servers", "job %s is %s", v.ID, v.State)
	}
	return out, nil
}

// mesh is torch_mesh.json.
type mesh struct {
	Job        string   `json:"job"`
	Generation uint64   `json:"generation"`
	Dims       []string `json:"mesh_dim_names"`
	Mesh       any      `json:"mesh"`  // by dp, pp, where it is asked for cp, and tp: a rank
	Hosts      []string `json:"hosts"` // by rank
	GPUs       []int    `json:"gpus"`  // by rank: of its host
}

// check fills in what a split leaves out, and says what does not divide a job of
// so many domains.
func (s Split) check(v *View, domains int) (Split, error) {
	s.CP = max(1, s.CP)
	if v.Circuits == nil {
		s.PP = max(1, s.PP)
	} else if s.PP == 0 {
		s.PP = v.ranks.Stages
	} else if s.PP != v.ranks.Stages {
		return s, proto.Wrong("pp", fmt.Sprintf("%d, what its circuits are for", v.ranks.Stages), "%d", s.PP)
	}
	what := "ring"
	if v.Circuits != nil {
		what = "domain"
	}
	if s.PP < 1 || domains%s.PP != 0 {
		return s, proto.Wrong("pp", "a divisor of "+proto.Count(domains, what), "%d", s.PP)
	}
	if n := domains / s.PP; n%s.CP != 0 {
		return s, proto.Wrong("cp", "a divisor of "+proto.Count(n, what), "%d", s.CP)
	}
	return s, nil
}

// File writes one file. The generation of the job is in every one, where its readers
// let it.
func (v *View) File(name string, s Split) (text []byte, kind string, err error) {
	topo := strings.HasPrefix(name, topoPrefix) && strings.HasSuffix(name, topoSuffix)
	if !topo && !strings.HasPrefix(name, routesPrefix) && !slices.Contains(Files, name) {
		return nil, "", &proto.Error{Code: proto.NotFound, Field: "name", Limit: strings.Join(Files, ", ") + ", " + topoPrefix + "HOST" + topoSuffix, Reason: fmt.Sprintf("no file %.80q", name)}
	}
	groups, err := v.groups()
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(name, routesPrefix) {
		text, kind, err = v.routesFile(name, s)
		return text, kind, err
	}
	if topo {
		text, err = v.topology(name, slices.Concat(groups...))
		return text, "application/xml", err
	}
	if s, err = s.check(v, len(groups)); err != nil {
		return nil, "", err
	}
	switch name {
	case "torch_mesh.json":
		return asJSON(v.mesh(groups, s))
	case "collectives.json":
		c, err := v.collectives(s)
		if err != nil {
			return nil, "", err
		}
		return asJSON(c)
	}
	return []byte(v.text(name, groups, s)), "text/plain; charset=utf-8", nil
}

func asJSON(of any) ([]byte, string, error) {
	text, err := json.MarshalIndent(of, "", " ")
	return append(text, '\n'), "application/json", err
}

// text is a file that is none of JSON or XML.
func (v *View) text(name string, groups [][]GPU, s Split) string {
	var b strings.Builder
	what := "ring"
	if v.Circuits != nil {
		what = "domain"
	}
	tp := len(groups[0])
	fmt.Fprintf(&b, "# job %s, generation %d, %s, %s of %s\n", v.ID, v.Generation, v.State, proto.Count(len(groups), what), proto.Count(tp, "GPU"))
	switch name {
	case "ranks":
		fmt.Fprintf(&b, "# rank host gpu %s position\n", what)
		for n, group := range groups {
			for k, g := range group {
				fmt.Fprintf(&b, "%d %s %d %d %d\n", n*tp+k, g.Host, g.GPU, n, k)
			}
		}
	case "hostfile":
		b.WriteString("# a host for each rank: SLURM_HOSTFILE with srun -m arbitrary\n")
		for _, g := range slices.Concat(groups...) {
			b.WriteString(g.Host + "\n")
		}
	case "nccl.env":
		b.WriteString(v.ncclEnv())
		b.WriteString(v.renumbered())
	case "megatron.env":
		fmt.Fprintf(&b, "# order tp-cp-ep-dp-pp: rank = %[1]s x TP + position, %[1]s = cp + CP x (dp + DP x pp)\n", what)
		if wish := int(v.Wish.TP); wish%tp != 0 {
			fmt.Fprintf(&b, "# RING IS SHORT: light joins %d of the %d GPUs that were asked for, by which few models divide; wait for\n# %s, or ask with policy shrink\n# ", tp, wish, Ready)
		}
		fmt.Fprintf(&b, "TENSOR_MODEL_PARALLEL_SIZE=%d\nCONTEXT_PARALLEL_SIZE=%d\nPIPELINE_MODEL_PARALLEL_SIZE=%d\nDATA_PARALLEL_SIZE=%d\nWORLD_SIZE=%d\n",
			tp, s.CP, s.PP, len(groups)/(s.PP*s.CP), len(groups)*tp)
	}
	return b.String()
}

// mesh is the domains by data, pipeline and context parallel.
func (v *View) mesh(groups [][]GPU, s Split) mesh {
	m := mesh{Job: v.ID, Generation: v.Generation, Dims: []string{"dp", "pp", "tp"}}
	tp, dp := len(groups[0]), len(groups)/(s.PP*s.CP)
	domain := func(n int) (ranks []int) {
		for k := range tp {
			ranks = append(ranks, n*tp+k)
		}
		return ranks
	}
	if s.CP > 1 {
		m.Dims = []string{"dp", "pp", "cp", "tp"}
	}
	var all []any
	for d := range dp {
		var pipeline []any
		for p := range s.PP {
			var sequence [][]int
			for c := range s.CP {
				sequence = append(sequence, domain(c+s.CP*(d+dp*p)))
			}
			if s.CP > 1 {
				pipeline = append(pipeline, sequence)
			} else {
				pipeline = append(pipeline, sequence[0])
			}
		}
		all = append(all, pipeline)
	}
	m.Mesh = all
	for _, g := range slices.Concat(groups...) {
		m.Hosts, m.GPUs = append(m.Hosts, g.Host), append(m.GPUs, g.GPU)
	}
	return m
}

// renumbered says where hosts number their GPUs otherwise than light goes through
// them: NCCL and CUDA_VISIBLE_DEVICES mean the host's numbers.
func (v *View) renumbered() string {
	var b strings.Builder
	for _, host := range slices.Sorted(maps.Keys(v.hosts)) {
		var own []string
		other := false
		for i, g := range v.hosts[host] {
			own = append(own, strconv.Itoa(g.Index))
			other = other || g.Index != i
		}
		if other {
			fmt.Fprintf(&b, "# %s: its GPUs from left to right are %s; ranks has these numbers\n", host, strings.Join(own, " "))
		}
	}
	return b.String()
}
