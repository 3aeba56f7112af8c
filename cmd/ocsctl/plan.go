package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/topo"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// planVerb makes an answer of a file; next reads a further one. There may be an answer
// beside an error: why there is no plan.
type planVerb func(text []byte, next func() ([]byte, error)) (answer any, err error)

type planRow struct {
	run   planVerb
	files int // that it takes
	short string
	forms []string
}

var file = []string{"[FILE]"}

var planVerbs = map[string]planRow{
	"ring":        {planRing, 1, "groups on a K-hop line or ring", file},
	"orchestrate": {planOrchestrate, 1, "groups with ranks that meet under the same ToR switches", file},
	"wiring":      {planWiring, 1, "cross-connects of optical switches for the links that pods want", file},
	"isolate":     {planIsolate, 1, "servers and links of a leaf-spine core for one job alone", file},
	"topology":    {planTopology, 1, "direct links between the servers of one job", file},
	"diff":        {planDiff, 2, "what changes between two plans", []string{"A B"}},
	"explain":     {planExplain, 1, "which rule decided about each group and idle node", file},
}

// command makes a verb of plan, which is offline.
func (v planRow) command(name string) func(context.Context, []string, cli.Terminal) error {
	return func(ctx context.Context, args []string, t cli.Terminal) error {
		fs := cli.NewFlags("plan " + name)
		asJSON := fs.Bool("json", false, "print JSON also on a terminal; elsewhere a plan is JSON anyway")
		asTable := fs.Bool("table", false, "print a table also where nobody looks on")
		fs.Bool("wide", false, "lines of any length")
		words, err := cli.Parse(fs, args, help("plan-"+name))
		if err != nil {
			return err
		}
		if len(words) > v.files || v.files > 1 && len(words) < v.files {
			return wrongUsage("plan "+name, fmt.Sprintf("%d files", v.files), "%d words", len(words))
		}
		if v.files > 1 && words[0] == "-" && words[1] == "-" {
			return wrongUsage("file", "stdin for one plan only", "- is there twice")
		}
		var answer bytes.Buffer
		begun, ended := time.Now(), make(chan error, 1)
		go func() { ended <- v.answer(planFiles(t.In, words), &answer) }()
		select {
		case err = <-ended:
		case <-ctx.Done():
			return fmt.Errorf("interrupted after %v: there is no plan yet, and none is printed", time.Since(begun).Round(100*time.Millisecond))
		}
		if *asJSON || !*asTable && !cli.IsTerminal(t.Out) {
			_, printed := answer.WriteTo(t.Out)
			return errors.Join(printed, err)
		}
		return errors.Join(planTable(answer.Bytes(), t.Out), err)
	}
}

// answer prints what the verb makes of files, if anything.
func (v planRow) answer(next func() ([]byte, error), out io.Writer) error {
	text, err := next()
	if err != nil {
		return err
	}
	answer, err := v.run(text, next)
	if answer == nil {
		return err
	}
	return errors.Join(printJSON(out, answer), err)
}

// planTable shows a plan to a person: a line a key, a line an element of what is
// a list of lists or objects.
func planTable(answer []byte, out io.Writer) error {
	if len(answer) == 0 {
		return nil
	}
	t := cli.Table{Screen: cli.ScreenOf(out)}
	dec := json.NewDecoder(bytes.NewReader(answer))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		var rows []json.RawMessage
		if json.Unmarshal(value, &rows) != nil || len(rows) == 0 || rows[0][0] != '[' && rows[0][0] != '{' {
			t.Row(fmt.Sprint(key), plain(value))
			continue
		}
		for i, row := range rows {
			t.Row(fmt.Sprintf("%v %d", key, i+1), plain(row))
		}
	}
	return t.Print(out)
}

// plain writes JSON without its quotes, with spaces where lines may end.
func plain(raw json.RawMessage) string {
	return strings.NewReplacer(`"`, "", ",", ", ", ":", ": ", "[", "", "]", "", "{", "", "}", "").Replace(strings.ReplaceAll(string(raw), "],[", "; "))
}

// maxPlanInput bounds what is read; chosen: a million faulty nodes and as many
// in running groups, written out.
const maxPlanInput = 32 << 20

// planFiles reads files one by one, stdin for "-" or no name.
func planFiles(in io.Reader, words []string) func() ([]byte, error) {
	return func() ([]byte, error) {
		name := "-"
		if len(words) > 0 {
			name, words = words[0], words[1:]
		}
		return readInput(in, name, maxPlanInput)
	}
}

// readInput reads a file, or stdin for "-", of so many bytes at most.
func readInput(stdin io.Reader, name string, most int) ([]byte, error) {
	data, long, err := cli.ReadBounded(stdin, name, int64(most))
	switch {
	case err != nil:
		return nil, wrongUsage("file", "a file that can be read", "%v", err)
	case long:
		return nil, wrongUsage("file", fmt.Sprintf("at most %d bytes", most), "more is there")
	}
	return data, nil
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
			return wrongUsage(cmp.Or(cli.Clip(name), "input"), known, "no such key %q", cli.Clip(name))
		}
		if seen[name] {
			return wrongUsage(name, "each key once", "it is there twice")
		}
		seen[name] = true
		if err := decodeKey(data, dec, keys[at]); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return wrongUsage("input", "one JSON object", "JSON ends unexpectedly")
	}
	if _, err := dec.Token(); err != io.EOF {
		return wrongUsage("input", "one JSON object", "something follows it")
	}
	return nil
}

func decodeKey(data []byte, dec *json.Decoder, k planKey) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return wrongUsage(k.name, k.want, "not JSON")
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(k.to); err != nil {
		var misfit *proto.FileError
		switch wrong := proto.DecodeFile(raw, k.to); {
		case !errors.As(wrong, &misfit):
			return wrongUsage(k.name, k.want, "%v", err)
		case misfit.Want == "": // of types that read themselves, too: no place
			return wrongUsage(k.name, k.want, "%s", misfit.Wrong)
		}
		text := misfit.Wrong
		if misfit.Field != "" {
			text = misfit.Field + " is " + text
		}
		before := bytes.Count(data[:dec.InputOffset()-int64(len(raw))], []byte("\n"))
		return wrongUsage(k.name, k.want, "%s on line %d", text, before+misfit.Line)
	}
	return nil
}

// usageAt puts what the planner's mathematics refuse into this command's terms, and what
// holds a key, with a dot, before the name of what is wrong in there.
func usageAt(at string, err error) error {
	var usage *usageError
	var cables *wiring.Error
	var links *topo.Error
	var wire *proto.Error
	switch {
	case errors.As(err, &usage):
		return wrongUsage(at+usage.Field, usage.Limit, "%s", usage.Message)
	case errors.As(err, &cables):
		return wrongUsage(at+cables.Field, cables.Limit, "%s", cables.Reason)
	case errors.As(err, &links):
		return wrongUsage(at+links.Field, links.Limit, "%s", links.Reason)
	case errors.As(err, &wire):
		return wrongUsage(at+wire.Field, wire.Limit, "%s", wire.Reason)
	}
	return err
}
