package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const planHelp = `ocsctl plan VERB [FILE] [flags]

Plans offline: reads JSON from FILE, or from stdin for - or nothing, and writes
JSON. Exit 1: no solution exists; exit 2: the input is not acceptable.

  plan ring         TP groups on a K-hop line or ring
  plan orchestrate  the same with ranks that meet under the same ToR switches
  plan wiring       cross-connects of optical switches for the links that pods want
  plan isolate      servers and links of a leaf-spine core for one job alone
  plan topology     direct links between the servers of one job
  plan diff A B     what changes between two plans
  plan explain      which rule decided about each group and idle node

  echo '{"nodes":16,"gpus_per_node":4,"k":2,"topology":"line","tp":32,"faulty":[3]}' | ocsctl plan ring

ocsctl plan VERB -h explains the keys.
`

// planVerb reads its own words and writes to out.
type planVerb func(in io.Reader, words []string, out io.Writer) error

var planVerbs = map[string]struct {
	run   planVerb
	files int // that it reads
	help  string
}{
	"ring":        {planRing, 1, planRingHelp},
	"orchestrate": {planOrchestrate, 1, planOrchestrateHelp},
	"diff":        {planDiff, 2, planDiffHelp},
	"explain":     {planExplain, 1, planExplainHelp},
	"wiring":      {planWiring, 1, planWiringHelp},
	"isolate":     {planIsolate, 1, planIsolateHelp},
	"topology":    {planTopology, 1, planTopologyHelp},
}

func plan(_ context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		if len(args) == 0 {
			return wrongUsage("plan", planNames(), "which plan?")
		}
		fmt.Fprint(out, planHelp)
		return nil
	}
	verb, ok := planVerbs[args[0]]
	if !ok {
		return wrongUsage("plan", planNames(), "%q", args[0])
	}
	fs := flag.NewFlagSet("plan "+args[0], flag.ContinueOnError)
	fs.Bool("json", false, "accepted for uniformity: a plan is JSON; errors are then JSON too")
	words, err := parse(fs, args[1:])
	if err != nil {
		return help(out, fs, err, verb.help)
	}
	if len(words) > verb.files || verb.files > 1 && len(words) < verb.files {
		return wrongUsage("plan "+args[0], fmt.Sprintf("%d files", verb.files), "%d words", len(words))
	}
	return verb.run(os.Stdin, words, out)
}

func planNames() string {
	var names []string
	for name := range planVerbs { // any order: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// maxPlanInput bounds what is read; chosen: a million faulty nodes and as many
// in running groups, written out.
const maxPlanInput = 32 << 20

// planInput reads a file, or stdin for "-" or no name.
func planInput(in io.Reader, words []string, at int) ([]byte, error) {
	if len(words) <= at {
		return readInput(in, "-", maxPlanInput)
	}
	return readInput(in, words[at], maxPlanInput)
}

// readInput reads a file, or stdin for "-", of so many bytes at most.
func readInput(stdin io.Reader, name string, most int) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, wrongUsage("file", "a file that can be read", "%v", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err != nil {
		return nil, wrongUsage("file", "a file that can be read", "%v", err)
	}
	if len(data) > most {
		return nil, wrongUsage("file", fmt.Sprintf("at most %d bytes", most), "more is there")
	}
	return data, nil
}

// planRead reads the input of a verb with one file.
func planRead(stdin io.Reader, words []string, keys []planKey) error {
	data, err := planInput(stdin, words, 0)
	if err != nil {
		return err
	}
	return decodePlan(data, keys)
}

// planKey is one key of an input.
type planKey struct {
	name string
	to   any // pointer that encoding/json fills
	want string
}

// decodePlan reads one JSON object strictly: only these keys, exactly so
// written, each once, and nothing behind the object.
func decodePlan(data []byte, keys []planKey) error {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	known := "one of " + strings.Join(names, ", ")
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return wrongUsage("input", "one JSON object", "not an object")
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return wrongUsage("input", "one JSON object", "not JSON")
		}
		at := slices.IndexFunc(keys, func(k planKey) bool { return k.name == name })
		if at < 0 {
			return wrongUsage(cmp.Or(clip(name), "input"), known, "no such key %q", clip(name))
		}
		if seen[name] {
			return wrongUsage(name, "each key once", "it is there twice")
		}
		seen[name] = true
		if err := decodeKey(dec, keys[at]); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return wrongUsage("input", "one JSON object", "it is cut off")
	}
	if _, err := dec.Token(); err != io.EOF {
		return wrongUsage("input", "one JSON object", "something follows it")
	}
	return nil
}

func decodeKey(dec *json.Decoder, k planKey) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return wrongUsage(k.name, k.want, "not JSON")
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(k.to); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return wrongUsage(k.name, k.want, "a %s", kind.Value)
		}
		return wrongUsage(k.name, k.want, "%v", err)
	}
	return nil
}

// usageAt puts what holds a key before the name of what is wrong in there.
func usageAt(at string, err error) error {
	if usage := new(usageError); errors.As(err, &usage) {
		return wrongUsage(at+usage.Field, usage.Limit, "%s", usage.Message)
	}
	return err
}

// clip keeps what a stranger wrote readable.
func clip(s string) string {
	if len(s) > 40 {
		s = s[:40]
	}
	return strings.ToValidUTF8(s, "?")
}

// noSolution is an answer that says there is none: exit 1, and the answer on
// stdout instead of an error.
type noSolution struct{ why string }

func (e *noSolution) Error() string { return e.why }
