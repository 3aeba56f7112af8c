package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"ringlight/proto"
)

// jobJSON is one job of a list as people write it.
type jobJSON struct {
	ID         uint32   `json:"id"`
	TP         *uint32  `json:"tp"`
	EP         *uint32  `json:"ep"`
	PP         *uint32  `json:"pp"`
	DP         uint32   `json:"dp"`
	Servers    uint32   `json:"servers"`
	Collective string   `json:"collective"`
	Pods       []uint16 `json:"pods"`
	GPUsTotal  *uint32  `json:"gpus_total"` // for tp 1 and so many replicas
	Duration   uint64   `json:"duration_ms"`
	Deadline   uint64   `json:"deadline_ms"`
	MayPause   uint64   `json:"may_pause_ms"`
	// Of servers joined directly.
	Topology json.RawMessage `json:"topology"`
	Next     uint32          `json:"next"`
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

// inJob names the field of an error as one of a job.
func inJob(i int, err error) error {
	var bad *usageError
	if errors.As(err, &bad) {
		return wrongUsage(fmt.Sprintf("jobs[%d].%s", i, bad.Field), bad.Limit, "%s", bad.Message)
	}
	return err
}

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
		collective, wrong := proto.ParseCollective(j.Collective)
		if wrong != nil {
			return nil, wrongUsage(field(wrong.Field), wrong.Limit, "%s", wrong.Reason)
		}
		s := proto.JobSpec{Job: proto.JobID(j.ID), TP: 1, EP: 1, PP: 1, DP: j.DP, Servers: j.Servers, Pods: j.Pods, Collective: collective}
		for _, d := range []struct {
			name string
			from *uint32
			to   *uint32
		}{{"tp", j.TP, &s.TP}, {"ep", j.EP, &s.EP}, {"pp", j.PP, &s.PP}} {
			if d.from == nil {
				continue
			}
			if *d.from == 0 {
				return nil, wrongUsage(field(d.name), "1 and up", "0")
			}
			*d.to = *d.from
		}
		if j.GPUsTotal != nil {
			if j.TP != nil || j.PP != nil || j.DP != 0 || j.Servers != 0 {
				return nil, wrongUsage(field("gpus_total"), "alone, without tp, pp, dp and servers", "%d beside them", *j.GPUsTotal)
			}
			if *j.GPUsTotal == 0 {
				return nil, wrongUsage(field("gpus_total"), "1 and up", "0")
			}
			s.DP = *j.GPUsTotal
		}
		if s.DP == 0 && s.Servers == 0 {
			return nil, wrongUsage(field("servers"), "servers, dp, or gpus_total", "neither is given")
		}
		for _, d := range []struct {
			name string
			n    uint64
			to   *uint64
		}{{"duration_ms", j.Duration, &s.DurationMillis}, {"deadline_ms", j.Deadline, &s.DeadlineMillis}, {"may_pause_ms", j.MayPause, &s.MayPauseMillis}} {
			if d.n > proto.MaxCount {
				return nil, wrongUsage(field(d.name), fmt.Sprintf("at most %d", uint64(proto.MaxCount)), "%d", d.n)
			}
			*d.to = d.n
		}
		if j.Topology != nil && s.Servers == 0 {
			return nil, wrongUsage(field("servers"), "servers, with topology", "absent")
		}
		t, err := readJobTopology(j.Topology, int(s.Servers), defaultGPUs)
		if err != nil {
			return nil, inJob(i, err)
		}
		s.Topology, s.Next = t, proto.JobID(j.Next)
		out.specs, out.total = append(out.specs, s), append(out.total, j.GPUsTotal != nil)
	}
	return out, nil
}
