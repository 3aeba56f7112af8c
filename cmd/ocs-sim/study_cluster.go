package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/study"
)

// sized are the flags of a study of a cluster.
type sized struct {
	study.Size
	Topology string `flag:"topology" usage:"HBD order, line or ring (default ring, with -faulty line)"`
	Runs     int    `flag:"runs" usage:"times that the cluster is drawn"`
}

func (s *studyRun) sized(def study.Size, runs int) *sized {
	z := &sized{Size: def, Runs: runs}
	cli.Options(s.fs, z)
	return z
}

// orient takes the order that is asked for, or topology.
func (z *sized) orient(topology fabric.Topology) error {
	if z.Topology != "" {
		topology = fabric.Topology(z.Topology)
	}
	if topology != fabric.Line && topology != fabric.Ring {
		return invalid("topology", "line or ring", "there is no %q", topology)
	}
	z.Ring = topology == fabric.Ring
	return nil
}

// traced are the flags of a study of a trace.
type traced struct {
	*sized
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

// cluster is what the flags say; it parses them where nobody has yet.
func (s *studyRun) cluster(t traced) (cfg study.ClusterConfig, err error) {
	if !s.fs.Parsed() {
		if err = s.parse(); err != nil {
			return cfg, err
		}
	}
	if err = t.orient(fabric.Ring); err != nil {
		return cfg, err
	}
	cfg = study.ClusterConfig{Size: t.Size, Runs: t.Runs, Layout: study.Layout{Seed: *s.seed}, Progress: s.progress()}
	switch *t.siblings {
	case "apart":
	case "adjacent":
		cfg.Adjacent = true
	default:
		return cfg, invalid("siblings", "apart or adjacent", "there is no %q", *t.siblings)
	}
	cfg.Source, err = readTrace(*t.file)
	return cfg, err
}

func studyWaste(ctx context.Context, s *studyRun) error {
	fs := s.flags("-trace fault_trace.json -tp 32 -svg waste.svg", nil)
	t := s.traced(20)
	iid := fs.Bool("iid", false, "independent faults at each of -ratios instead of a trace")
	o := struct {
		Ratios []float64 `flag:"ratios" usage:"faulty nodes, with -iid"`
	}{study.DefaultRatios()}
	cli.Options(fs, &o)
	chart := fs.String("chart", "cdf", "what -svg shows of a trace: cdf, or time (each day of the first run)")
	faulty := fs.String("faulty", "", "count for the faulty nodes in `FILE`, a JSON array of node numbers, with -nodes, -gpus and one -tp")
	if err := s.parse(); err != nil {
		return err
	}
	if *chart != "cdf" && *chart != "time" {
		return invalid("chart", "cdf or time", "there is no %q", *chart)
	}
	if *faulty != "" {
		return s.givenFaults(t.sized, *faulty)
	}
	if *iid {
		if err := t.orient(fabric.Ring); err != nil {
			return err
		}
		return compute(ctx, s, &study.IIDConfig{Size: t.Size, Ratios: o.Ratios, Runs: t.Runs}, study.WasteIID)
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
func (s *studyRun) givenFaults(z *sized, name string) error {
	if err := z.orient(fabric.Line); err != nil {
		return err
	}
	list, err := readFaulty(name)
	if err != nil {
		return err
	}
	models, err := study.WasteOf(z.Size, list)
	if err != nil {
		return err
	}
	table := study.Table{Columns: []string{"model", "wasted_gpus"}}
	chart := study.Chart{Title: fmt.Sprintf("TP-%d, %d of %d nodes faulty", z.TPs[0], len(list), z.Nodes), YLabel: "wasted GPUs", Categories: []string{""}}
	for _, m := range study.Models {
		table.Rows = append(table.Rows, []string{string(m), fmt.Sprint(models[m].WastedGPUs)})
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
	var list []int
	text, _, err := cli.ReadBounded(os.Stdin, name, maxFaultyBytes)
	if err == nil {
		err = proto.DecodeFile(text, &list)
	}
	if err == nil && list == nil {
		err = errors.New("null")
	}
	if err != nil {
		return nil, invalid("faulty", "a JSON array of node numbers", "%v", err)
	}
	return list, nil
}

func studyJobScale(ctx context.Context, s *studyRun) error {
	s.flags("-trace fault_trace.json -csv jobscale.csv", nil)
	cfg, err := s.cluster(s.traced(20))
	if err != nil {
		return err
	}
	return s.compute(ctx, func() (result, error) { return study.JobScale(cfg) })
}

func studyWait(ctx context.Context, s *studyRun) error {
	fs := s.flags("-trace fault_trace.json -tp 16,32 -scales 0.85,0.9,0.95", nil)
	t := s.traced(20)
	cfg := study.WaitConfig{Scales: study.DefaultScales()}
	cli.Options(fs, &cfg, "scales")
	repair := fs.String("repair", "mean", "time to repair: mean (of the trace, as the paper does) or trace (each as it was)")
	if err := s.parse(); err != nil {
		return err
	}
	if *repair != "mean" && *repair != "trace" {
		return invalid("repair", "mean or trace", "there is no %q", *repair)
	}
	var err error
	if cfg.ClusterConfig, err = s.cluster(t); err != nil {
		return err
	}
	cfg.TraceRepair = *repair == "trace"
	return s.compute(ctx, func() (result, error) { return study.Wait(cfg) })
}
