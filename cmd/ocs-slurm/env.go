package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	"ringlight/proto"
)

func environment(ctx context.Context, args []string, t cli.Terminal) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, flag.ErrHelp) { // eval does not see how a command in $( ) ended
			err = errors.Join(err, cli.Say(t.Out, "false"))
		}
	}()
	p := newPlanner("env")
	dir := p.fs.String("o", "", "`DIR` for the files, which all nodes see; default ringlight.JOB here")
	pp := p.fs.Int("pp", 0, "`NUMBER` of rings of one pipeline; 0: one, of circuits their stages")
	task := p.fs.Bool("task", false, "of this task: its place by SLURM_PROCID and the files in RINGLIGHT_FILES")
	if _, err := cli.ParseNone(p.fs, args, help("env")); err != nil {
		return err
	}
	if *task {
		return taskEnv(t.Out)
	}
	j, err := theJob()
	if err != nil {
		return err
	}
	c, err := p.client(0)
	if err != nil {
		return err
	}
	*dir = cmp.Or(*dir, "ringlight."+j.number)
	if *dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	v, err := c.Get(ctx, j.name)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, name := range job.Files {
		if texts[name], err = c.File(ctx, j.name, name, job.Split{PP: *pp}, v.Generation); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	for _, name := range job.Files {
		if err := cli.ReplaceFile(filepath.Join(*dir, name), texts[name], 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"nccl.env", "megatron.env"} {
		for line := range strings.Lines(string(texts[name])) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
				export(t.Out, key, value)
			}
		}
	}
	export(t.Out, "RINGLIGHT_FILES", *dir)
	export(t.Out, "RINGLIGHT_GENERATION", strconv.FormatUint(v.Generation, 10))
	export(t.Out, "SLURM_HOSTFILE", filepath.Join(*dir, "hostfile"))
	export(t.Out, "SLURM_DISTRIBUTION", "arbitrary")
	return nil
}

// export is a line for a shell, and for Slurm as a TaskProlog prints it.
func export(out io.Writer, key, value string) {
	if strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") != "" {
		value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	fmt.Fprintf(out, "export %s=%s\n", key, value)
}

// taskEnv prints the variables of one task.
func taskEnv(out io.Writer) error {
	rank, dir := os.Getenv("SLURM_PROCID"), os.Getenv("RINGLIGHT_FILES")
	if rank == "" || dir == "" {
		return cli.Usage("SLURM_PROCID and RINGLIGHT_FILES", "both, in a task of a script that called ocs-slurm env", "one is not set")
	}
	text, err := os.ReadFile(filepath.Join(dir, "ranks"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] != rank {
			continue
		}
		if at := os.Getenv("SLURMD_NODENAME"); at != "" && at != f[1] {
			return &proto.Error{Code: proto.Conflict, Field: "SLURM_PROCID", Limit: "the host that ranks says: srun -m arbitrary with the hostfile", Reason: fmt.Sprintf("rank %s is on %s, and light meets it on %s", rank, at, f[1])}
		}
		for i, key := range []string{"RINGLIGHT_GPU", "RINGLIGHT_RING", "RINGLIGHT_POSITION"} {
			export(out, key, f[2+i])
		}
		export(out, "CUDA_VISIBLE_DEVICES", f[2])
		return nil
	}
	return &proto.Error{Code: proto.NotFound, Field: "SLURM_PROCID", Limit: "a rank of " + filepath.Join(dir, "ranks"), Reason: "no rank " + cli.Clip(rank)}
}
