package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	asker "ringlight/planner/jobapi/client"
	"ringlight/proto"
)

const defaultHTTP = "http://127.0.0.1:18880"

// jobFlags are those of every command about jobs.
type jobFlags struct {
	clientFlags
	help  string // that of jobs where it is empty
	owner string
}

func (j *jobFlags) read(fs *flag.FlagSet, args []string, words int, names string) ([]string, error) {
	fs.StringVar(&j.http, "http", defaultHTTP, "`URL` of the planner's jobs: http://host:port, https://host:port or unix:PATH")
	fs.StringVar(&j.owner, "owner", "", "of the job, `NAME`: who alone may change or release it; nothing: whoever says nothing")
	j.flags = fs
	got, err := j.clientFlags.read(args, cmp.Or(j.help, help("job")))
	if err != nil {
		return nil, err
	}
	if len(got) != words {
		return nil, wrongUsage(fs.Name(), names, "%q", cli.Clip(strings.Join(got, " ")))
	}
	if len(got) > 0 {
		if err := job.CheckID(got[0]); err != nil {
			return nil, cli.AsUsage(err)
		}
	}
	return got, nil
}

// client is of a planner that may be away so long.
func (j *jobFlags) client(retry time.Duration) (*asker.Client, error) {
	c, err := asker.New(asker.Config{URL: j.http, CAFile: j.ca, CertFile: j.cert, KeyFile: j.key, Waits: tellOnce(os.Stderr, j.json), Retry: retry})
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	return c.As(j.owner), nil
}

// open reads the words, and gives the client of who is asked.
func (j *jobFlags) open(fs *flag.FlagSet, args []string, words int, names string, retry time.Duration) (got []string, c *asker.Client, err error) {
	if got, err = j.read(fs, args, words, names); err == nil {
		c, err = j.client(retry)
	}
	return got, c, err
}

func names(list string) (out []job.Name) {
	for n := range strings.SplitSeq(list, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, job.Name(n))
		}
	}
	return out
}

func jobSubmit(ctx context.Context, args []string, out io.Writer) error {
	var j jobFlags
	fs := cli.NewFlags("job submit")
	w := job.Wish{}
	fs.IntVar(&w.TP, "tp", 0, "`GPUS` of a ring")
	fs.IntVar(&w.Rings, "rings", 0, "`NUMBER` of rings; 0: one")
	fs.IntVar(&w.Spares, "spares", 0, "`NUMBER` of nodes that are kept beside the rings")
	prefer := fs.String("prefer", "", "where rings stand: compact (where absent), spread or cross_tor")
	policy := fs.String("policy", string(job.Wait), "where there is no room or no spare: wait, shrink or fail")
	nodes := fs.String("nodes", "", "`NODES` that alone it may have, names or numbers with commas")
	exclude := fs.String("exclude", "", "`NODES` that it may not have")
	ring := fs.Uint("ring", 0, "`NUMBER` of the ring that stands on just those nodes: that one or none")
	hold := fs.Duration("hold", 10*time.Minute, "`TIME` after which a place is given back that has not become ready")
	circuits := fs.String("circuits", "", "`FILE` of what it asks for in place of rings; - is stdin")
	dry := fs.Bool("dry-run", false, "say what it would get, and reserve nothing")
	wait := fs.Duration("wait", 10*time.Minute, "`TIME` to wait for ready; 0: do not wait")
	got, err := j.read(fs, args, 1, "the job's NAME")
	if err != nil {
		return err
	}
	w.Prefer, w.Policy, w.HoldMS = job.Prefer(*prefer), job.Policy(*policy), hold.Milliseconds()
	w.Nodes, w.Exclude = names(*nodes), names(*exclude)
	if *circuits != "" {
		if w.Circuits, err = readCircuits(*circuits); err != nil {
			return err
		}
	}
	if *ring > math.MaxUint32 {
		return cli.Usage("ring", "a ring's number", "%d", *ring)
	}
	w.Ring = proto.RingID(*ring)
	c, err := j.client(0)
	if err != nil {
		return err
	}
	if *dry {
		t, err := c.Try(ctx, got[0], &w)
		return j.answer(out, t, err, func() {
			switch {
			case !t.Feasible:
				cli.Say(out, "it does not fit now: %s; %d would", t.Why, t.Most)
			case len(t.Ends) == 0:
				cli.Say(out, "it fits now, and no ring ends for it")
			default:
				cli.Say(out, "it fits now; rings that end for it: %s", spans(t.Ends))
			}
		})
	}
	v, err := c.Put(ctx, got[0], &w)
	if err != nil {
		return err
	}
	if *wait > 0 && v.State != job.Ready {
		ctx, cancel := context.WithTimeout(ctx, *wait)
		defer cancel()
		tell := tellOnce(os.Stderr, j.json)
		err := c.Follow(ctx, v.ID, 0, func(e *job.Event) bool {
			if e.Event != string(job.Ready) && e.Event != string(job.Released) {
				tell("job " + v.ID + ", which is " + e.Event + because(e.Cause))
			}
			return e.Generation <= v.Generation || e.Event != string(job.Ready) && e.Event != string(job.Released)
		})
		last, e := c.Get(context.WithoutCancel(ctx), v.ID)
		if e != nil {
			return e
		}
		if v = last; err != nil && v.State != job.Ready {
			return fmt.Errorf("job %s is not ready after %v: it is %s%s; it stays asked for until it is released", v.ID, *wait, v.State, because(v.Cause))
		}
	}
	return j.print(out, v, func() { printJob(out, v) })
}

func because(cause string) string { return cli.Either(cause == "", "", ": "+cause) }

func jobList(ctx context.Context, args []string, out io.Writer) error {
	var j jobFlags
	_, c, err := j.open(cli.NewFlags("job list"), args, 0, "no further word", 0)
	if err != nil {
		return err
	}
	all, err := c.List(ctx)
	return j.answer(out, map[string][]*job.View{"jobs": all}, err, func() { jobRows(out, all) })
}

func jobRows(out io.Writer, all []*job.View) {
	rows(out, "JOB\tSTATE\tRINGS\tGPUS\tLINKS\tSPARES\tEVENT\tWHY", all, func(v *job.View) string {
		what := cli.Either(v.Wish.Circuits != nil, "circuits", fmt.Sprintf("%d of %d", len(v.Rings), v.Wish.TP))
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%d/%d\t%d\t%d\t%s", v.ID, v.State, what, v.GPUsTotal, v.Confirmed, v.Links, len(v.Spares), v.Generation, dash(v.Cause))
	})
}

func printJob(out io.Writer, v *job.View) {
	jobRows(out, []*job.View{v})
	fmt.Fprintln(out)
	if v.Wish.Circuits != nil {
		printServers(out, v.Circuits)
		return
	}
	rows(out, "RING\tSTATE\tNODES, left to right", v.Rings, func(r job.Ring) string {
		return fmt.Sprintf("%d\t%s\t%s", r.Ring, r.State, dash(strings.Join(r.Nodes, " ")))
	})
	if len(v.Spares) > 0 {
		cli.Say(out, "spares: %s", strings.Join(v.Spares, " "))
	}
}

// printServers is what a job has of a core.
func printServers(out io.Writer, s *job.Servers) {
	if s == nil {
		return
	}
	for _, l := range s.Leaves {
		fmt.Fprintf(out, "pod %d leaf %d: %s\n", l.Pod, l.Leaf, proto.Count(int(l.Servers), "server"))
	}
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "HOST\tRANKS\tGPUS, in the order of ranks")
		rank, from, host, gpus := 0, 0, "", []string{}
		end := func() {
			if len(gpus) > 0 {
				fmt.Fprintf(w, "%s\t%d-%d\t%s\n", host, from, rank-1, strings.Join(gpus, " "))
			}
		}
		for _, d := range s.Domains {
			for _, g := range d.GPUs {
				if g.Host != host {
					end()
					from, host, gpus = rank, g.Host, nil
				}
				gpus = append(gpus, fmt.Sprint(g.GPU))
				rank++
			}
		}
		end()
	})
	if h := s.Strategy; h != nil {
		printStrategy(out, h)
	}
	cli.Say(out, "its circuits: ocsctl circuit show %d", s.Job)
}

// printStrategy prints which server holds which part of a model.
func printStrategy(out io.Writer, h *job.Held) {
	fmt.Fprintf(out, "%s, %.1f ms an iteration: %.1f of compute, %.1f of reduction, %.1f of the rest\n", proto.Count(h.Stages, "stage"),
		float64(h.Compute+h.Reduce+h.Send)/1e6, float64(h.Compute)/1e6, float64(h.Reduce)/1e6, float64(h.Send)/1e6)
	rows(out, "HOST\tSTAGE\tLAYERS\tSHARED\tTABLES\tSERVER\tA GPU", h.Servers, func(x job.Holding) string {
		shared := []string{}
		for i, layer := range x.Layers {
			if n := h.Share[layer]; n > 1 {
				shared = append(shared, fmt.Sprintf("%d:%d/%d", layer, x.Part[i], n))
			}
		}
		tables := strings.Trim(fmt.Sprint(x.Tables), "[]")
		return fmt.Sprintf("%s\t%d\t%d-%d\t%s\t%s\t%.1f GB\t%.1f GB", x.Host, x.Stage, x.Layers[0], x.Layers[len(x.Layers)-1], dash(strings.Join(shared, " ")), dash(tables), float64(x.ServerBytes)/1e9, float64(x.GPUBytes)/1e9)
	})
}

func jobShow(ctx context.Context, args []string, out io.Writer) error {
	return jobAbout(cli.NewFlags("job show"), args, "the job's NAME", out, func(c *asker.Client, got []string) (*job.View, error) { return c.Get(ctx, got[0]) })
}

func jobRelease(ctx context.Context, args []string, out io.Writer) error {
	return jobAbout(cli.NewFlags("job release"), args, "the job's NAME", out, func(c *asker.Client, got []string) (*job.View, error) { return c.Release(ctx, got[0]) })
}

func jobReplace(ctx context.Context, args []string, out io.Writer) error {
	fs := cli.NewFlags("job replace")
	reason := fs.String("reason", "", "why, `TEXT`, for those who come after")
	return jobAbout(fs, args, "the job's NAME and a NODE of it", out, func(c *asker.Client, got []string) (*job.View, error) { return c.Replace(ctx, got[0], got[1], *reason) })
}

func jobPhase(ctx context.Context, args []string, out io.Writer) error {
	return jobAbout(cli.NewFlags("job phase"), args, "the job's NAME and one of its PHASEs", out, func(c *asker.Client, got []string) (*job.View, error) { return c.Phase(ctx, got[0], got[1]) })
}

func jobTraffic(ctx context.Context, args []string, out io.Writer) error {
	var j jobFlags
	fs := cli.NewFlags("job traffic")
	dry := fs.Bool("dry-run", false, "only say what links for it would relieve")
	got, c, err := j.open(fs, args, 2, "the job's NAME and a FILE, or -: its topology, with what was measured", 0)
	if err != nil {
		return err
	}
	text, err := readInput(os.Stdin, got[1], maxJobList)
	if err != nil {
		return err
	}
	v, err := c.Get(ctx, got[0])
	if err != nil {
		return err
	}
	servers := 0
	if v.Circuits != nil {
		for _, x := range v.Circuits.Leaves {
			servers += int(x.Servers)
		}
	}
	t, err := readJobTopology(text, servers, defaultGPUs)
	if err != nil {
		return err
	}
	now, then, moves, err := c.Traffic(ctx, got[0], trafficOf(t), *dry)
	said := map[string]any{"fullest_link_bytes": now, "fullest_link_then_bytes": then, "moves": moves}
	return j.answer(out, said, err, func() {
		end := cli.Either(moves, "its links move", "a tenth less is wanted: nothing moves")
		cli.Say(out, "%.1f MB on the fullest link, %.1f over links found for it; %s", float64(now)/1e6, float64(then)/1e6, end)
	})
}

// jobAbout prints what is answered about a job, which is named, and a node or phase of
// it where names says so.
func jobAbout(fs *flag.FlagSet, args []string, names string, out io.Writer, ask func(*asker.Client, []string) (*job.View, error)) error {
	var j jobFlags
	got, c, err := j.open(fs, args, 1+strings.Count(names, " and "), names, 0)
	if err != nil {
		return err
	}
	v, err := ask(c, got)
	return j.answer(out, v, err, func() { printJob(out, v) })
}

func jobWatch(ctx context.Context, args []string, out io.Writer) error {
	var j jobFlags
	fs := cli.NewFlags("job watch")
	after := fs.Uint64("after", 0, "the `NUMBER` of the last event that is known")
	got, c, err := j.open(fs, args, 1, "the job's NAME", time.Hour)
	if err != nil {
		return err
	}
	return c.Follow(ctx, got[0], *after, func(e *job.Event) bool {
		if j.json {
			return printJSON(out, e) == nil && e.Event != string(job.Released)
		}
		text := fmt.Sprintf("%s  %4d  %s", time.UnixMilli(int64(e.AtMS)).Format("2006-01-02 15:04:05.000 MST"), e.Generation, strings.ReplaceAll(e.Event, "_", " "))
		switch {
		case e.Event == job.NodeLost:
			text += " " + e.Node
			if e.BypassUS > 0 {
				text += fmt.Sprintf(", bypassed in %d us", e.BypassUS)
			}
		case e.Event == job.Replaced && e.Position != nil:
			text += fmt.Sprintf(" %s by %s, ring %d, position %d", cmp.Or(e.Out, "nobody"), cmp.Or(e.In, "nobody"), e.Ring, *e.Position)
		case e.Event == job.Replaced && e.In != "":
			text += fmt.Sprintf(" %s by %s", cmp.Or(e.Out, "nobody"), e.In)
		case e.GPUsTotal > 0:
			text += fmt.Sprintf(", %d GPUs", e.GPUsTotal)
		}
		if e.HandOver != nil && e.Expect != job.Nothing {
			text += fmt.Sprintf(", %s lost, %s is to come", proto.Count(len(e.Lost), "rank"), e.Expect)
		}
		return cli.Say(out, "%s%s", text, because(e.Cause)) == nil && e.Event != string(job.Released)
	})
}

// jobFiles writes all files, of one event of the job, each whole or not at all.
func jobFiles(ctx context.Context, args []string, out io.Writer) error {
	var j jobFlags
	fs := cli.NewFlags("job files")
	dir := fs.String("o", ".", "`DIR` to write them in")
	var split job.Split
	fs.IntVar(&split.PP, "pp", 0, "`NUMBER` of rings of one pipeline; 0: one, of circuits their stages")
	fs.IntVar(&split.CP, "cp", 0, "`NUMBER` of rings or domains that share a sequence; 0: one")
	routes := fs.String("routes", "", "also the routes of circuits, a file of each leaf, spine or server in the words of `WHAT`: linux, frr, eos or iproute2")
	fs.TextVar(&split.Hosts, "hosts", job.DefaultHosts, "`NETWORK` of the addresses of GPUs, with -routes")
	fs.TextVar(&split.Ports, "ports", job.DefaultPorts, "`NETWORK` of the addresses of ports of leaves and spines, with -routes")
	got, c, err := j.open(fs, args, 1, "the job's NAME", 0)
	if err != nil {
		return err
	}
	v, err := c.Get(ctx, got[0])
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	var files []string
	take := func(name, as string) error {
		text, err := c.File(ctx, v.ID, name, split, v.Generation)
		if err == nil {
			files, texts[as] = append(files, as), text
		}
		return err
	}
	for _, name := range job.Files {
		err := take(name, name)
		if e := proto.AsError(err); e != nil && e.Field == "name" {
			fmt.Fprintf(os.Stderr, "no %s: %v\n", name, err)
		} else if err != nil {
			return err
		}
	}
	if *routes != "" {
		if err := take("routes.json", "routes.json"); err != nil {
			return err
		}
		of, err := job.Routes(texts["routes.json"], *routes)
		if err != nil {
			return err
		}
		for _, name := range of {
			if err := take(name, name); err != nil {
				return err
			}
		}
	}
	for _, name := range v.TopoFiles() {
		err := take(name, strings.ReplaceAll(name, "/", "_")) // of a host's name
		if e := proto.AsError(err); e != nil && e.Field == "gpu_table" {
			break // nobody has described the hosts
		} else if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	for _, name := range files {
		if err := cli.ReplaceFile(filepath.Join(*dir, strings.ReplaceAll(name, "/", "_")), texts[name], 0o644); err != nil {
			return err
		}
	}
	return j.print(out, map[string]any{"generation": v.Generation, "dir": *dir, "files": files}, func() {
		cli.Say(out, "%s of job %s, generation %d, in %s", strings.Join(files, ", "), v.ID, v.Generation, *dir)
	})
}
