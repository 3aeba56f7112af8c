package main

import (
	"fmt"
	"os"

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
}

// maxJobList bounds what is read. chosen: the longest list with long numbers.
const maxJobList = 1 << 20

// readJobs reads a job list strictly. What needs no planner to be known wrong
// is refused here.
func readJobs(name string) ([]proto.JobSpec, error) {
	raw, err := readInput(os.Stdin, name, maxJobList)
	if err != nil {
		return nil, err
	}
	return parseJobs(raw)
}

func parseJobs(raw []byte) ([]proto.JobSpec, error) {
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
	out := []proto.JobSpec{}
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
		if s.DP == 0 && s.Servers == 0 {
			return nil, wrongUsage(field("servers"), "servers, or dp", "neither is given")
		}
		out = append(out, s)
	}
	return out, nil
}
