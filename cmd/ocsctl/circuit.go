package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

func circuit(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	dryRun := c.flags.Bool("dry-run", false, "flip, drain, undrain: only say what it would do")
	reason := c.flags.String("reason", "", "drain, connect: why, `TEXT`, for those who come after")
	output := c.flags.String("o", "", "tables: what of each device `WHO` takes: iproute2, frr or nft, on any core")
	prune := c.flags.Bool("prune", false, "apply: jobs that are not in FILE end")
	words, err := c.read(args, help("circuit"))
	switch {
	case err != nil:
		return err
	case len(words) == 1 && words[0] == "list":
		return circuitList(ctx, c, out)
	case len(words) == 2 && words[0] == "show":
		id, err := number("job", words[1], 1)
		if err != nil {
			return err
		}
		return circuitShow(ctx, c, proto.JobID(id), out)
	case len(words) == 2 && (words[0] == "drain" || words[0] == "undrain"):
		return circuitDrain(ctx, c, proto.OpRequest{Noun: map[string]proto.Noun{"drain": proto.NounDrain, "undrain": proto.NounUndrain}[words[0]],
			Node: proto.FirstSwitch - 1, Name: words[1], Reason: *reason, DryRun: *dryRun}, out)
	case len(words) > 2 && (words[0] == "connect" || words[0] == "disconnect") && !*dryRun:
		return circuitByHand(ctx, c, words[1], words[2:], words[0] == "connect", *reason, out)
	case (len(words) == 2 || len(words) == 3) && words[0] == "flip":
		id, err := number("job", words[1], 1)
		if err != nil {
			return err
		}
		return circuitFlip(ctx, c, proto.OpRequest{Noun: proto.NounFlip, Job: proto.JobID(id), Name: strings.Join(words[2:], ""), DryRun: *dryRun}, out)
	case len(words) > 0 && len(words) <= 2 && words[0] == "tables":
		id := uint32(0)
		if len(words) == 2 {
			if id, err = number("job", words[1], 1); err != nil {
				return err
			}
		}
		if *output != "" {
			return circuitRoutes(ctx, c, proto.JobID(id), *output, out)
		}
		return circuitTables(ctx, c, proto.JobID(id), out)
	case len(words) == 2 && (words[0] == "apply" || words[0] == "plan"):
		jobs, err := readJobs(words[1])
		if err != nil {
			return err
		}
		dry := words[0] == "plan"
		return circuitApply(ctx, c, jobs, dry, dry || *prune, out)
	}
	return wrongUsage("circuit", "list, show JOB, tables [JOB], apply FILE, plan FILE, flip JOB [PHASE], drain PART, undrain PART, connect SWITCH CIRCUIT or disconnect SWITCH CIRCUIT", "%q", strings.Join(words, " "))
}

// circuitJSON, jobStatusJSON and changeJSON are the forms that
// scripts rely on.
type circuitJSON struct {
	Switch int `json:"switch"` // from 0
	switchPortsJSON
}

type jobStatusJSON struct {
	Job      proto.JobID         `json:"job"`
	Name     string              `json:"name,omitempty"` // that it was asked for by
	State    string              `json:"state"`
	Reason   string              `json:"reason,omitempty"`
	Servers  []proto.LeafServers `json:"servers"`
	Asked    uint32              `json:"links_asked"`
	Granted  uint32              `json:"links_granted"`
	Realised uint32              `json:"links_realised"`
	Domains  [][]uint16          `json:"domains,omitempty"` // leaf of each by stage and replica; only of one job
	// Collective is a ring's of a job that was found by its circuits, too.
	Collective string      `json:"collective"`
	Cause      string      `json:"cause,omitempty"` // of a job that waits: gpu, network or turn
	Seats      [][3]uint16 `json:"seats,omitempty"` // leaf, server, GPUs, in the order of ranks; only of one job
	Next       proto.JobID `json:"next,omitempty"`  // of servers joined directly: whose servers it gets
	Rings      []orderJSON `json:"rings,omitempty"` // only of one job
	Phase      string      `json:"phase,omitempty"` // of several: the one that it has links for
}

type changeJSON struct {
	DryRun bool          `json:"dry_run"`
	Ended  []proto.JobID `json:"jobs_ended"`
	*proto.ChangeStatus
}

func circuitOf(x *proto.CircuitStatus) circuitJSON {
	return circuitJSON{int(x.Switch - proto.FirstSwitch), switchPortsJSON{x.A, x.B, x.Job, x.State.String(), x.Loss.Known()}}
}

func circuitList(ctx context.Context, c *clientFlags, out io.Writer) error {
	var all struct {
		Core     *proto.CoreStatus `json:"core"`
		Jobs     []jobStatusJSON   `json:"jobs"`
		Circuits []circuitJSON     `json:"circuits"`
	}
	err := c.with(ctx, func(cl *client) error {
		r, err := cl.Ask(ctx, proto.OpRequest{Noun: proto.NounCore})
		if err != nil {
			return err
		}
		if all.Core = r.Core; r.Core == nil {
			return errors.New("the planner's answer has no core")
		}
		all.Jobs, err = every(ctx, cl, proto.OpRequest{Noun: proto.NounJobs}, func(r *proto.OpReply) []proto.JobStatus { return r.Jobs }, jobOf)
		if err != nil {
			return err
		}
		all.Circuits, err = every(ctx, cl, proto.OpRequest{Noun: proto.NounCircuits}, func(r *proto.OpReply) []proto.CircuitStatus { return r.Circuits }, circuitOf)
		return err
	})
	return c.answer(out, all, err, func() {
		core := all.Core
		cli.Say(out, "%d of %d switches online, %d of %d circuits tuned, links realised %d, granted %d, asked %d\n",
			core.Online, core.Switches, core.Tuned, core.Circuits, core.Realised, core.Granted, core.Asked)
		printJobs(out, all.Jobs)
		fmt.Fprintln(out)
		printCircuits(out, all.Circuits)
	})
}

func circuitShow(ctx context.Context, c *clientFlags, id proto.JobID, out io.Writer) error {
	var one struct {
		*jobStatusJSON
		Circuits []circuitJSON `json:"circuits"`
	}
	err := c.with(ctx, func(cl *client) (err error) {
		one.Circuits, err = every(ctx, cl, proto.OpRequest{Noun: proto.NounJob, Job: id}, func(r *proto.OpReply) []proto.CircuitStatus {
			if one.jobStatusJSON == nil && len(r.Jobs) == 1 {
				one.jobStatusJSON = new(jobOf(&r.Jobs[0]))
			}
			return r.Circuits
		}, circuitOf)
		if err == nil && one.jobStatusJSON == nil {
			err = errors.New("the planner's answer has no job")
		}
		return err
	})
	return c.answer(out, one, err, func() {
		printJobs(out, []jobStatusJSON{*one.jobStatusJSON})
		for _, s := range one.Servers {
			fmt.Fprintf(out, "  pod %d leaf %d: %d servers\n", s.Pod, s.Leaf, s.Servers)
		}
		for n, row := range one.Domains {
			fmt.Fprintf(out, "  stage %d: leaf of each replica %s\n", n, runs(row))
		}
		for _, s := range one.Seats {
			fmt.Fprintf(out, "  leaf %d server %d: %d GPUs\n", s[0], s[1], s[2])
		}
		printRings(out, one.Rings)
		fmt.Fprintln(out)
		printCircuits(out, one.Circuits)
	})
}

// circuitApply has the planner do a job list, or say what it would do. Jobs
// end by it only where that may be.
func circuitApply(ctx context.Context, c *clientFlags, jobs *jobFile, dry, end bool, out io.Writer) error {
	ended := []proto.JobID{}
	var r *proto.OpReply
	err := c.with(ctx, func(cl *client) (err error) {
		if ended, err = listedJobs(ctx, cl); err != nil {
			return err
		}
		ended = slices.DeleteFunc(ended, func(id proto.JobID) bool {
			return slices.ContainsFunc(jobs.specs, func(s proto.JobSpec) bool { return s.Job == id })
		})
		stop := len(ended) > 0 && !end // what is wrong with the list is said first
		r, err = cl.Ask(ctx, proto.OpRequest{Noun: proto.NounApply, Jobs: jobs.specs, DryRun: dry || stop})
		if err == nil && stop {
			err = wrongUsage("jobs", "all jobs that run or wait, or -prune to end the others", "not in the list%s", listed(ended))
		}
		return err
	})
	if refused, ok := errors.AsType[*proto.Error](err); ok && refused.Code == proto.Invalid {
		return wrongUsage(jobs.field(refused.Field), refused.Limit, "%s", refused.Reason)
	}
	return printChange(c, r, err, dry, ended, out)
}

// listedJobs are those that a list has to name, or they end.
func listedJobs(ctx context.Context, cl *client) ([]proto.JobID, error) {
	return every(ctx, cl, proto.OpRequest{Noun: proto.NounJobs}, func(r *proto.OpReply) []proto.JobStatus {
		return slices.DeleteFunc(r.Jobs, func(x proto.JobStatus) bool { return x.Owner != "" })
	}, func(x *proto.JobStatus) proto.JobID { return x.Job })
}

// printChange prints what an answer says that changes, unless err says why there is none.
func printChange(c *clientFlags, r *proto.OpReply, err error, dry bool, ended []proto.JobID, out io.Writer) error {
	switch {
	case err != nil:
		return err
	case r.Change == nil:
		return errors.New("the planner's answer has no change")
	}
	r.Change.Waiting = listOf(r.Change.Waiting)
	ch := changeJSON{dry, ended, r.Change}
	return c.print(out, ch, func() { ch.print(out) })
}

func (ch *changeJSON) print(out io.Writer) {
	out = cli.Folded(out, "  ")
	fmt.Fprintf(out, "%s with servers, %d waiting%s\n", proto.Count(int(ch.Placed), "job"), len(ch.Waiting), listed(ch.Waiting))
	if len(ch.Ended) > 0 {
		fmt.Fprintf(out, "%s ending%s\n", proto.Count(len(ch.Ended), "job"), listed(ch.Ended))
	}
	fmt.Fprintf(out, "%s to make, %d to remove, in %s\n", proto.Count(int(ch.Created), "circuit"), ch.Removed, proto.Count(int(ch.Stages), "stage"))
	fmt.Fprintf(out, "links of jobs that stay: %d keep their circuits, %d move, at most %d of %d of a leaf at once\n", ch.Kept, ch.Moved, ch.Worst, ch.WorstOf)
	if ch.Moved > 0 && ch.DarkMicros > 0 {
		fmt.Fprintf(out, "a link that moves is dark for %.1f ms, as measured before\n", float64(ch.DarkMicros)/1000)
	}
	fmt.Fprintf(out, "links realised %d, granted %d, asked %d\n", ch.Realised, ch.Granted, ch.Asked)
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

func jobOf(x *proto.JobStatus) jobStatusJSON {
	j := jobStatusJSON{x.Job, x.Owner, x.State.String(), x.Reason, listOf(x.Servers), x.Asked, x.Granted, x.Realised, nil, x.Collective.String(), "", nil, x.Next, ringsOf(x), x.Phase}
	if x.Cause != proto.WaitUnknown {
		j.Cause = x.Cause.String()
	}
	for _, s := range x.Seats {
		j.Seats = append(j.Seats, [3]uint16{s.Leaf, s.Server, s.GPUs})
	}
	if n := int(x.Stages); n > 0 && len(x.Domains)%n == 0 {
		j.Domains = slices.Collect(slices.Chunk(x.Domains, max(1, len(x.Domains)/n)))
	}
	return j
}

func printJobs(out io.Writer, jobs []jobStatusJSON) {
	rows(out, "JOB\tSTATE\tSERVERS\tCOLLECTIVE\tLINKS\tASKED\tREASON", jobs, func(j jobStatusJSON) string {
		n := 0
		for _, s := range j.Servers {
			n += int(s.Servers)
		}
		return fmt.Sprintf("%s\t%s\t%d\t%s\t%d/%d\t%d\t%s", cmp.Or(j.Name, fmt.Sprint(j.Job)), j.State, n, cmp.Or(j.Phase, j.Collective), j.Realised, j.Granted, j.Asked, j.Reason)
	})
}

func printCircuits(out io.Writer, circuits []circuitJSON) {
	rows(out, "SWITCH\tA\tB\tJOB\tSTATE\tLOSS", circuits, func(x circuitJSON) string {
		job := cli.Either(x.Job == proto.ByHand, "by hand", fmt.Sprint(x.Job))
		return fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s", x.Switch, x.PortA, x.PortB, job, x.State, decibel(x.Loss))
	})
}
