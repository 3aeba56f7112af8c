package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
)

// Files for launchers, by the order of the light. A rank is a place in a ring:
// rank = ring x TP + position, where position counts GPUs as light meets them,
// which is Megatron's order tp-cp-ep-dp-pp with the ring number dp + DP x pp.
// Nodes alone would not do: light meets a middle node of a line twice.

// Files that there are, beside one of TopoFiles for each host.
var Files = []string{"ranks", "hostfile", "nccl.env", "torch_mesh.json", "megatron.env"}

// rank is one process.
type rank struct {
	rank, ring, position int
	GPU
}

// ranks are the processes of a job, or why there are none now.
func (v *View) ranks() ([]rank, error) {
	if v.Wish != nil && v.Wish.Circuits != nil {
		return nil, &proto.Error{Code: proto.Conflict, Field: "name", Limit: "a job of rings", Reason: fmt.Sprintf("job %s has circuits: seats, domains and orders of the job itself have the order of its ranks", v.ID)}
	}
	var out []rank
	for i, r := range v.Rings {
		if len(r.GPUOrder) == 0 {
			return nil, &proto.Error{Code: proto.Conflict, Field: "state", Limit: "a job whose rings are all closed by light", Reason: fmt.Sprintf("job %s is %s, and its ring %d is not", v.ID, v.State, i)}
		}
		if n := len(v.Rings[0].GPUOrder); len(r.GPUOrder) != n {
			return nil, &proto.Error{Code: proto.Conflict, Field: "state", Limit: "rings of one size", Reason: fmt.Sprintf("job %s is %s: its ring %d has %d GPUs, its first %d", v.ID, v.State, i, len(r.GPUOrder), n)}
		}
		for k, g := range r.GPUOrder {
			out = append(out, rank{len(out), i, k, g})
		}
	}
	if len(out) == 0 {
		return nil, &proto.Error{Code: proto.Conflict, Field: "state", Limit: "a job that has its rings", Reason: fmt.Sprintf("job %s is %s", v.ID, v.State)}
	}
	return out, nil
}

// mesh is torch_mesh.json.
type mesh struct {
	Job        string    `json:"job"`
	Generation uint64    `json:"generation"`
	Dims       [3]string `json:"mesh_dim_names"`
	Mesh       [][][]int `json:"mesh"`  // by dp, pp, tp: a rank
	Hosts      []string  `json:"hosts"` // by rank
	GPUs       []int     `json:"gpus"`  // by rank: of its host
}

// File writes one file; pp is how many rings are one pipeline. The generation of
// the job is in every one, where its readers let it.
func (v *View) File(name string, pp int) (text []byte, kind string, err error) {
	topo := strings.HasPrefix(name, topoPrefix) && strings.HasSuffix(name, topoSuffix)
	if !topo && !slices.Contains(Files, name) {
		return nil, "", &proto.Error{Code: proto.NotFound, Field: "name", Limit: strings.Join(Files, ", ") + ", " + topoPrefix + "HOST" + topoSuffix, Reason: fmt.Sprintf("no file %.80q", name)}
	}
	ranks, err := v.ranks()
	if err != nil {
		return nil, "", err
	}
	if topo {
		text, err = v.topology(name, ranks)
		return text, "application/xml", err
	}
	if pp < 1 || len(v.Rings)%pp != 0 {
		return nil, "", wrong("pp", fmt.Sprintf("a divisor of %s", proto.Count(len(v.Rings), "ring")), "%d", pp)
	}
	tp, dp := len(v.Rings[0].GPUOrder), len(v.Rings)/pp
	var b strings.Builder
	fmt.Fprintf(&b, "# job %s, generation %d, %s, %d rings of %d GPUs\n", v.ID, v.Generation, v.State, len(v.Rings), tp)
	kind = "text/plain; charset=utf-8"
	switch name {
	case "ranks":
		b.WriteString("# rank host gpu ring position\n")
		for _, r := range ranks {
			fmt.Fprintf(&b, "%d %s %d %d %d\n", r.rank, r.Host, r.GPU.GPU, r.ring, r.position)
		}
	case "hostfile":
		b.WriteString("# a host for each rank: SLURM_HOSTFILE with srun -m arbitrary\n")
		for _, r := range ranks {
			b.WriteString(r.Host + "\n")
		}
	case "nccl.env":
		b.WriteString(ncclEnv)
		b.WriteString(v.renumbered())
	case "megatron.env":
		fmt.Fprintf(&b, "# order tp-cp-ep-dp-pp: rank = ring x TP + position, ring = dp + DP x pp\nTENSOR_MODEL_PARALLEL_SIZE=%d\nPIPELINE_MODEL_PARALLEL_SIZE=%d\nDATA_PARALLEL_SIZE=%d\nWORLD_SIZE=%d\n", tp, pp, dp, len(ranks))
	case "torch_mesh.json":
		m := mesh{Job: v.ID, Generation: v.Generation, Dims: [3]string{"dp", "pp", "tp"}}
		for d := range dp {
			var pipeline [][]int
			for p := range pp {
				var ring []int
				for k := range tp {
					ring = append(ring, (d+dp*p)*tp+k)
				}
				pipeline = append(pipeline, ring)
			}
			m.Mesh = append(m.Mesh, pipeline)
		}
		for _, r := range ranks {
			m.Hosts, m.GPUs = append(m.Hosts, r.Host), append(m.GPUs, r.GPU.GPU)
		}
		text, err = json.MarshalIndent(m, "", " ")
		return append(text, '\n'), "application/json", err
	}
	return []byte(b.String()), kind, nil
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

// ncclEnv says what stock NCCL can and cannot do.
const ncclEnv = `# Ring alone: a tree has no path over the light of a ring.
NCCL_ALGO=Ring
# From NCCL 2.30 on: NICs of different subnets have no route to each other.
NCCL_IB_SUBNET_AWARE_ROUTING=1
# Stock NCCL enters a host once in a ring. Light enters a middle host of a line
# twice, so that a line needs one rank per NCCL host, by an NCCL_HOSTID of its own
# for each rank, or a communicator that keeps the order of the file ranks. A ring
# that goes once round a wrapped fabric over a crossed link needs neither.
`
