package core

import (
	"fmt"
	"strings"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Goal: what a job sends between leaves that none of its links joins goes over the backup
// mesh, over a circuit that is there and nobody's; without a mesh there is no such route.
// Method: a ring through four pods; the routes of ranks two pods apart.
func TestBackupMeshHasRoutes(t *testing.T) {
	for _, backup := range []bool{true, false} {
		c := readyCircuits(&fabric.Core{Pods: 4, LeavesPerPod: 1, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 1, GPUsPerServer: 1,
			Wiring: fabric.Interleaved, IotaMille: 1000, Backup: backup})
		d := c.design(c.jobs.list([]proto.JobSpec{spec(1, 4, 1, 1)}), true)
		c.jobs.all, c.Evidence.maps = d.jobs, d.maps
		over := 0
		routes, _ := ClaimsOf(c).Routes(1)()
		for _, r := range routes {
			var pod, h, port, far, m, to int
			if n, _ := fmt.Sscanf(r.At+" "+r.Out, "pod%d-spine%d ocs%d", &pod, &h, &port); n != 3 || !strings.HasPrefix(r.Next, "pod") {
				continue
			}
			fmt.Sscanf(r.Next, "pod%d-spine%d ocs%d", &far, &m, &to)
			at, odd := c.Evidence.layout.mapOf(h*4 + port)
			from, into := pod, far
			if odd {
				from, into = far, pod
			}
			if c.Evidence.maps[at].to[from] != int32(into) {
				t.Fatalf("%+v: no circuit joins them", r)
			}
			if c.Evidence.maps[at].job[from] == 0 {
				over++
			}
		}
		if t.Logf("%d of %d routes over the mesh", over, len(routes)); backup != (over > 0) {
			t.Errorf("backup %v: %d routes over the mesh: %+v", backup, over, routes)
		}
	}
}
