package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ringlight/proto"
)

const circuitHelp = `ocsctl circuit list | show JOB | apply FILE | plan FILE [flags]

Jobs between pods, and the circuits of optical switches that carry them.
list: every circuit with its switch, ports, job, state and loss. show: one job.
apply: FILE has all jobs that should run; those in it as they were before stay
where they are, those no longer in it end. plan: what apply would do, and no
more: circuits made and removed, links that move, stages, links realised.

FILE is JSON, "-" is stdin:
  {"jobs": [{"id": 1, "tp": 4, "pp": 2, "dp": 10},
            {"id": 2, "tp": 8, "servers": 6, "pods": [0, 3]}]}
id from 1; tp, ep, pp, dp the GPUs of a domain, 1 where absent; servers wanted
instead of dp, or beside it; pods where it may be; collective "ring".

  ocsctl circuit plan jobs.json
  ocsctl circuit apply jobs.json && ocsctl circuit list
`

func circuit(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	fs := flag.NewFlagSet("circuit", flag.ContinueOnError)
	c.register(fs)
	words, err := parse(fs, args)
	if err != nil {
		return help(out, fs, err, circuitHelp)
	}
	switch {
	case len(words) == 1 && words[0] == "list":
		return circuitList(ctx, &c, out)
	case len(words) == 2 && words[0] == "show":
		id, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil || id == 0 {
			return wrongUsage("job", "an integer from 1", "%q", words[1])
		}
		return circuitShow(ctx, &c, proto.JobID(id), out)
	case len(words) == 2 && (words[0] == "apply" || words[0] == "plan"):
		jobs, err := readJobs(words[1])
		if err != nil {
			return err
		}
		return circuitApply(ctx, &c, jobs, words[0] == "plan", out)
	}
	return wrongUsage("circuit", "list, show JOB, apply FILE or plan FILE", "%q", strings.Join(words, " "))
}

// circuitJSON, jobStatusJSON, coreJSON and changeJSON are the forms that
// scripts rely on.
type circuitJSON struct {
	Switch int         `json:"switch"` // from 0
	PortA  uint16      `json:"port_a"`
	PortB  uint16      `json:"port_b"`
	Job    proto.JobID `json:"job"`
	State  string      `json:"state"`
	Loss   *int32      `json:"loss_millidb"` // null: not measured
}

type shareJSON struct {
	Pod     uint16 `json:"pod"`
	Leaf    uint16 `json:"leaf"`
	Servers uint16 `json:"servers"`
}

type jobStatusJSON struct {
	Job      proto.JobID `json:"job"`
	State    string      `json:"state"`
	Reason   string      `json:"reason,omitempty"`
	Servers  []shareJSON `json:"servers"`
	Asked    uint32      `json:"links_asked"`
	Granted  uint32      `json:"links_granted"`
	Realised uint32      `json:"links_realised"`
	Domains  [][]uint16  `json:"domains,omitempty"` // leaf of each by stage and replica; only of one job
}

type coreJSON struct {
	Generation proto.Generation `json:"generation"`
	Switches   uint32           `json:"switches"`
	Online     uint32           `json:"switches_online"`
	Circuits   uint32           `json:"circuits_wanted"`
	Tuned      uint32           `json:"circuits_tuned"`
	Asked      uint32           `json:"links_asked"`
	Granted    uint32           `json:"links_granted"`
	Realised   uint32           `json:"links_realised"`
	DarkMicros uint32           `json:"dark_us_max"`
	Quiet      bool             `json:"quiet"`
}

type changeJSON struct {
	DryRun     bool          `json:"dry_run"`
	Placed     uint32        `json:"jobs_placed"`
	Waiting    []proto.JobID `json:"jobs_waiting"`
	Stages     uint32        `json:"stages"`
	Created    uint32        `json:"circuits_created"`
	Removed    uint32        `json:"circuits_removed"`
	Moved      uint32        `json:"links_moved"`
	Kept       uint32        `json:"links_kept"`
	WorstMoved uint32        `json:"worst_leaf_moved"`
	WorstOf    uint32        `json:"worst_leaf_links"`
	Asked      uint32        `json:"links_asked"`
	Granted    uint32        `json:"links_granted"`
	Realised   uint32        `json:"links_realised"`
	DarkMicros uint32        `json:"dark_us"`
}

func circuitsOf(list []proto.CircuitStatus) []circuitJSON {
	out := make([]circuitJSON, len(list))
	for i := range list {
		x := &list[i]
		out[i] = circuitJSON{int(x.Switch - proto.FirstSwitch), x.A, x.B, x.Job, x.State.String(), nil}
		if x.Loss != proto.NoPower {
			loss := int32(x.Loss)
			out[i].Loss = &loss
		}
	}
	return out
}

func circuitList(ctx context.Context, c *clientFlags, out io.Writer) error {
	cl, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer cl.close()
	circuits, jobs := []circuitJSON{}, []jobStatusJSON{}
	r, err := cl.ask(ctx, proto.OpRequest{Noun: proto.NounCore, Bundle: -1})
	if err != nil {
		return err
	}
	if r.Core == nil {
		return errors.New("the planner's answer has no core")
	}
	k := r.Core
	core := coreJSON{k.Generation, k.Switches, k.Online, k.Circuits, k.Tuned, k.Asked, k.Granted, k.Realised, k.DarkMicros, k.Quiet}
	if err := cl.pages(ctx, proto.OpRequest{Noun: proto.NounJobs, Bundle: -1}, func(r *proto.OpReply) { jobs = append(jobs, jobsOf(r.Jobs)...) }); err != nil {
		return err
	}
	err = cl.pages(ctx, proto.OpRequest{Noun: proto.NounCircuits, Bundle: -1}, func(r *proto.OpReply) { circuits = append(circuits, circuitsOf(r.Circuits)...) })
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(out, struct {
			Core     coreJSON        `json:"core"`
			Jobs     []jobStatusJSON `json:"jobs"`
			Circuits []circuitJSON   `json:"circuits"`
		}{core, jobs, circuits})
	}
	fmt.Fprintf(out, "%d of %d switches online, %d of %d circuits lit, links realised %d, granted %d, asked %d\n\n",
		core.Online, core.Switches, core.Tuned, core.Circuits, core.Realised, core.Granted, core.Asked)
	if err := printJobs(out, jobs); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return printCircuits(out, circuits)
}

func circuitShow(ctx context.Context, c *clientFlags, id proto.JobID, out io.Writer) error {
	cl, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer cl.close()
	var job []jobStatusJSON
	circuits := []circuitJSON{}
	err = cl.pages(ctx, proto.OpRequest{Noun: proto.NounJob, Job: id, Bundle: -1}, func(r *proto.OpReply) {
		if job == nil {
			job = jobsOf(r.Jobs)
		}
		circuits = append(circuits, circuitsOf(r.Circuits)...)
	})
	if err != nil {
		return err
	}
	if len(job) != 1 {
		return errors.New("the planner's answer has no job")
	}
	if c.json {
		return printJSON(out, struct {
			jobStatusJSON
			Circuits []circuitJSON `json:"circuits"`
		}{job[0], circuits})
	}
	if err := printJobs(out, job); err != nil {
		return err
	}
	for _, s := range job[0].Servers {
		fmt.Fprintf(out, "  pod %d leaf %d: %d servers\n", s.Pod, s.Leaf, s.Servers)
	}
	for n, row := range job[0].Domains {
		fmt.Fprintf(out, "  stage %d: leaf of each replica %s\n", n, runs(row))
	}
	fmt.Fprintln(out)
	return printCircuits(out, circuits)
}

func circuitApply(ctx context.Context, c *clientFlags, jobs []proto.JobSpec, dry bool, out io.Writer) error {
	r, err := c.one(ctx, proto.OpRequest{Noun: proto.NounApply, Jobs: jobs, DryRun: dry, Bundle: -1})
	var refused *proto.Error
	if errors.As(err, &refused) && refused.Code == proto.Invalid {
		return wrongUsage(refused.Field, refused.Limit, "%s", refused.Reason)
	}
	if err != nil {
		return err
	}
	if r.Change == nil {
		return errors.New("the planner's answer has no change")
	}
	x := r.Change
	ch := changeJSON{dry, x.Placed, append([]proto.JobID{}, x.Waiting...), x.Stages, x.Created, x.Removed, x.Moved, x.Kept,
		x.Worst, x.WorstOf, x.Asked, x.Granted, x.Realised, x.DarkMicros}
	if c.json {
		return printJSON(out, ch)
	}
	fmt.Fprintf(out, "%d jobs have servers, %d wait%s\n", ch.Placed, len(ch.Waiting), listed(ch.Waiting))
	fmt.Fprintf(out, "%d circuits to make, %d to remove, in %d stages\n", ch.Created, ch.Removed, ch.Stages)
	fmt.Fprintf(out, "links of jobs that stay: %d keep their circuits, %d move, at most %d of %d of a leaf at once\n", ch.Kept, ch.Moved, ch.WorstMoved, ch.WorstOf)
	if ch.Moved > 0 && ch.DarkMicros > 0 {
		fmt.Fprintf(out, "a link that moves is dark for %.1f ms, as measured before\n", float64(ch.DarkMicros)/1000)
	}
	fmt.Fprintf(out, "links realised %d, granted %d, asked %d\n", ch.Realised, ch.Granted, ch.Asked)
	return nil
}

// runs writes 4x5 7 for 4 4 4 4 4 7.
func runs(leaves []uint16) string {
	var words []string
	for i := 0; i < len(leaves); {
		j := i
		for j < len(leaves) && leaves[j] == leaves[i] {
			j++
		}
		word := fmt.Sprint(leaves[i])
		if j-i > 1 {
			word += fmt.Sprintf("x%d", j-i)
		}
		words = append(words, word)
		i = j
	}
	return strings.Join(words, " ")
}

func listed(ids []proto.JobID) string {
	if len(ids) == 0 {
		return ""
	}
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return ": " + strings.Join(words, ", ")
}

func jobsOf(list []proto.JobStatus) []jobStatusJSON {
	out := make([]jobStatusJSON, len(list))
	for i := range list {
		x := &list[i]
		out[i] = jobStatusJSON{x.Job, x.State.String(), x.Reason, []shareJSON{}, x.Asked, x.Granted, x.Realised, nil}
		if n := int(x.Stages); n > 0 && len(x.Domains)%n == 0 {
			for row := range n {
				width := len(x.Domains) / n
				out[i].Domains = append(out[i].Domains, x.Domains[row*width:(row+1)*width])
			}
		}
		for _, s := range x.Servers {
			out[i].Servers = append(out[i].Servers, shareJSON{s.Pod, s.Leaf, s.Servers})
		}
	}
	return out
}

func printJobs(out io.Writer, jobs []jobStatusJSON) error {
	return table(out, func(w io.Writer) {
		fmt.Fprintln(w, "JOB\tSTATE\tSERVERS\tLINKS\tASKED\tREASON")
		for _, j := range jobs {
			n := 0
			for _, s := range j.Servers {
				n += int(s.Servers)
			}
			fmt.Fprintf(w, "%d\t%s\t%d\t%d/%d\t%d\t%s\n", j.Job, j.State, n, j.Realised, j.Granted, j.Asked, j.Reason)
		}
	})
}

func printCircuits(out io.Writer, circuits []circuitJSON) error {
	return table(out, func(w io.Writer) {
		fmt.Fprintln(w, "SWITCH\tA\tB\tJOB\tSTATE\tLOSS")
		for _, x := range circuits {
			loss := "-"
			if x.Loss != nil {
				loss = fmt.Sprintf("%.2f dB", float64(*x.Loss)/1000)
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%s\t%s\n", x.Switch, x.PortA, x.PortB, x.Job, x.State, loss)
		}
	})
}
