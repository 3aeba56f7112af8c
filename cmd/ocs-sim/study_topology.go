package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/model"
	"ringlight/sim/study"
)

func studyTopology(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultTopology()
	fs := s.flags("-models dlrm,bert -degree 4 -gbps 100 -svg topology.svg", &cfg)
	models := fs.String("models", "all", "which, separated by commas: "+strings.Join(model.Names(), ", ")+" or JSON files")
	if err := s.parseModels(models, &cfg.Models); err != nil {
		return err
	}
	err := compute(ctx, s, &cfg, study.Topology)
	if refused := new(model.Error); errors.As(err, &refused) {
		return invalid(refused.Field, refused.Limit, "%v", err)
	}
	return err
}

// maxModel is the size of a model's file; chosen: a layer a line of the deepest
// network there is.
const maxModel = 1 << 20

// parseModels is parse, and takes the models of a list in place of all.
func (s *studyRun) parseModels(list *string, models *[]*model.Model) error {
	if err := s.parse(); err != nil || *list == "all" {
		return err
	}
	*models = nil
	for _, name := range splitList(*list) {
		m, err := readModel(name)
		if err != nil {
			return err
		}
		*models = append(*models, m)
	}
	return nil
}

func readModel(name string) (*model.Model, error) {
	if m := model.Named(name); m != nil {
		return m, nil
	}
	data, long, err := cli.ReadBounded(os.Stdin, name, maxModel)
	if err != nil || long {
		return nil, invalid("models", strings.Join(model.Names(), ", ")+" or a file", "%s: cannot be read, or is over %d bytes (%v)", name, maxModel, err)
	}
	m, err := model.Read(data)
	var refused *model.Error
	if errors.As(err, &refused) {
		return nil, invalid(refused.Field, refused.Limit, "%s: %s", name, refused.Reason)
	}
	return m, err
}

// modelsFlag says which models a job on direct links is of.
func modelsFlag(fs *flag.FlagSet) *string {
	return fs.String("models", "all", "which, separated by commas: names of study topology or JSON files")
}

func studyReconfig(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultReconfig()
	models := modelsFlag(s.flags("-servers 128 -degree 4 -models dlrm,vgg", &cfg))
	if err := s.parseModels(models, &cfg.Models); err != nil {
		return err
	}
	return compute(ctx, s, &cfg, study.Reconfig)
}

func studyPhases(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultPhases()
	models := modelsFlag(s.flags("-models gpt-moe -stages 4 -switching 100us,10ms", &cfg))
	if err := s.parseModels(models, &cfg.Models); err != nil {
		return err
	}
	return compute(ctx, s, &cfg, study.Phases)
}

func studyRewire(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultRewire()
	s.flags("-pods 128 -groups 16 -spine-ports 16 -length 10 -svg rewire.svg", &cfg)
	if err := s.parse(); err != nil {
		return err
	}
	if s.gather == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	return compute(ctx, s, &cfg, study.Rewire)
}
