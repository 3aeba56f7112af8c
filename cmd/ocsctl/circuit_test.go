package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A job list that cannot be is refused by field, before anybody is asked.
// Method: a table of lists; nothing listens anywhere.
func TestBadJobListsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ list, field string }{ // any order: each is judged by itself
		"not JSON":          {`jobs`, "jobs"},
		"no list":           {`{}`, "jobs"},
		"unknown key":       {`{"jobs":[{"id":1,"tp":4,"servers":2,"replicas":3}]}`, "jobs"},
		"unknown key above": {`{"jobs":[],"job":1}`, "jobs"},
		"something follows": {`{"jobs":[]}{}`, "jobs"},
		"no id":             {`{"jobs":[{"tp":4,"servers":2}]}`, "jobs[0].id"},
		"an id twice":       {`{"jobs":[{"id":7,"servers":1},{"id":8,"servers":1},{"id":7,"servers":2}]}`, "jobs[2].id"},
		"no size":           {`{"jobs":[{"id":1,"tp":4}]}`, "jobs[0].servers"},
		"tp 0":              {`{"jobs":[{"id":1,"tp":0,"servers":1}]}`, "jobs[0].tp"},
		"pp 0":              {`{"jobs":[{"id":1,"pp":0,"servers":1}]}`, "jobs[0].pp"},
		"negative":          {`{"jobs":[{"id":1,"servers":-1}]}`, "jobs"},
		"a fraction":        {`{"jobs":[{"id":1,"servers":1.5}]}`, "jobs"},
		"collective":        {`{"jobs":[{"id":1,"servers":1,"collective":"tree"}]}`, "jobs[0].collective"},
		"too many":          {`{"jobs":[` + strings.Repeat(`{"id":1},`, 1024) + `{"id":2}]}`, "jobs"},
	} {
		_, err := parseJobs([]byte(c.list))
		var use *usageError
		if !errors.As(err, &use) || use.Field != c.field || use.Limit == "" {
			t.Errorf("%s: %v, want field %s", name, err, c.field)
		}
	}
	jobs, err := parseJobs([]byte(`{"jobs":[{"id":2,"tp":8,"servers":6,"pods":[0,3],"collective":"ring"},{"id":1,"pp":2,"dp":3}]}`))
	if err != nil || len(jobs) != 2 || jobs[0].TP != 8 || jobs[0].EP != 1 || jobs[1].PP != 2 || jobs[1].DP != 3 || len(jobs[0].Pods) != 2 {
		t.Errorf("%+v, %v", jobs, err)
	}
	if jobs, err := parseJobs([]byte(`{"jobs":[]}`)); err != nil || len(jobs) != 0 {
		t.Errorf("an empty list ends all jobs: %v, %v", jobs, err)
	}
}

// Wrong command lines of circuit are exit 2 and name the field.
// Method: a table; nothing listens anywhere.
func TestCircuitUsage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "jobs.json")
	if err := os.WriteFile(bad, []byte(`{"jobs":[{"id":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, field := range map[string]string{ // any order: each is judged by itself
		"circuit":              "circuit",
		"circuit list 3":       "circuit",
		"circuit show":         "circuit",
		"circuit show 0":       "job",
		"circuit show x":       "job",
		"circuit apply":        "circuit",
		"circuit apply /no/it": "file",
		"circuit plan " + bad:  "jobs[0].servers",
	} {
		code, out, errs := ctl(t, append(strings.Fields(args), "-json")...)
		if code != 2 || !strings.Contains(out, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s %s", args, code, out, errs)
		}
	}
	if code, out, _ := ctl(t, "circuit", "-h"); code != 0 || !strings.Contains(out, "ocsctl circuit plan jobs.json") {
		t.Errorf("help: %d %s", code, out)
	}
}
