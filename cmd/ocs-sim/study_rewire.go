package main

import (
	"context"
	"time"

	"ringlight/sim/study"
)

func studyRewire(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultRewire()
	fs := s.flags("-pods 128 -groups 16 -spine-ports 16 -length 10 -svg rewire.svg")
	fs.IntVar(&cfg.Pods, "pods", cfg.Pods, "pods")
	fs.IntVar(&cfg.Groups, "groups", cfg.Groups, "spines of a pod, each the like-numbered spine's group of switches")
	fs.IntVar(&cfg.SpinePorts, "spine-ports", cfg.SpinePorts, "ports of a spine towards its switches, even; as many switches in a group")
	fs.IntVar(&cfg.Length, "length", cfg.Length, "topologies after the first in every sequence")
	fs.IntVar(&cfg.Steps, "steps", 0, "steps of the search for one topology, all groups; 0: 120 a link")
	idle := ratioList(fs, "idle", cfg.Idle, "ports that stay idle")
	churn := ratioList(fs, "churn", cfg.Churn, "links that change from one topology to the next")
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Idle, cfg.Churn, cfg.Seed, cfg.Progress = *idle, *churn, *s.seed, s.progress()
	if s.gather == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	return s.compute(ctx, func() (result, error) { return study.Rewire(cfg) })
}
