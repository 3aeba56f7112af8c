package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

func studyFlows(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultFlows()
	fs := s.flags("-patterns ring,all-to-all -jobs 300", &cfg)
	bypass := fs.Int("bypass-us", int(cfg.Faults.Bypass.Microseconds()), "for which a ring is dark that goes around a lost node")
	reload := fs.Int("reload-s", int(cfg.Faults.Reload.Seconds()), "from when a job has all its nodes again until it goes on")
	file := s.traceFlag()
	micros := fs.Int("compute-us", int(cfg.Compute.Microseconds()), "compute of an iteration, times 0.5 to 1.5 by job")
	patterns := fs.String("patterns", strings.Join(cfg.Patterns, ","), "traffic of the jobs, a `LIST` of "+strings.Join(study.FlowPatterns, ", "))
	if err := s.parse(); err != nil {
		return err
	}
	faults, err := readTrace(*file)
	if err != nil {
		return err
	}
	cfg.Faults.Trace = faults.Trace
	cfg.Faults.Bypass, cfg.Faults.Reload = bounded(*bypass, time.Microsecond), bounded(*reload, time.Second)
	cfg.Patterns = strings.Split(*patterns, ",")
	cfg.Compute = bounded(*micros, time.Microsecond)
	if s.gather == nil {
		cfg.Clock, cfg.Memory = processorTime, memoryInUse
	}
	return compute(ctx, s, &cfg, study.Flows)
}

// processorTime is what this process has had of the processor in its own code.
func processorTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano())
}

// threadTime is what the thread that asks, which must be locked, has had of
// the processor, finer than a tick of the kernel.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// memoryInUse counts what is left after a collection.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
