package main

import (
	"cmp"
	"context"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/sim/study"
)

func studyDisruption(ctx context.Context, s *studyRun) error {
	o := struct {
		Hops []int `flag:"k" usage:"hops that a fibre may span"`
	}{[]int{2, 3}}
	fs := s.flags("-trace fault_trace.json -tp 32 -k 2,3", &o)
	t := s.traced(1)
	powers := fs.Bool("powers", false, "also with fibres to n +- 2^i, i from 0 to below k, which all-to-all by Binary Exchange wants")
	moves := fs.String("moves", string(fabric.MoveFew), "whole groups that may move to make one more whole: none, few (8) or any; few is a fabric's default too")
	cfg, err := s.cluster(t)
	if err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) { return study.Disruption(cfg, o.Hops, *powers, fabric.Moves(*moves)) })
}

func studyAlignment(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultAlignment()
	fs := s.flags("-trace fault_trace.json -tp 32 -servers-per-rack 2,3,4 -svg alignment.svg", nil)
	cli.Options(fs, &cfg, "k", "servers-per-rack", "racks-per-domain", "scale")
	t := s.traced(1)
	moves := fs.String("moves", string(cfg.Moves), "whole groups that may move: none, few (8 in a look) or any")
	var err error
	if cfg.ClusterConfig, err = s.cluster(t); err != nil {
		return err
	}
	cfg.Moves = fabric.Moves(*moves)
	return s.compute(ctx, func() (result, error) { return study.Alignments(cfg) })
}

func studyCost(ctx context.Context, s *studyRun) error {
	def := study.DefaultSize()
	def.TPs = []int{32}
	cfg := study.CostConfig{GPUCost: study.DefaultGPUCost, IIDConfig: study.IIDConfig{Ratios: study.CostRatios()}}
	fs := s.flags("-gpu-cost 25000 -svg cost.svg", nil)
	cli.Options(fs, &cfg, "gpu-cost", "ratios")
	z := s.sized(def, 50)
	if err := s.parse(); err != nil {
		return err
	}
	if err := z.orient(fabric.Ring); err != nil {
		return err
	}
	cfg.Size, cfg.Runs = z.Size, z.Runs
	return compute(ctx, s, &cfg, study.Cost)
}

func studyMFU(ctx context.Context, s *studyRun) error {
	fs := s.flags("-gpus-total 16384 -model llama405b-mha -tp-max 8 -json", nil)
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
			return invalid(f, "only with -gpus-total", "the tables have their own")
		}
	}
	return s.compute(ctx, func() (result, error) { return study.MFU(s.progress()) })
}

// bestStrategy answers for one model and number of GPUs.
func (s *studyRun) bestStrategy(gpus int, name string, tpMax int) error {
	if *s.svg != "" {
		return invalid("svg", "not with -gpus-total", "one strategy is no chart")
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
