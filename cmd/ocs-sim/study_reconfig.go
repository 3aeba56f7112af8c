package main

import (
	"context"

	"ringlight/sim/study"
)

func studyReconfig(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultReconfig()
	fs := s.flags("-servers 128 -degree 4 -models dlrm,vgg")
	fs.IntVar(&cfg.Servers, "servers", cfg.Servers, "servers of a job")
	fs.IntVar(&cfg.GPUsPerServer, "gpus", cfg.GPUsPerServer, "GPUs of a server")
	fs.IntVar(&cfg.Degree, "degree", cfg.Degree, "interfaces of a server")
	fs.IntVar(&cfg.Gbps, "gbps", cfg.Gbps, "bandwidth of an interface, Gb/s")
	fs.IntVar(&cfg.Iterations, "iterations", cfg.Iterations, "of a job")
	fs.DurationVar(&cfg.Period, "period", cfg.Period, "between two looks at what is unsent")
	fs.DurationVar(&cfg.Dark, "dark", cfg.Dark, "while links are made")
	models := fs.String("models", "all", "which, separated by commas: names of study topology or JSON files")
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Seed, cfg.Progress = *s.seed, s.progress()
	var err error
	if cfg.Models, err = readModels(*models, cfg.Models); err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) { return study.Reconfig(cfg) })
}
