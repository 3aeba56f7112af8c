package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Goal: a trace is one that viewers of Chrome's format show: every event has its
// phase, time, process and thread, slices of a thread nest, each thread and process
// has a name, and the parts of a ledger are its slices and add up to it.
// Method: the marks of a generation of two nodes and a late third, and two bypasses,
// one of which began before all else.
func TestTraceIsOfChromesFormat(t *testing.T) {
	ledger, marks := traceLedger, generationMarks()
	raw, err := json.Marshal(chromeTrace(marks))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  *uint64
			Pid, Tid *uint64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	type span struct{ from, to uint64 }
	open, named, seen := map[string][]span{}, map[string]bool{}, map[string]int{}
	parts, total, least := map[string]uint64{}, map[string]uint64{}, ^uint64(0)
	for _, e := range file.TraceEvents {
		if e.Ts == nil || e.Pid == nil || e.Tid == nil || e.Name == "" {
			t.Fatalf("%+v lacks a field", e)
		}
		thread := fmt.Sprint(*e.Pid, "/", *e.Tid)
		switch e.Ph {
		case "M":
			named[e.Name+thread] = true
			if e.Name != "process_name" && e.Name != "thread_name" || e.Args["name"] == "" {
				t.Errorf("%+v", e)
			}
		case "X":
			if e.Dur == nil || !named["thread_name"+thread] {
				t.Fatalf("%+v has no end or no name", e)
			}
			seen[e.Name]++
			least = min(least, *e.Ts)
			s := span{*e.Ts, *e.Ts + *e.Dur}
			// Parents come before children here, as viewers take them.
			stack := open[thread]
			for len(stack) > 0 && s.from >= stack[len(stack)-1].to {
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 && (s.from < stack[len(stack)-1].from || s.to > stack[len(stack)-1].to) {
				t.Errorf("%s of thread %s, %+v, is not within %+v", e.Name, thread, s, stack[len(stack)-1])
			}
			open[thread] = append(stack, s)
			if *e.Pid == pidLight && e.Args != nil {
				total[thread] = *e.Dur
			} else if *e.Pid == pidLight {
				parts[thread] += *e.Dur
			}
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	if len(total) != 2 || least != 0 {
		t.Errorf("%d ledgers, the first moment is %d", len(total), least)
	}
	for thread, sum := range total {
		if sum != uint64(ledger.TotalMicros()) || parts[thread] != sum {
			t.Errorf("%s: parts of %d us, slice of %d us, ledger of %d us", thread, parts[thread], sum, ledger.TotalMicros())
		}
	}
	for name, n := range map[string]int{"generation": 1, "wait and plan": 1, "store": 1, "prepare": 4, "commit": 3, "light, until reported": 1, "node 22": 1, "hold-off": 2} {
		if seen[name] != n {
			t.Errorf("%d slices %q, want %d", seen[name], name, n)
		}
	}
}

func TestTraceRefusesWhatIsNoGeneration(t *testing.T) {
	for _, args := range [][]string{{"trace"}, {"trace", "0"}, {"trace", "-1"}, {"trace", "x"}, {"trace", "1", "2"}, {"trace", "9999999999999999999"}} {
		if code, _, _ := ctl(t, args...); code != 2 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
