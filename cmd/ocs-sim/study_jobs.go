package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/sim/flow"
	"ringlight/sim/live"
	"ringlight/sim/study"
	"ringlight/sim/workload"
)

// What the studies of jobs share: a generator by name, or a list of one's own.

func workloadUsage() string {
	return "generator " + strings.Join(workload.Kinds(), ", ") + ", or a CSV `FILE` of " + workload.Heading + "[,model]"
}

// jobList reads the list that a workload names; nil: it names a generator. What
// only a generator has may then not be given.
func (s *studyRun) jobList(name string, gpus int, drawn ...string) ([]workload.Job, error) {
	if slices.Contains(workload.Kinds(), name) {
		return nil, nil
	}
	given := s.given()
	for _, flag := range drawn {
		if given[flag] {
			return nil, invalid(flag, "only with a generator", "a list has its own arrivals and jobs")
		}
	}
	f, err := open(name)
	if err != nil {
		return nil, invalid("workload", "one of "+strings.Join(workload.Kinds(), ", ")+", or a file", "%v", err)
	}
	defer f.Close()
	return workload.NewReader(f, gpus, *s.seed).All()
}

func studyJCT(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultJCT()
	fs := s.flags("-workload w1 -lambda 100,120,140 -strategies best,vclos,ocs -queue fifo,easy -runs 5 -svg jct.svg", &cfg)
	cluster := s.clusterFlag()
	jobs := fs.String("workload", cfg.Workload.Kind, workloadUsage())
	o := struct {
		Lambda []int `flag:"lambda" usage:"mean seconds between arrivals of a generator"`
	}{[]int{120}}
	cli.Options(fs, &o)
	wrong := fs.Float64("estimate-error", 0, "share of its duration by which what a drawn job declares may be off")
	strategies := fs.String("strategies", strings.Join(cfg.Strategies, ","), "which, separated by commas")
	queues := fs.String("queue", "fifo", "orders of the queue: "+strings.Join(study.QueueOrders(), ","))
	fs.StringVar(&cfg.Sharing, "sharing", cfg.Sharing, "how flows share links of a shared core: "+strings.Join(flow.Sharings(), ", "))
	clock := fs.Bool("clock", true, "time decisions, by the processor; without, the same command prints the same bytes")
	parallel := parallelFlag(fs)
	if err := s.parse(); err != nil {
		return err
	}
	var err error
	if cfg.Cluster, err = jctCluster(*cluster); err != nil {
		return err
	}
	cfg.Seed, cfg.Strategies, cfg.Queues = *s.seed, splitList(*strategies), splitList(*queues)
	cfg.Workload.EstimateError = int(*wrong*1000 + 0.5)
	cfg.Gaps = nil
	for _, l := range o.Lambda {
		cfg.Gaps = append(cfg.Gaps, time.Duration(min(max(l, 0), maxLambda))*time.Second)
	}
	cfg.Workload.Kind = *jobs
	if cfg.List, err = s.jobList(*jobs, cfg.Cluster.GPUsTotal(), "lambda", "jobs", "runs"); err != nil {
		return err
	}
	if cfg.List != nil {
		cfg.Name, cfg.Gaps = *jobs, []time.Duration{0}
	}
	if *clock && s.gather == nil {
		cfg.Clock = threadTime
	}
	return simulate(ctx, s, cfg, *parallel)
}

const maxLambda = 1 << 30 // s; the study says what it takes

func jctCluster(name string) (study.JCTCluster, error) {
	switch name {
	case "512":
		return study.DefaultJCTCluster(16), nil
	case "2048":
		return study.DefaultJCTCluster(64), nil
	}
	text, _, err := cli.ReadBounded(os.Stdin, name, 1<<16)
	if err != nil {
		return study.JCTCluster{}, cli.Usage("cluster", "512, 2048 or a file", "%w", err)
	}
	return study.ReadJCTCluster(text)
}

func splitList(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(part))
	}
	return out
}

func studyLumos(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultLumos()
	in := &cfg.Cases[0].LumosInputs
	fs := s.flags("-runs 5 -svg lumos.svg", &cfg)
	cli.Options(fs, in)
	fs.StringVar(&in.Workload, "workload", in.Workload, workloadUsage())
	load := fs.Float64("load", float64(in.Load)/1000, "share of the GPUs that the drawn jobs ask for ([LUMOS] eq. 9)")
	talk := fs.Float64("communication", float64(in.Share)/1000, "times what the models send")
	vary := fs.Bool("vary", true, "also vary each input by itself")
	parallel := parallelFlag(fs)
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Seed = *s.seed
	in.Load, in.Share = thousandths(*load), thousandths(*talk)
	var err error
	if cfg.List, err = s.jobList(in.Workload, in.GPUs, "load", "jobs"); err != nil {
		return err
	}
	if *vary {
		cfg.Vary()
	}
	return simulate(ctx, s, cfg, *parallel)
}

// thousandths of a share, rounded; far beyond any limit stays so.
func thousandths(v float64) int { return int(max(-1, min(v, 1e6))*1000 + 0.5) }

func studyCompare(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultCompare()
	fs := s.flags("-workload w1 -trace fault_trace.json -svg compare.svg", &cfg)
	cluster := s.clusterFlag()
	jobs := fs.String("workload", cfg.Workload.Kind, workloadUsage())
	gbps := fs.Int("gbps", 0, "Gb/s of a GPU's port (default that of the cluster)")
	load := fs.Float64("load", float64(cfg.Load)/1000, "share of the GPUs that the jobs ask for; a list stands as it is unless this is given")
	o := struct {
		Loads []float64 `flag:"loads" usage:"loads of the curve"`
	}{}
	for _, l := range cfg.Loads {
		o.Loads = append(o.Loads, float64(l)/1000)
	}
	cli.Options(fs, &o)
	file := s.traceFlag()
	checkpoint := fs.Int("checkpoint-s", int(cfg.Checkpoint.Seconds()), "seconds between points that a job can go back to")
	reload := fs.Int("reload-s", int(cfg.Reload.Seconds()), "seconds that a job reloads that has lost a server")
	setup := fs.Int("setup-ms", int(cfg.Setup.Milliseconds()), "milliseconds until circuits and routes of a job are there")
	systems := fs.String("systems", strings.Join(cfg.Systems, ","), "which, separated by commas")
	parallel := parallelFlag(fs)
	if err := s.parse(); err != nil {
		return err
	}
	var err error
	if cfg.Cluster, err = jctCluster(*cluster); err != nil {
		return err
	}
	given := s.given()
	if given["gbps"] {
		cfg.Cluster.Gbps = *gbps
	}
	cfg.Workload.Kind, cfg.Seed, cfg.Systems = *jobs, *s.seed, splitList(*systems)
	cfg.Checkpoint, cfg.Reload, cfg.Setup = bounded(*checkpoint, time.Second), bounded(*reload, time.Second), bounded(*setup, time.Millisecond)
	cfg.Load, cfg.Loads = thousandths(*load), nil
	for _, l := range o.Loads {
		cfg.Loads = append(cfg.Loads, thousandths(l))
	}
	if cfg.List, err = s.jobList(*jobs, cfg.Cluster.GPUsTotal(), "jobs"); err != nil {
		return err
	}
	if cfg.List != nil {
		if cfg.Name = *jobs; !given["load"] {
			cfg.Load = 0
		}
	}
	if cfg.Source, err = readTrace(*file); err != nil {
		return err
	}
	return simulate(ctx, s, cfg, *parallel)
}

// bounded is so many units; far beyond any limit stays so.
func bounded(n int, unit time.Duration) time.Duration {
	return time.Duration(min(max(n, -1<<30), 1<<30)) * unit
}

const maxParallel = 1024

func parallelFlag(fs *flag.FlagSet) *int {
	return fs.Int("parallel", runtime.NumCPU(), "simulations side by side")
}

// cells is a study of simulations that share nothing.
type cells[C, R any, T result] interface {
	Validate() error
	Cells() []C
	Run(C) (R, error)
	Result([]R) T
}

// simulate runs the cells of a study, so many at a time, and puts them together
// in their order whoever ends first.
func simulate[C, R any, T result](ctx context.Context, s *studyRun, cfg cells[C, R, T], parallel int) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if parallel < 1 || parallel > maxParallel {
		return invalid("parallel", fmt.Sprintf("1 to %d", maxParallel), "%d is out of range", parallel)
	}
	return s.compute(ctx, func() (result, error) {
		all := cfg.Cells()
		runs := make([]R, len(all))
		err := live.InParallel(ctx, parallel, len(all), s.progress(), func(i int) (err error) {
			runtime.LockOSThread() // a clock may count the thread's time
			defer runtime.UnlockOSThread()
			runs[i], err = cfg.Run(all[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		return cfg.Result(runs), nil
	})
}
