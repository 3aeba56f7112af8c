package main

import (
	"cmp"
	"context"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/study"
)

func studyDisruption(ctx context.Context, s *studyRun) error {
	fs := s.flags("-trace fault_trace.json -tp 32 -k 2,3")
	t := s.traced(1)
	hops := intList(fs, "k", []int{2, 3}, "hops that a fibre may span")
	powers := fs.Bool("powers", false, "also with fibres to n +- 2^i, i from 0 to below k, which all-to-all by Binary Exchange wants")
	moves := fs.String("moves", string(fabric.MoveFew), "whole groups that may move to make one more whole: none, few (8) or any; few is a fabric's default too")
	if err := s.parse(); err != nil {
		return err
	}
	cfg, err := s.cluster(t)
	if err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) { return study.Disruption(cfg, *hops, *powers, fabric.Moves(*moves)) })
}

func studyAlignment(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultAlignment()
	fs := s.flags("-trace fault_trace.json -tp 32 -servers-per-rack 2,3,4 -svg alignment.svg")
	t := s.traced(1)
	fs.IntVar(&cfg.K, "k", cfg.K, "hops that a fibre may span")
	racks := intList(fs, "servers-per-rack", cfg.Racks, "servers of 8 GPUs under a ToR switch, every size as often as the others")
	fs.IntVar(&cfg.Domain, "racks-per-domain", cfg.Domain, "racks under the same aggregation switches")
	fs.Float64Var(&cfg.Scale, "scale", cfg.Scale, "rings that are wanted, of those that fit")
	moves := fs.String("moves", string(cfg.Moves), "whole groups that may move: none, few (8 in a look) or any")
	if err := s.parse(); err != nil {
		return err
	}
	var err error
	if cfg.ClusterConfig, err = s.cluster(t); err != nil {
		return err
	}
	cfg.Racks, cfg.Moves = *racks, fabric.Moves(*moves)
	return s.compute(ctx, func() (result, error) { return study.Alignments(cfg) })
}

func studyCrossTor(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultCrossTor()
	fs := s.flags("-nodes-per-domain 256,1024 -runs 5")
	fs.IntVar(&cfg.GPUs, "gpus-total", cfg.GPUs, "GPUs of the cluster; Fig. 13a also takes a quarter to four times as many")
	fs.IntVar(&cfg.GPUsPerNode, "gpus", cfg.GPUsPerNode, "GPUs of a node")
	fs.IntVar(&cfg.TP, "tp", cfg.TP, "GPUs of a group")
	fs.IntVar(&cfg.K, "k", cfg.K, "hops that a fibre may span")
	fs.IntVar(&cfg.PerToR, "nodes-per-tor", cfg.PerToR, "nodes under a ToR switch")
	domains := intList(fs, "nodes-per-domain", cfg.Domains, "nodes under a group of aggregation switches")
	fs.IntVar(&cfg.Runs, "runs", cfg.Runs, "times that each cluster is drawn")
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Domains, cfg.Seed, cfg.Progress = *domains, *s.seed, s.progress()
	return s.compute(ctx, func() (result, error) { return study.CrossTor(cfg) })
}

func studyCost(ctx context.Context, s *studyRun) error {
	def := study.DefaultSize()
	def.TPs = []int{32}
	fs := s.flags("-gpu-cost 25000 -svg cost.svg")
	z := s.sized(def, 50)
	price := fs.Int("gpu-cost", study.DefaultGPUCost, "price of a GPU in dollars")
	ratios := ratioList(fs, "ratios", study.CostRatios(), "faulty nodes")
	if err := s.parse(); err != nil {
		return err
	}
	size, err := z.size(fabric.Ring)
	if err != nil {
		return err
	}
	cfg := study.CostConfig{GPUCost: *price, IIDConfig: study.IIDConfig{Size: size, Ratios: *ratios, Runs: *z.runs, Seed: *s.seed, Progress: s.progress()}}
	return s.compute(ctx, func() (result, error) { return study.Cost(cfg) })
}

func studyBounds(ctx context.Context, s *studyRun) error {
	cfg := study.BoundsConfig{}
	fs := s.flags("-runs 1000 -json")
	fs.IntVar(&cfg.GPUs, "gpus-total", study.DefaultSize().GPUsTotal(), "GPUs of the cluster that is drawn")
	fs.IntVar(&cfg.Runs, "runs", 400, "times that it is drawn")
	if err := s.parse(); err != nil {
		return err
	}
	cfg.Seed, cfg.Progress = *s.seed, s.progress()
	return s.compute(ctx, func() (result, error) { return study.Bounds(cfg) })
}

func studyMFU(ctx context.Context, s *studyRun) error {
	fs := s.flags("-gpus-total 16384 -model llama405b-mha -tp-max 8 -json")
	gpus := fs.Int("gpus-total", 0, "print the best strategy for so many GPUs instead of the paper's tables")
	name := fs.String("model", "", "with -gpus-total: llama405b-mha or gpt-moe-1.1t (default llama405b-mha)")
	tpMax := fs.Int("tp-max", study.MaxTP, "with -gpus-total: largest TP, a power of two")
	if err := s.parse(); err != nil {
		return err
	}
	given := s.given()
	if given["gpus-total"] {
		return s.bestStrategy(*gpus, *name, *tpMax)
	}
	for _, f := range []string{"model", "tp-max"} {
		if given[f] {
			return &proto.Error{Code: proto.Invalid, Field: f, Limit: "only with -gpus-total", Reason: "the tables have their own"}
		}
	}
	return s.compute(ctx, func() (result, error) { return study.MFU(s.progress()) })
}

// bestStrategy answers for one model and number of GPUs.
func (s *studyRun) bestStrategy(gpus int, name string, tpMax int) error {
	if *s.svg != "" {
		return &proto.Error{Code: proto.Invalid, Field: "svg", Limit: "not with -gpus-total", Reason: "one strategy is no chart"}
	}
	net, err := study.NetNamed(cmp.Or(name, study.Nets[0].Name))
	if err != nil {
		return err
	}
	best, err := net.Best(gpus, tpMax)
	if err != nil {
		return err
	}
	answer := &study.Answer{Model: net.Name, GPUs: gpus, TPMax: tpMax, Outcome: best}
	if err := s.files(answer.Table(), "", nil); err != nil {
		return err
	}
	if *s.json {
		return cli.PrintJSON(s.t.Out, answer)
	}
	printTable(s.t.Out, answer.Table())
	return nil
}
