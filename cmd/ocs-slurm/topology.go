package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
)

// formats of Slurm.
var formats = slices.DeleteFunc(slices.Clone(job.TopologyFormats), func(f string) bool { return !strings.HasPrefix(f, "slurm-") })

func formatFlag(format string) error {
	if !slices.Contains(formats, format) {
		return cli.Usage("format", strings.Join(formats, ", "), "%q", cli.Clip(format))
	}
	return nil
}

func topology(ctx context.Context, args []string, t cli.Terminal) error {
	p := newPlanner("topology")
	format := p.fs.String("format", "slurm-tree", "`FORM`: "+strings.Join(formats, ", "))
	file := p.fs.String("o", "", "`FILE` to keep; none: print")
	if _, err := cli.ParseNone(p.fs, args, help("topology")); err != nil {
		return err
	}
	if err := formatFlag(*format); err != nil {
		return err
	}
	c, err := p.client(0)
	if err != nil {
		return err
	}
	top, err := c.Topology(ctx)
	if err != nil {
		return err
	}
	text, _, err := top.Text(*format)
	if err != nil {
		return err
	}
	if *file == "" {
		_, err = t.Out.Write(text)
		return err
	}
	changed, err := keep(ctx, slurm, *file, text)
	if err != nil {
		return err
	}
	return cli.Say(t.Out, "%s: %s", *file, cli.Either(changed, "changed, and Slurm reads it", "as it was"))
}

// command runs a command of Slurm and gives what it prints.
type command func(ctx context.Context, name string, args ...string) (string, error)

// commandTime bounds one. chosen: Slurm's own clients give up after ten seconds.
const commandTime = 15 * time.Second

func slurm(ctx context.Context, name string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, commandTime)
	defer stop()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %.200s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}

// keep makes a file say a text, and Slurm read it. What Slurm did not read is
// marked, so that the next call, of another process too, has it read.
//
// From 23.11 not while a job is starting: slurmctld then starts itself anew and kills
// its prologs, and 26.05 takes a prolog that it killed so for one that let the job
// start (prep_prolog_slurmctld_callback). Releases before read the file in place.
func keep(ctx context.Context, run command, file string, text []byte) (changed bool, err error) {
	unread := file + ".unread"
	old, err := os.ReadFile(file)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case err == nil && bytes.Equal(old, text):
		if _, err := os.Stat(unread); err != nil {
			return false, nil
		}
	default:
		if err := os.WriteFile(unread, nil, 0o644); err != nil {
			return false, err
		}
		if err := cli.ReplaceFile(file, text, 0o644); err != nil {
			return false, err
		}
	}
	version, err := run(ctx, "scontrol", "--version")
	if err != nil {
		return false, err
	}
	if out, err := run(ctx, "squeue", "-h", "-a", "-t", "CF", "-o", "%A"); err != nil {
		return false, err
	} else if jobs := strings.Fields(out); len(jobs) > 0 && restarts(version) {
		return false, fmt.Errorf("%s is written; Slurm reads it when no job is starting, job %s is", file, jobs[0])
	}
	if _, err := run(ctx, "scontrol", "reconfigure"); err != nil {
		return false, err
	}
	return true, os.Remove(unread)
}

// restarts tells of what scontrol --version prints, such as "slurm-wlm 22.05.8", whether
// reconfigure starts slurmctld anew and kills its prologs. What cannot be read does.
func restarts(version string) bool {
	f := strings.Fields(version)
	if len(f) < 2 {
		return true
	}
	var year, month int
	n, _ := fmt.Sscanf(f[1], "%d.%d", &year, &month)
	return n < 2 || year > 23 || year == 23 && month >= 11
}
