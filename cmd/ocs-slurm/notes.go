package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"ringlight/planner/job"
	"ringlight/proto"
)

// tellReasons tells Slurm why jobs did not start. Slurm wants none of its commands
// in a prolog, so this is done here.
func (w *watcher) tellReasons(ctx context.Context) error {
	if w.notes == "" {
		return nil
	}
	files, err := os.ReadDir(w.notes)
	if err != nil {
		return err
	}
	var errs []error
	lit := w.lit
	w.lit = map[string]string{}
	for _, f := range files {
		number := f.Name()
		if strings.Trim(number, "0123456789") != "" {
			continue // not whole yet, or unassigned
		}
		text, err := os.ReadFile(filepath.Join(w.notes, number))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		kind, why, _ := strings.Cut(string(text), " ")
		if kind == begun {
			if cut, err := w.cutOff(ctx, filepath.Join(w.notes, number), text, lit[number]); !cut {
				errs = append(errs, err)
				continue
			}
			why = "slurmctld ended its prolog before light was confirmed"
		}
		if _, err = w.run(ctx, "scontrol", "update", "JobId="+number, "AdminComment="+mark+clip(why)); err == nil && kind == held {
			_, err = w.run(ctx, "scontrol", "hold", number)
		}
		if err != nil { // it is over, or Slurm is away
			errs = append(errs, err)
			if !strings.Contains(err.Error(), "Invalid job id") {
				continue
			}
		}
		w.say("job did not start", "job", number, "reason", why)
		errs = append(errs, os.Remove(filepath.Join(w.notes, number)))
	}
	return errors.Join(errs...)
}

// cutOff tells whether a job runs though its prolog, by its note, never came to an
// end, and takes it from its nodes: what Slurm does itself where a prolog fails.
// A prolog drops its note before it ends, and only then Slurm calls the job running.
func (w *watcher) cutOff(ctx context.Context, note string, text []byte, lit string) (cut bool, err error) {
	number := filepath.Base(note)
	out, err := w.run(ctx, "squeue", "-h", "-a", "-t", "all", "-j", number, "-o", "%A %T")
	if err != nil && !strings.Contains(err.Error(), "Invalid job id") {
		return false, err
	}
	if now, err := os.ReadFile(note); err != nil || !bytes.Equal(now, text) {
		return false, nil // the prolog came to an end, or another began
	}
	state := ""
	for line := range strings.Lines(out) { // of an array all its jobs
		if id, is, _ := strings.Cut(strings.TrimSpace(line), " "); id == number {
			state = is
		}
	}
	switch state {
	case "PENDING", "CONFIGURING", "COMPLETING":
		return false, nil // its prolog is at it, or will be
	case "RUNNING":
		if !w.takesBack(ctx, number, string(text), lit) {
			return false, nil
		}
		if _, err := w.run(ctx, "scontrol", "requeue", number); err != nil {
			_, err = w.run(ctx, "scancel", number) // one that cannot be queued again
			return err == nil, err
		}
		return true, nil
	}
	return false, os.Remove(note) // over, so that nobody minds
}

// takesBack tells whether a job may be taken from its nodes whose prolog's note never came
// to an end. Light that is on its way is taken back first, so that no script begins on it
// and loses it at once. With light the prolog is given one more look to say so.
func (w *watcher) takesBack(ctx context.Context, number, note, lit string) bool {
	f := strings.Fields(note)
	if len(f) < 4 { // of a release before
		return true
	}
	mine := w.planner.As(f[3])
	v, err := mine.Get(ctx, f[2])
	if err != nil {
		return true // it has none, or nobody can say
	}
	if v.State == job.Ready {
		w.lit[number] = note
		return lit == note
	}
	var no *proto.Error
	err = mine.ReleaseAt(ctx, f[2], v.Generation)
	return !errors.As(err, &no) || no.Field != job.FieldRevision
}
