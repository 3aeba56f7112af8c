package main

import (
	"context"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/sim/flow"
	"ringlight/sim/study"
)

func studyJCT(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultJCT()
	fs := s.flags("-workload w1 -lambda 100,120,140 -strategies best,vclos,ocs -queue fifo,easy -runs 5 -svg jct.svg")
	cluster := s.clusterFlag()
	jobs := fs.String("workload", cfg.Workload.Kind, workloadUsage())
	fs.IntVar(&cfg.Workload.Jobs, "jobs", cfg.Workload.Jobs, jobsUsage)
	lambda := intList(fs, "lambda", []int{120}, "mean seconds between arrivals of a generator")
	wrong := fs.Float64("estimate-error", 0, "share of its duration by which what a drawn job declares may be off")
	strategies := fs.String("strategies", strings.Join(cfg.Strategies, ","), "which, separated by commas")
	queues := fs.String("queue", "fifo", "orders of the queue: "+strings.Join(study.QueueOrders(), ","))
	fs.StringVar(&cfg.Sharing, "sharing", cfg.Sharing, "how flows share links of a shared core: "+strings.Join(flow.Sharings(), ", "))
	fs.IntVar(&cfg.Patience, "patience", cfg.Patience, "times that a job is passed by later ones before it becomes the head; 0: no end")
	fs.IntVar(&cfg.Steps, "steps", cfg.Steps, "steps of compute and collectives that a job is cut into")
	fs.IntVar(&cfg.Runs, "runs", cfg.Runs, "times that the jobs are drawn")
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
	for _, l := range *lambda {
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
	f, err := open(name)
	if err != nil {
		return study.JCTCluster{}, cli.Usage("cluster", "512, 2048 or a file", "%w", err)
	}
	defer f.Close()
	return study.ReadJCTCluster(f)
}

func splitList(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		out = append(out, strings.TrimSpace(part))
	}
	return out
}
