package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/study"
)

// sized are the flags of a study of a cluster.
type sized struct {
	nodes, gpus *int
	tps         *[]int
	topology    *string
	runs        *int
}

func (s *studyRun) sized(def study.Size, runs int) sized {
	return sized{
		nodes: s.fs.Int("nodes", def.Nodes, "nodes"), gpus: s.fs.Int("gpus", def.GPUsPerNode, "GPUs of a node"),
		tps:      intList(s.fs, "tp", def.TPs, "GPUs of a group"),
		topology: s.fs.String("topology", "", "HBD order, line or ring (default ring, with -faulty line)"),
		runs:     s.fs.Int("runs", runs, "times that the cluster is drawn"),
	}
}

func (z sized) size(topology fabric.Topology) (study.Size, error) {
	if *z.topology != "" {
		topology = fabric.Topology(*z.topology)
	}
	if topology != fabric.Line && topology != fabric.Ring {
		return study.Size{}, &proto.Error{Code: proto.Invalid, Field: "topology", Limit: "line or ring", Reason: fmt.Sprintf("there is no %q", topology)}
	}
	return study.Size{Nodes: *z.nodes, GPUsPerNode: *z.gpus, Ring: topology == fabric.Ring, TPs: *z.tps}, nil
}

// traced are the flags of a study of a trace.
type traced struct {
	sized
	file     *string
	siblings *string
}

func (s *studyRun) traced(runs int) traced {
	return traced{
		sized:    s.sized(study.DefaultSize(), runs),
		file:     s.traceFlag(),
		siblings: s.fs.String("siblings", "apart", "4-GPU halves of a server in HBD order: apart or adjacent"),
	}
}

func (s *studyRun) cluster(t traced) (study.ClusterConfig, error) {
	size, err := t.size(fabric.Ring)
	if err != nil {
		return study.ClusterConfig{}, err
	}
	cfg := study.ClusterConfig{Size: size, Runs: *t.runs, Layout: study.Layout{Seed: *s.seed}, Progress: s.progress()}
	switch *t.siblings {
	case "apart":
	case "adjacent":
		cfg.Adjacent = true
	default:
		return cfg, &proto.Error{Code: proto.Invalid, Field: "siblings", Limit: "apart or adjacent", Reason: fmt.Sprintf("there is no %q", *t.siblings)}
	}
	if *t.file == "" {
		return cfg, nil
	}
	if cfg.Trace, err = readTrace(*t.file); err != nil {
		return cfg, cli.AsUsage(err)
	}
	cfg.Name = filepath.Base(*t.file)
	return cfg, nil
}

func studyWaste(ctx context.Context, s *studyRun) error {
	fs := s.flags("-trace fault_trace.json -tp 32 -svg waste.svg")
	t := s.traced(20)
	iid := fs.Bool("iid", false, "independent faults at each of -ratios instead of a trace")
	ratios := ratioList(fs, "ratios", study.DefaultRatios(), "faulty nodes, with -iid")
	chart := fs.String("chart", "cdf", "what -svg shows of a trace: cdf, or time (each day of the first run)")
	faulty := fs.String("faulty", "", "count for the faulty nodes in `FILE`, a JSON array of node numbers, with -nodes, -gpus and one -tp")
	if err := s.parse(); err != nil {
		return err
	}
	if *chart != "cdf" && *chart != "time" {
		return &proto.Error{Code: proto.Invalid, Field: "chart", Limit: "cdf or time", Reason: fmt.Sprintf("there is no %q", *chart)}
	}
	if *faulty != "" {
		return s.givenFaults(t.sized, *faulty)
	}
	if *iid {
		size, err := t.size(fabric.Ring)
		if err != nil {
			return err
		}
		return s.compute(ctx, func() (result, error) {
			return study.WasteIID(study.IIDConfig{Size: size, Ratios: *ratios, Runs: *t.runs, Seed: *s.seed, Progress: s.progress()})
		})
	}
	cfg, err := s.cluster(t)
	if err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) {
		res, err := study.WasteOnTrace(cfg)
		if err == nil {
			res.ByDay = *chart == "time"
		}
		return res, err
	})
}

// maxFaultyBytes of a list of node numbers; chosen: a million of them.
const maxFaultyBytes = 16 << 20

// givenFaults counts the waste of one list of faulty nodes.
func (s *studyRun) givenFaults(z sized, name string) error {
	size, err := z.size(fabric.Line)
	if err != nil {
		return err
	}
	list, err := readFaulty(name)
	if err != nil {
		return err
	}
	models, err := study.WasteOf(size, list)
	if err != nil {
		return err
	}
	table := study.Table{Columns: []string{"model", "wasted_gpus"}}
	for _, m := range study.Models {
		table.Rows = append(table.Rows, []string{string(m), fmt.Sprint(models[m].WastedGPUs)})
	}
	chart := study.Chart{Title: fmt.Sprintf("TP-%d, %d of %d nodes faulty", size.TPs[0], len(list), size.Nodes), YLabel: "wasted GPUs", Categories: []string{""}}
	for _, m := range study.Models {
		chart.Series = append(chart.Series, study.Series{Name: string(m), Y: []float64{float64(models[m].WastedGPUs)}})
	}
	if err := s.files(table, "GPU waste of one set of faults", []study.Chart{chart}); err != nil {
		return err
	}
	if *s.json {
		return cli.PrintJSON(s.t.Out, map[string]any{"models": models})
	}
	printTable(s.t.Out, table)
	return nil
}

func readFaulty(name string) ([]int, error) {
	wrong := func(format string, args ...any) error {
		return &proto.Error{Code: proto.Invalid, Field: "faulty", Limit: "a JSON array of node numbers", Reason: fmt.Sprintf(format, args...)}
	}
	text, _, err := cli.ReadBounded(os.Stdin, name, maxFaultyBytes)
	if err != nil {
		return nil, wrong("%v", err)
	}
	var list []int
	if err := proto.DecodeFile(text, &list); err != nil {
		return nil, wrong("%v", err)
	}
	if list == nil {
		return nil, wrong("null")
	}
	return list, nil
}

func studyJobScale(ctx context.Context, s *studyRun) error {
	s.flags("-trace fault_trace.json -csv jobscale.csv")
	t := s.traced(20)
	if err := s.parse(); err != nil {
		return err
	}
	cfg, err := s.cluster(t)
	if err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) { return study.JobScale(cfg) })
}

func studyWait(ctx context.Context, s *studyRun) error {
	fs := s.flags("-trace fault_trace.json -tp 16,32 -scales 0.85,0.9,0.95")
	t := s.traced(20)
	scales := ratioList(fs, "scales", study.DefaultScales(), "job sizes")
	repair := fs.String("repair", "mean", "time to repair: mean (of the trace, as the paper does) or trace (each as it was)")
	if err := s.parse(); err != nil {
		return err
	}
	if *repair != "mean" && *repair != "trace" {
		return &proto.Error{Code: proto.Invalid, Field: "repair", Limit: "mean or trace", Reason: fmt.Sprintf("there is no %q", *repair)}
	}
	cfg, err := s.cluster(t)
	if err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) {
		return study.Wait(study.WaitConfig{ClusterConfig: cfg, Scales: *scales, TraceRepair: *repair == "trace"})
	})
}
