package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// ranksOf is the file ranks of a job: host and GPU by rank.
func ranksOf(t *testing.T, v *job.View) (out []string) {
	t.Helper()
	text, _, err := v.File("ranks", job.Split{})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var rank, gpu, domain, position int
		var host string
		if n, _ := fmt.Sscan(line, &rank, &host, &gpu, &domain, &position); n < 5 {
			continue
		}
		if rank != len(out) {
			t.Errorf("%q after %d lines", line, len(out))
		}
		out = append(out, fmt.Sprintf("%s %d", host, gpu))
	}
	return out
}

// Goal: a job of circuits has servers and GPUs by name, each rank one and no two jobs
// the same one; it keeps them while others come and go and planners start anew; every
// file of a launcher is there.
// Method: jobs on each kind of core, of parts of servers too; the files read by rank.
func TestCircuitsHaveRanks(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			w := startedWorld(t, k.core())
			wishes := []string{`{"circuits":{"gpus_total":2}}`, `{"circuits":{"gpus_total":2}}`, `{"circuits":{"gpus_total":8}}`}
			has := map[string]string{} // GPU: job
			was := map[string]string{}
			for i, wish := range append(wishes, wishes...) {
				id := fmt.Sprint("j", i)
				if i == len(wishes) { // the first goes, and a planner starts
					w.release("j0")
					for gpu, of := range has {
						if of == "j0" {
							delete(has, gpu)
						}
					}
					w.run(time.Second)
					w.start()
					w.run(2 * time.Second)
				}
				if r := w.put(id, wish); r.Code != proto.OK {
					t.Fatalf("%+v", r)
				}
				w.run(2 * time.Second)
				if w.job(id).State == job.Waiting {
					continue
				}
				for _, gpu := range ranksOf(t, w.job(id)) {
					if has[gpu] != "" {
						t.Errorf("%s is of %s and %s", gpu, has[gpu], id)
					}
					has[gpu] = id
				}
				was[id] = strings.Join(ranksOf(t, w.job(id)), ", ")
			}
			for id, ranks := range was {
				if id != "j0" && strings.Join(ranksOf(t, w.job(id)), ", ") != ranks {
					t.Errorf("job %s moved from %s to %v", id, ranks, ranksOf(t, w.job(id)))
				}
			}
			if len(was) < 4 {
				t.Errorf("too few jobs: %v", was)
			}
			for _, name := range job.Files {
				if text, _, err := w.job("j2").File(name, job.Split{}); err != nil || len(text) == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// Goal: between pods, ranks are in the order that circuits are for: a ring of replicas
// leaves each pod as often as the plan has links for, with stages and with context
// parallel too; what does not divide the job is refused.
// Method: a job over four pods; crossings of pods of each group counted by host name.
// Reference: [LUMOS] eq. 42, 43
func TestRanksOfPodsAreRings(t *testing.T) {
	core := fabric.DefaultCore(4)
	core.ServersPerLeaf = 1
	w := startedWorld(t, core)
	for id, wish := range map[string]string{"one": `{"circuits":{"tp":4,"servers":8}}`, "two": `{"circuits":{"tp":4,"pp":2,"dp":4}}`} { // any order: both fit
		if r := w.put(id, wish); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
	}
	w.run(5 * time.Second)
	for id, stages := range map[string]int{"one": 1, "two": 2} { // any order: each by itself
		v := w.job(id)
		text, _, err := v.File("collectives.json", job.Split{})
		var c struct {
			Groups []struct {
				Stage, Position int
				Ranks           []int
			}
		}
		if err != nil || json.Unmarshal(text, &c) != nil || len(c.Groups) != 4*stages {
			t.Fatalf("%v %s", err, text)
		}
		ranks := ranksOf(t, v)
		for _, g := range c.Groups {
			crossed, pods := 0, map[int]bool{}
			pod := func(n int) (leaf int) {
				fmt.Sscanf(ranks[g.Ranks[n%len(g.Ranks)]], "leaf%d-", &leaf)
				return leaf / core.LeavesPerPod
			}
			for n := range g.Ranks {
				pods[pod(n)] = true
				if pod(n) != pod(n+1) {
					crossed++
				}
			}
			if len(pods) > 1 && crossed != 2*(len(pods)-1) || len(g.Ranks) != 8/stages {
				t.Errorf("job %s, stage %d, position %d: %d crossings of %d pods, ranks %v", id, g.Stage, g.Position, crossed, len(pods), g.Ranks)
			}
			up := g.Ranks[0] < g.Ranks[1]
			if id == "one" && up != (g.Position%2 == 0) {
				t.Errorf("position %d goes %v", g.Position, g.Ranks)
			}
		}
		for _, s := range []struct {
			job.Split
			want string
		}{{job.Split{}, fmt.Sprintf("CONTEXT_PARALLEL_SIZE=1\nPIPELINE_MODEL_PARALLEL_SIZE=%d\nDATA_PARALLEL_SIZE=%d\n", stages, 8/stages)},
			{job.Split{CP: 2}, fmt.Sprintf("CONTEXT_PARALLEL_SIZE=2\nPIPELINE_MODEL_PARALLEL_SIZE=%d\nDATA_PARALLEL_SIZE=%d\n", stages, 4/stages)},
			{job.Split{CP: 3}, "cp"}, {job.Split{PP: 4}, "pp"}} {
			text, _, err := v.File("megatron.env", s.Split)
			if e := proto.AsError(err); e != nil && e.Field != s.want || e == nil && !strings.Contains(string(text), s.want) {
				t.Errorf("job %s, %+v: %v %s", id, s.Split, err, text)
			}
		}
		text, _, err = v.File("torch_mesh.json", job.Split{CP: 2})
		if got := strings.Join(strings.Fields(string(text)), ""); err != nil || !strings.Contains(got, fmt.Sprintf(`"mesh_dim_names":["dp","pp","cp","tp"],"mesh":[[[[0,1,2,3],[4,5,6,7]]%s`, strings.Repeat(`,[[16,17,18,19],[20,21,22,23]]`, stages-1))) {
			t.Errorf("job %s: %v %s", id, err, got)
		}
	}
}
