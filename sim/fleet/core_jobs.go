package fleet

import (
	"slices"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// JobLists draws job lists for a core that follow one another: in each some
// jobs have ended, some go on and some are new.
func JobLists(core *fabric.Core, seed uint64, lists int) [][]proto.JobSpec {
	draw := random{seed: detmath.Hash(seed, streamJobs)}
	servers := core.Leaves() * core.ServersPerLeaf
	var out [][]proto.JobSpec
	var list []proto.JobSpec
	id := proto.JobID(0)
	for range lists {
		list = slices.DeleteFunc(slices.Clone(list), func(proto.JobSpec) bool { return draw.chance(350_000) })
		used := 0
		for _, j := range list {
			used += int(j.Servers)
		}
		for tries := 0; used < servers && tries < 4; tries++ {
			tp, pp := 1<<draw.below(2), 1<<draw.below(2)
			whole := tp * pp // servers of a replica
			n := (2 + draw.below(max(2, servers/2))) / whole * whole
			if n == 0 || used+n > servers {
				continue
			}
			id++
			list = append(list, proto.JobSpec{Job: id, TP: uint32(tp * core.GPUsPerServer), EP: 1, PP: uint32(pp), Servers: uint32(n)})
			used += n
		}
		out = append(out, slices.Clone(list))
	}
	return out
}

// streamJobs is the stream of job lists, beside those of station.go.
const streamJobs = 64
