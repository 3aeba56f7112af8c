package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/cmd/cli"
	"ringlight/proto"
	"ringlight/sim/study"
)

// kept is a study in the index.
type kept struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Command string `json:"command"`
	SVG     string `json:"svg"`
	CSV     string `json:"csv"`
	remarks *study.Report
}

// studyAll runs every study as it is without flags, and writes what it finds.
func studyAll(ctx context.Context, args []string, t cli.Terminal) error {
	fs := cli.NewFlags("study all")
	out := fs.String("out", "", "`DIR` to write into; files of other names in it stay")
	only := fs.String("only", "", "`LIST` of studies, with commas between them; none: all")
	seed := fs.Uint64("seed", 1, "seed of everything drawn")
	trace := fs.String("trace", os.Getenv(traceVariable), "fault trace; none: the built-in generator (also "+traceVariable+")")
	asJSON := fs.Bool("json", false, "print what was written as JSON and nothing else")
	if _, err := cli.ParseNone(fs, args, help("study-all")); err != nil {
		return err
	}
	if *out == "" {
		return cli.Usage("out", "a folder", "none is given")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return cli.AsUsage(fmt.Errorf("out: %w", err))
	}
	var list []kept
	for _, o := range chosen {
		for _, v := range append([]variant{{}}, o.also...) {
			run := &studyRun{name: o.name, trace: *trace, t: t, args: append(slices.Clone(v.args), "-seed", fmt.Sprint(*seed))}
			if *asJSON {
				run.args = append(run.args, "-json")
			}
			run.gather = func(r result) error {
				k, err := keep(r, run.command(), filepath.Join(*out, strings.TrimSuffix(o.name+"-"+v.name, "-")))
				list = append(list, k)
				return err
			}
			began, before := time.Now(), processor()
			if err := o.run(ctx, run); err != nil {
				return fmt.Errorf("study %s: %w", o.name, err)
			}
			if !*asJSON {
				fmt.Fprintf(t.Err, "%-14s %6.1f s of processor time, %.1f s\n", list[len(list)-1].Name, (processor() - before).Seconds(), time.Since(began).Seconds())
			}
		}
	}
	faults := filepath.Base(*trace)
	if faults == "." {
		faults = "the built-in generator"
	}
	text := index(list, fmt.Sprintf("Version %s, seed %d, faults of %s.", version, *seed, faults))
	if err := os.WriteFile(filepath.Join(*out, "README.md"), []byte(text), 0o644); err != nil {
		return err
	}
	if *asJSON {
		return cli.PrintJSON(t.Out, map[string]any{"out": *out, "studies": list})
	}
	return cli.Say(t.Out, "%s written; begin with %s", proto.Count(len(list), "study"), filepath.Join(*out, "README.md"))
}

// processor is the time that this process has had so far.
func processor() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // fails for another name alone
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// choose finds studies by name.
func choose(only string) ([]studyOf, error) {
	if only == "" {
		return studies(), nil
	}
	var out []studyOf
	for _, name := range splitList(only) {
		i := slices.IndexFunc(studies(), func(o studyOf) bool { return o.name == name })
		if i < 0 {
			var names []string
			for _, o := range studies() {
				names = append(names, o.name)
			}
			return nil, cli.Usage("only", strings.Join(names, ", "), "there is no study %q", cli.Clip(name))
		}
		out = append(out, studies()[i])
	}
	return out, nil
}

// keep writes a study's files, whose names begin with a path.
func keep(r result, command, path string) (kept, error) {
	name, remarks := filepath.Base(path), r.Remarks()
	k := kept{name, remarks.Title, command, name + ".svg", name + ".csv", remarks}
	if err := os.WriteFile(path+".svg", []byte(study.SVG(remarks.Title, source(command), r.Charts())), 0o644); err != nil {
		return k, err
	}
	return k, os.WriteFile(path+".csv", []byte(r.Table().CSV()), 0o644)
}

// source says below a chart where it comes from.
func source(command string) string { return command + " (" + version + ")" }

// index shows what was written.
func index(list []kept, from string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Studies\n\n%s Each study can be run again by its own command.\n\n", from)
	for _, k := range list {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", k.Name, k.Name, k.Title)
	}
	for _, k := range list {
		fmt.Fprintf(&b, "\n## %s\n\n%s. `%s`\n\n![%s](%s)\n\n[The figures as CSV](%s).\n", k.Name, k.Title, k.Command, k.Title, k.SVG, k.CSV)
		if len(k.remarks.Comparison) > 0 {
			b.WriteString("\n" + k.remarks.Beside().Markdown())
		}
		b.WriteString("\n")
		for _, n := range k.remarks.Notes {
			b.WriteString("- " + n + "\n")
		}
	}
	return b.String()
}
