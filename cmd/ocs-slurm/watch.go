package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/hostlist"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
)

const (
	// mark begins the reason of every drain of ours: no other is resumed.
	mark = "ringlight: "
	// epilogTime is what a job's own epilog has to give its rings back. chosen: it
	// takes a tenth of a second where the planner is there.
	epilogTime = 10 * time.Second
	// First words of a note of the prolog.
	begun, queued, held = "begun", "queued", "held"
	maxReason           = 200 // of a node; chosen: a line of sinfo -R
)

func watch(ctx context.Context, args []string, t cli.Terminal) error {
	p := newPlanner("watch")
	w := watcher{run: slurm, silent: map[string]time.Time{}}
	p.fs.StringVar(&w.file, "topology", "", "`FILE` to keep as the rings are; none: no file")
	p.fs.StringVar(&w.format, "format", "slurm-tree", "its `FORM`; see ocs-slurm topology")
	p.fs.StringVar(&w.notes, "notes", "", "`DIR` where ocs-slurm prolog leaves the reasons of jobs that do not start")
	p.fs.DurationVar(&w.patience, "silent", 30*time.Second, "`TIME` after which a node that cannot be told anything is drained")
	p.fs.DurationVar(&w.spacing, "spacing", 10*time.Second, "least `TIME` between two changes of the topology file")
	p.fs.DurationVar(&w.pace, "nudge", 5*time.Second, "`TIME` after which Slurm is had to look at jobs that wait beside idle nodes, which it does itself when a job ends, else each 30 s or minute; 0: never")
	every := p.fs.Duration("every", time.Second, "`TIME` between two looks, at least 100ms")
	if _, err := cli.ParseNone(p.fs, args, help("watch")); err != nil {
		return err
	}
	if err := formatFlag(w.format); err != nil {
		return err
	}
	if *every < 100*time.Millisecond {
		return cli.Usage("every", "at least 100ms", "%v", *every)
	}
	var err error
	if w.planner, err = p.client(0); err != nil {
		return err
	}
	log := cli.NewLog(t.Err, "info", "text")
	w.say = func(text string, args ...any) { log.Info(text, args...) }
	said := ""
	for tick := time.NewTicker(*every); ; {
		err := w.look(ctx, time.Now())
		if ctx.Err() != nil {
			return nil // told to stop
		}
		if text := fmt.Sprint(err); err != nil && text != said {
			log.Warn("not done, tried again", "reason", err)
			said = text
		} else if err == nil && said != "" {
			log.Info("done again")
			said = ""
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// watcher keeps Slurm as the planner has it. It remembers nothing but since when
// a node is silent and when the file changed: what it did stands with Slurm.
type watcher struct {
	planner             *client.Client
	run                 command
	file, format, notes string
	patience, spacing   time.Duration
	pace                time.Duration // between two nudges
	nudged              time.Time
	nudgedOf            string    // the first that waited then, and idle nodes
	written             time.Time // the topology, last
	silent              map[string]time.Time
	orphans             map[string]orphan // by the planner's job
	taken               map[string]string // by host: Slurm's job that it was taken from, whose light it has
	lit                 map[string]string // by Slurm's job: the note of a prolog that has light and did not say so
	say                 func(text string, args ...any)
}

// orphan is a job of the planner's that Slurm does not know, at an event of it.
type orphan struct {
	at    uint64
	since time.Time
}

// look does what is to be done now; what fails keeps nothing else from being done.
func (w *watcher) look(ctx context.Context, now time.Time) error {
	errs := []error{w.tellReasons(ctx)}
	top, err := w.planner.Topology(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, w.sweep(ctx, now), w.drains(ctx, top, now))
	if w.file != "" && now.Sub(w.written) >= w.spacing {
		text, _, err := top.Text(w.format)
		if err == nil {
			var changed bool
			if changed, err = keep(ctx, w.run, w.file, text); changed {
				w.written = now
				w.say("topology is written, and Slurm reads it", "file", w.file)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// drains drains and resumes nodes.
func (w *watcher) drains(ctx context.Context, top *job.Topology, now time.Time) error {
	out, err := w.run(ctx, "sinfo", "-h", "-N", "-o", "%N|%T|%E")
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range w.changes(top, out, now) {
		args := []string{"update", "NodeName=" + hostlist.Print(c.hosts), "State=UNDRAIN"}
		if c.reason != "" {
			args = []string{args[0], args[1], "State=DRAIN", "Reason=" + c.reason}
		}
		if _, err := w.run(ctx, "scontrol", args...); err != nil {
			errs = append(errs, err)
			continue
		}
		w.say(cli.Either(c.reason != "", "drained in Slurm", "resumed in Slurm"), "nodes", hostlist.Print(c.hosts), "reason", c.reason)
		if c.job != "" {
			_, err := w.run(ctx, "scontrol", "update", "JobId="+c.job, "AdminComment="+mark+"its light cannot be made smaller; "+hostlist.Print(c.hosts)+" drained until it ends")
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, w.nudge(ctx, out, now))...)
}

// nudge has Slurm schedule where jobs wait and nodes are idle, by an update of a job that
// changes nothing (_slurm_rpc_update_job): at once where other nodes are idle, or another
// job is the first, than when it was last.
func (w *watcher) nudge(ctx context.Context, sinfo string, now time.Time) error {
	var idle strings.Builder
	for line := range strings.Lines(sinfo) {
		if strings.Contains(line, "|idle|") {
			idle.WriteString(line)
		}
	}
	if w.pace == 0 || idle.Len() == 0 {
		return nil
	}
	out, err := w.run(ctx, "squeue", "-h", "-a", "-t", "PD", "-S", "-p,i", "-o", "%A|%r")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		number, why, _ := strings.Cut(strings.TrimSpace(line), "|")
		if !slices.Contains([]string{"None", "Priority", "Resources"}, why) {
			continue
		}
		of := number + "\n" + idle.String()
		if of == w.nudgedOf && now.Sub(w.nudged) < w.pace {
			return nil
		}
		w.nudged, w.nudgedOf = now, of
		if is, err := w.run(ctx, "scontrol", "-o", "show", "job", number); err != nil || !strings.Contains(is, " DelayBoot=00:00:00") {
			return err
		}
		_, err := w.run(ctx, "scontrol", "update", "JobId="+number, "DelayBoot=0")
		return err
	}
	return nil
}

// change is what is told to Slurm of some nodes; no reason: resume them.
type change struct {
	reason string
	hosts  []string
	job    string // of Slurm, that they were taken from
}

// changes are the differences between how nodes are and what sinfo says of them.
func (w *watcher) changes(top *job.Topology, sinfo string, now time.Time) (out []change) {
	is := map[string]string{} // why Slurm has drained it, "" for one that it has not
	for line := range strings.Lines(sinfo) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "|", 3)
		if len(f) != 3 {
			continue
		}
		is[f[0]] = ""
		if strings.HasPrefix(f[1], "drain") {
			is[f[0]] = f[2]
		}
	}
	for _, n := range slices.Concat(top.Nodes, top.Servers) {
		reason, known := is[n.Host]
		if !known {
			continue // no node of Slurm's
		}
		if n.State != job.Silent {
			delete(w.silent, n.Host)
		} else if w.silent[n.Host].IsZero() {
			w.silent[n.Host] = now
		}
		want := ""
		if n.State == job.Lost || n.State == job.Drained || n.State == job.Silent && now.Sub(w.silent[n.Host]) >= w.patience {
			want = mark + clip(cmp.Or(n.Cause, string(n.State)))
		}
		from := w.taken[n.Host]
		if want != "" {
			from = ""
		} else if from != "" {
			want = mark + "job " + from + " has its light still"
		}
		ours := strings.HasPrefix(reason, mark)
		if reason != "" && !ours || reason == want || n.State == job.Silent && want == "" {
			continue // somebody else's word, or no news
		}
		at := slices.IndexFunc(out, func(c change) bool { return c.reason == want })
		if at < 0 {
			at, out = len(out), append(out, change{reason: want, job: from})
		}
		out[at].hosts = append(out[at].hosts, n.Host)
	}
	return out
}

// clip makes a cause one line that Slurm takes and gives back as it is.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '|' || r == '"' || r == '\\' {
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(s[:min(len(s), maxReason)])
}

// sweep gives back what jobs have that Slurm does not know any more: their
// epilog found no planner.
func (w *watcher) sweep(ctx context.Context, now time.Time) error {
	conf, err := w.run(ctx, "scontrol", "show", "config")
	if err != nil {
		return err
	}
	cluster := ""
	for line := range strings.Lines(conf) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "ClusterName" {
			cluster = strings.TrimSpace(value)
		}
	}
	if cluster == "" {
		return errors.New("scontrol show config: no ClusterName")
	}
	mine := w.planner.As(ownerOf(cluster))
	all, err := mine.List(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		w.taken = nil
		return nil
	}
	// After the planner was asked, so that no job that begins is missing. One that
	// waits in the queue may begin while we look: it has what it needs, or its
	// prolog puts it right.
	queue, err := w.run(ctx, "squeue", "-h", "-a", "-o", "%A|%T|%N")
	if err != nil {
		return err
	}
	alive, gone, taken := map[string]string{}, map[string]orphan{}, map[string]string{}
	for line := range strings.Lines(queue) {
		number, is, _ := strings.Cut(strings.TrimSpace(line), "|")
		alive[number] = is
	}
	var errs []error
	for _, v := range all {
		number, ours := strings.CutPrefix(v.ID, cluster+"-")
		if !ours || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if is, lives := alive[number]; lives {
			if nodes, runs := strings.CutPrefix(is, "RUNNING|"); runs {
				for _, host := range takenFrom(v.Wish, nodes) {
					taken[host] = number
				}
			}
			continue
		}
		o := w.orphans[v.ID]
		if o.at != v.Generation || o.since.IsZero() {
			o = orphan{v.Generation, now}
		}
		gone[v.ID] = o
		if now.Sub(o.since) < epilogTime {
			continue
		}
		if _, err := mine.Release(ctx, v.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		w.say("rings given back of a job that Slurm does not run", "job", v.ID)
	}
	w.orphans, w.taken = gone, taken
	return errors.Join(errs...)
}

// takenFrom are the nodes of a job's light that Slurm does not give it any more (scontrol
// update NumNodes): nobody else has light there until it ends.
func takenFrom(w *job.Wish, nodes string) (out []string) {
	has, err := hostlist.Parse(nodes, maxHosts)
	if err != nil || w == nil {
		return nil
	}
	for _, list := range w.Nodes {
		asked, _ := hostlist.Parse(string(list), maxHosts) // as Slurm said it to the prolog
		out = append(out, asked...)
	}
	return slices.DeleteFunc(out, func(host string) bool { return slices.Contains(has, host) })
}
