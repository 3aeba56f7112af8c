package main

import (
	"context"

	"ringlight/sim/study"
)

func studyLumos(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultLumos()
	in := &cfg.Cases[0].LumosInputs
	fs := s.flags("-runs 5 -svg lumos.svg")
	fs.IntVar(&in.GPUs, "gpus-total", in.GPUs, "GPUs of the cluster")
	fs.StringVar(&in.Workload, "workload", in.Workload, workloadUsage())
	fs.IntVar(&cfg.Jobs, "jobs", cfg.Jobs, jobsUsage)
	load := fs.Float64("load", float64(in.Load)/1000, "share of the GPUs that the drawn jobs ask for ([LUMOS] eq. 9)")
	talk := fs.Float64("communication", float64(in.Share)/1000, "times what the models send")
	fs.IntVar(&in.EP, "ep", in.EP, "most GPUs of an expert parallel domain")
	fs.IntVar(&in.Setup, "setup-ms", in.Setup, "milliseconds until circuits and routes of a new job between pods are there")
	fs.StringVar(&in.Reduce, "collective", in.Reduce, "of the replicas of a stage: ring, halving-doubling, double-tree or all-to-all")
	fs.StringVar(&in.Routing, "routing", in.Routing, "of the Clos: balanced, ecmp or ideal")
	fs.IntVar(&cfg.Steps, "steps", cfg.Steps, "iterations of a job")
	fs.IntVar(&cfg.Runs, "runs", cfg.Runs, "times that the jobs are drawn")
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
