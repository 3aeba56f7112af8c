package main

import (
	"slices"
	"strings"

	"ringlight/proto"
	"ringlight/sim/workload"
)

// What the studies of jobs share: a generator by name, or a list of one's own.

func workloadUsage() string {
	return "generator " + strings.Join(workload.Kinds(), ", ") + ", or a CSV `FILE` of " + workload.Heading + "[,model]"
}

const jobsUsage = "jobs that the generator draws"

// jobList reads the list that a workload names; nil: it names a generator. What
// only a generator has may then not be given.
func (s *studyRun) jobList(name string, gpus int, drawn ...string) ([]workload.Job, error) {
	if slices.Contains(workload.Kinds(), name) {
		return nil, nil
	}
	given := s.given()
	for _, flag := range drawn {
		if given[flag] {
			return nil, &proto.Error{Code: proto.Invalid, Field: flag, Limit: "only with a generator", Reason: "a list has its own arrivals and jobs"}
		}
	}
	f, err := open(name)
	if err != nil {
		return nil, &proto.Error{Code: proto.Invalid, Field: "workload", Limit: "one of " + strings.Join(workload.Kinds(), ", ") + ", or a file", Reason: err.Error()}
	}
	defer f.Close()
	return workload.All(workload.NewReader(f, gpus, *s.seed))
}
