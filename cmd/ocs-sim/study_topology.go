package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/model"
	"ringlight/proto"
	"ringlight/sim/study"
)

func studyTopology(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultTopology()
	fs := s.flags("-models dlrm,bert -degree 4 -gbps 100 -svg topology.svg")
	fs.IntVar(&cfg.Servers, "servers", cfg.Servers, "servers of a job")
	fs.IntVar(&cfg.GPUsPerServer, "gpus", cfg.GPUsPerServer, "GPUs of a server")
	degrees := intList(fs, "degree", cfg.Degrees, "interfaces of a server")
	gbps := intList(fs, "gbps", cfg.Gbps, "bandwidth of an interface, Gb/s")
	batches := intList(fs, "batch", cfg.Batches, "batches of the all-to-all sweep")
	models := fs.String("models", "all", "which, separated by commas: "+strings.Join(model.Names(), ", ")+" or JSON files")
	fs.IntVar(&cfg.Shared, "shared", cfg.Shared, "times that jobs are drawn on 432 shared servers; 0: not run")
	fs.BoolVar(&cfg.ShareLayers, "share-layers", false, "searches may share dense layers among servers")
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Degrees, cfg.Gbps, cfg.Batches, cfg.Seed, cfg.Progress = *degrees, *gbps, *batches, *s.seed, s.progress()
	var err error
	if cfg.Models, err = readModels(*models, cfg.Models); err != nil {
		return err
	}
	err = s.compute(ctx, func() (result, error) { return study.Topology(cfg) })
	if refused := new(model.Error); errors.As(err, &refused) {
		return &proto.Error{Code: proto.Invalid, Field: refused.Field, Limit: refused.Limit, Reason: err.Error()}
	}
	return err
}

// maxModel is the size of a model's file; chosen: a layer a line of the deepest
// network there is.
const maxModel = 1 << 20

// readModels are those of a list, or all.
func readModels(list string, all []*model.Model) (out []*model.Model, err error) {
	if list == "all" {
		return all, nil
	}
	for _, name := range splitList(list) {
		m, err := readModel(name)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func readModel(name string) (*model.Model, error) {
	if m := model.Named(name); m != nil {
		return m, nil
	}
	data, long, err := cli.ReadBounded(os.Stdin, name, maxModel)
	if err != nil || long {
		return nil, refusedModel(fmt.Sprintf("%s: cannot be read, or is over %d bytes (%v)", name, maxModel, err))
	}
	m, err := model.Read(data)
	var refused *model.Error
	if errors.As(err, &refused) {
		return nil, &proto.Error{Code: proto.Invalid, Field: refused.Field, Limit: refused.Limit, Reason: name + ": " + refused.Reason}
	}
	return m, err
}

func refusedModel(reason string) error {
	return &proto.Error{Code: proto.Invalid, Field: "models", Limit: strings.Join(model.Names(), ", ") + " or a file", Reason: reason}
}

// directFlags are those of a job of one model on direct links, and which models.
func directFlags(fs *flag.FlagSet, servers, gpus, degree, gbps *int) (models *string) {
	fs.IntVar(servers, "servers", *servers, "servers of a job")
	fs.IntVar(gpus, "gpus", *gpus, "GPUs of a server")
	fs.IntVar(degree, "degree", *degree, "interfaces of a server")
	fs.IntVar(gbps, "gbps", *gbps, "bandwidth of an interface, Gb/s")
	return fs.String("models", "all", "which, separated by commas: names of study topology or JSON files")
}

func studyReconfig(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultReconfig()
	fs := s.flags("-servers 128 -degree 4 -models dlrm,vgg")
	models := directFlags(fs, &cfg.Servers, &cfg.GPUsPerServer, &cfg.Degree, &cfg.Gbps)
	fs.IntVar(&cfg.Iterations, "iterations", cfg.Iterations, "of a job")
	fs.DurationVar(&cfg.Period, "period", cfg.Period, "between two looks at what is unsent")
	fs.DurationVar(&cfg.Dark, "dark", cfg.Dark, "while links are made")
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

func studyPhases(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultPhases()
	fs := s.flags("-models gpt-moe -stages 4 -switching 100us,10ms")
	models := directFlags(fs, &cfg.Servers, &cfg.GPUsPerServer, &cfg.Degree, &cfg.Gbps)
	stages := intList(fs, "stages", cfg.Stages, "stages of a pipeline, for models without tables")
	dark := listFlag(fs, "switching", cfg.Dark, "for so long links are dark that move, `LIST` (default 10us,100us,1ms,10ms,50ms)", "time: want a list such as 100us,10ms", time.ParseDuration)
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Stages, cfg.Dark, cfg.Seed, cfg.Progress = *stages, *dark, *s.seed, s.progress()
	var err error
	if cfg.Models, err = readModels(*models, cfg.Models); err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) { return study.Phases(cfg) })
}

func studyExchange(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultExchange()
	fs := s.flags("-groups 4,8,16 -k 2 -switching 100us")
	groups := intList(fs, "groups", cfg.Groups, "nodes of a group, powers of two")
	ks := intList(fs, "k", cfg.Ks, "spans of fibres, to n +- 2^i for i below k")
	fs.IntVar(&cfg.Gbps, "gbps", cfg.Gbps, "bandwidth of a bundle, Gb/s")
	fs.IntVar(&cfg.Bytes, "bytes", cfg.Bytes, "from each node to each other")
	fs.IntVar(&cfg.Reduce, "reduce", cfg.Reduce, "bytes of the AllReduce beside which it is looked at")
	fs.DurationVar(&cfg.Compute, "compute", cfg.Compute, "before the first step, nothing is sent")
	dark := listFlag(fs, "switching", cfg.Dark, "for so long a transceiver is dark that switches, `LIST` (default 0s,80us,1ms)", "time: want a list such as 100us,10ms", time.ParseDuration)
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Groups, cfg.Ks, cfg.Dark, cfg.Progress = *groups, *ks, *dark, s.progress()
	return s.compute(ctx, func() (result, error) { return study.Exchanges(cfg) })
}

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
