package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/sim/study"
)

func studyCompare(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultCompare()
	fs := s.flags("-workload w1 -trace fault_trace.json -svg compare.svg")
	cluster := s.clusterFlag()
	jobs := fs.String("workload", cfg.Workload.Kind, workloadUsage())
	fs.IntVar(&cfg.Workload.Jobs, "jobs", cfg.Workload.Jobs, jobsUsage)
	gbps := fs.Int("gbps", 0, "Gb/s of a GPU's port (default that of the cluster)")
	fs.IntVar(&cfg.ScaleUp, "scale-up-gbps", cfg.ScaleUp, "Gb/s of a GPU to others of its server, or around its ring")
	fs.IntVar(&cfg.PodLeaves, "pod-leaves", cfg.PodLeaves, "leaves of a pod of LumosCore")
	fs.IntVar(&cfg.Ring, "ring", cfg.Ring, "most GPUs of a ring of InfiniteHBD")
	fs.IntVar(&cfg.Hops, "k", cfg.Hops, "servers that a fibre of InfiniteHBD reaches on")
	fs.StringVar(&cfg.Budget, "budget", cfg.Budget, "what all systems have alike: bandwidth of a GPU's port, or cost of its network")
	fs.IntVar(&cfg.Dollars, "dollars", cfg.Dollars, "a GPU, with -budget cost (0: what the dearest system costs at -gbps)")
	load := fs.Float64("load", float64(cfg.Load)/1000, "share of the GPUs that the jobs ask for; a list stands as it is unless this is given")
	loads := ratioList(fs, "loads", shares(cfg.Loads), "loads of the curve")
	fs.IntVar(&cfg.FaultRate, "fault-rate", cfg.FaultRate, "traces that lie over each other in the table")
	rates := intList(fs, "fault-rates", cfg.FaultRates, "fault rates of the curve")
	file := s.traceFlag()
	checkpoint := fs.Int("checkpoint-s", int(cfg.Checkpoint.Seconds()), "seconds between points that a job can go back to")
	reload := fs.Int("reload-s", int(cfg.Reload.Seconds()), "seconds that a job reloads that has lost a server")
	setup := fs.Int("setup-ms", int(cfg.Setup.Milliseconds()), "milliseconds until circuits and routes of a job are there")
	systems := fs.String("systems", strings.Join(cfg.Systems, ","), "which, separated by commas")
	fs.IntVar(&cfg.Runs, "runs", cfg.Runs, "times that jobs and faults are drawn")
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
	cfg.Workload.Kind, cfg.Seed, cfg.Systems, cfg.FaultRates = *jobs, *s.seed, splitList(*systems), *rates
	cfg.Checkpoint, cfg.Reload, cfg.Setup = bounded(*checkpoint, time.Second), bounded(*reload, time.Second), bounded(*setup, time.Millisecond)
	cfg.Load, cfg.Loads = thousandths(*load), nil
	for _, l := range *loads {
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
	if *file != "" {
		if cfg.Trace, err = readTrace(*file); err != nil {
			return cli.AsUsage(err)
		}
		cfg.Source.Name = filepath.Base(*file)
	}
	return simulate(ctx, s, cfg, *parallel)
}

// shares of thousandths.
func shares(mille []int) []float64 {
	out := make([]float64, len(mille))
	for i, m := range mille {
		out[i] = float64(m) / 1000
	}
	return out
}

// bounded is so many units; far beyond any limit stays so.
func bounded(n int, unit time.Duration) time.Duration {
	return time.Duration(min(max(n, -1), 1<<30)) * unit
}
