package main

import (
	"errors"
	"testing"
)

// Goal: phases of a list are written as its topology is, and what is wrong with one is named
// within it.
func TestPhasesOfAList(t *testing.T) {
	const ring = `{"degree":2,"bidirectional":true,"allreduce":[{"group":4,"bytes":9}]}`
	f, err := parseJobs([]byte(`{"jobs":[{"id":1,"servers":4,"phases":[{"name":"a","topology":` + ring + `},{"name":"b","topology":{"degree":2,"mp":[[0,1,5],[1,2,5],[2,3,5],[3,0,5]]}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if p := f.specs[0].Phases; len(p) != 2 || p[0].Name != "a" || len(p[0].Topology.AllReduce[0].Servers) != 4 || len(p[1].Topology.MP) != 4 || f.specs[0].Topology != nil {
		t.Errorf("%+v", p)
	}
	for text, field := range map[string]string{
		`{"name":"b"}`: "jobs[0].phases[1].topology",
		`{"name":"b","topology":{"degree":2,"mp":[[0,9,5]]}}`: "jobs[0].phases[1].topology.mp[0][1]",
	} { // any order: each by itself
		_, err := parseJobs([]byte(`{"jobs":[{"id":1,"servers":4,"phases":[{"name":"a","topology":` + ring + `},` + text + `]}]}`))
		var bad *usageError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
}
