package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"ringlight/planner/job"
	"ringlight/proto"
)

// jobJSON is one job of a list as people write it: what a job asks for that has a
// name, except for the job it follows, and for traffic that a model may say.
type jobJSON struct {
	ID uint32 `json:"id"`
	job.Circuits
	Topology json.RawMessage `json:"topology"`
	Phases   []phaseJSON     `json:"phases"`
	Next     uint32          `json:"next"`
}

// phaseJSON is a phase of a job as people write it.
type phaseJSON struct {
	Name     string          `json:"name"`
	Topology json.RawMessage `json:"topology"`
}

// readPhases reads those of a job of so many servers.
func readPhases(list []phaseJSON, servers int) (out []proto.JobPhase, err error) {
	for n, p := range list {
		t, err := readJobTopology(p.Topology, servers, defaultGPUs)
		if err == nil && t == nil {
			err = wrongUsage("topology", "what the phase sends", "absent")
		}
		if err != nil {
			return nil, usageAt(fmt.Sprintf("phases[%d].", n), err)
		}
		out = append(out, proto.JobPhase{Name: p.Name, Topology: *t})
	}
	return out, nil
}

// trafficOf is what a topology has, as the job API takes it.
func trafficOf(t *proto.JobTopology) job.Traffic {
	out := job.Traffic{Degree: t.Degree, Bidirectional: t.Bidirectional, Method: t.Method.String(), Seed: t.Seed}
	for _, g := range t.AllReduce {
		out.AllReduce = append(out.AllReduce, job.Reduce{Servers: g.Servers, Bytes: g.Bytes})
	}
	for _, d := range t.MP {
		out.MP = append(out.MP, [3]uint64{uint64(d.From), uint64(d.To), d.Bytes})
	}
	return out
}

// jobFile is a job list as read.
type jobFile struct {
	specs []proto.JobSpec
	total []bool // by job: its size was given as gpus_total
}

// field is what the writer of a list calls a field of it.
func (f *jobFile) field(name string) string {
	var i int
	if n, _ := fmt.Sscanf(name, "jobs[%d]", &i); n == 1 && strings.HasSuffix(name, ".dp") && i < len(f.total) && f.total[i] {
		return fmt.Sprintf("jobs[%d].gpus_total", i)
	}
	return name
}

// maxJobList bounds what is read. chosen: the longest list with long numbers.
const maxJobList = 1 << 20

// readJobs reads a job list strictly. What needs no planner to be known wrong
// is refused here.
func readJobs(name string) (*jobFile, error) {
	raw, err := readInput(os.Stdin, name, maxJobList)
	if err != nil {
		return nil, err
	}
	return parseJobs(raw)
}

// defaultGPUs of a server by which a model is divided: as fabric new has it.
const defaultGPUs = 4

func parseJobs(raw []byte) (*jobFile, error) {
	var list struct {
		Jobs *[]jobJSON `json:"jobs"`
	}
	if err := proto.DecodeFile(raw, &list); err != nil {
		return nil, wrongUsage("jobs", "one JSON object of the documented keys", "%v", err)
	}
	if list.Jobs == nil {
		return nil, wrongUsage("jobs", "a list, empty to end all jobs", "there is none")
	}
	if len(*list.Jobs) > proto.MaxJobs {
		return nil, wrongUsage("jobs", fmt.Sprintf("at most %d", proto.MaxJobs), "%d", len(*list.Jobs))
	}
	seen := map[uint32]int{}
	out := &jobFile{specs: []proto.JobSpec{}}
	for i, j := range *list.Jobs {
		field := func(name string) string { return fmt.Sprintf("jobs[%d].%s", i, name) }
		if before, twice := seen[j.ID]; twice {
			return nil, wrongUsage(field("id"), "each id once", "jobs[%d] is job %d too", before, j.ID)
		}
		seen[j.ID] = i
		if j.ID == 0 {
			return nil, wrongUsage(field("id"), "1 and up", "absent or 0")
		}
		s, bad := j.Spec()
		if bad != nil {
			return nil, wrongUsage(field(bad.Field), bad.Limit, "%s", bad.Reason)
		}
		s.Job = proto.JobID(j.ID)
		if j.Topology != nil && s.Servers == 0 {
			return nil, wrongUsage(field("servers"), "servers, with topology", "absent")
		}
		t, err := readJobTopology(j.Topology, int(s.Servers), defaultGPUs)
		if err != nil {
			return nil, usageAt(field(""), err)
		}
		if s.Phases, err = readPhases(j.Phases, int(s.Servers)); err != nil {
			return nil, usageAt(field(""), err)
		}
		s.Topology, s.Next = t, proto.JobID(j.Next)
		out.specs, out.total = append(out.specs, s), append(out.total, j.GPUsTotal != nil)
	}
	return out, nil
}

// readCircuits reads what one job asks for, as a list has it but for its id.
func readCircuits(name string) (*job.Circuits, error) {
	raw, err := readInput(os.Stdin, name, maxJobList)
	if err != nil {
		return nil, err
	}
	var in struct {
		job.Circuits
		Topology json.RawMessage `json:"topology"`
		Phases   []phaseJSON     `json:"phases"`
	}
	if err := proto.DecodeFile(raw, &in); err != nil {
		return nil, wrongUsage("circuits", "one JSON object of the documented keys", "%v", err)
	}
	c := &in.Circuits
	phases, err := readPhases(in.Phases, int(c.Servers))
	if err != nil {
		return nil, err
	}
	for _, p := range phases {
		c.Phases = append(c.Phases, job.Phase{Name: p.Name, Topology: trafficOf(&p.Topology)})
	}
	if in.Topology == nil {
		return c, nil
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(in.Topology, &keys) == nil && keys["model"] != nil { // the planner divides it, and knows the servers
		c.Topology = new(job.Traffic)
		if err := proto.DecodeFile(in.Topology, c.Topology); err != nil {
			return nil, wrongUsage("topology", "the documented keys", "%v", err)
		}
		return c, nil
	}
	t, err := readJobTopology(in.Topology, int(c.Servers), defaultGPUs)
	if err != nil {
		return nil, err
	}
	c.Topology = new(trafficOf(t))
	return c, nil
}
