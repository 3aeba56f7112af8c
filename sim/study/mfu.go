package study

import (
	"fmt"
	"strings"
)

// The analytic model of training MFU. The paper's simulator is in-house; this
// model has four fitted numbers and follows its tables ([IHBD] Tables 2, 4, 5,
// sec 6.1, 6.3, App. B). Seconds, bytes, FLOP; the micro-batch is one sequence.

// Hardware: H100 and the networks of [IHBD] sec 6.1.
const (
	peakFLOPS   = 989e12
	memoryBps   = 3.35e12 // H100 datasheet, SXM5
	hbdBps      = 6.4e12 / 8
	dcnBps      = 400e9 / 8
	memoryBytes = 80 * (1 << 30)
	ringUse     = 0.7711 // of the HBD bandwidth by a 16-GPU ring, measured in [IHBD] sec 5
)

// Fitted to Tables 2, 4 and 5; in brackets the optimum of the fit.
const (
	gemmEfficiency = 0.62  // share of peak of a large GEMM (0.616)
	shardLoss      = 400.0 // FFN shard width at which the efficiency halves (408)
	ringExposed    = 0.40  // share of the ring time that computing does not hide (0.384)
	headShare      = 0.75  // of the LM head that the slowest stage carries (0.729)
)

// Chosen: not in the paper; only their quotient by the sequence length is
// identified by its tables.
const (
	gradientBytes   = 6.0 // fp32 reduce-scatter and bf16 all-gather, per parameter
	dcnUse          = 0.9
	activationBytes = 34.0 // per token and hidden unit, sequence parallelism and flash attention
)

// Net is a model to train.
type Net struct {
	Name     string
	layers   int
	hidden   float64
	ffn      float64
	matrices float64 // of an FFN: 3 SwiGLU, 2 GELU
	vocab    float64
	tokens   float64 // of a sequence
	experts  int
	topK     float64
	moe      int // layers with experts
	chunks   int // virtual pipeline stages of a GPU
	batch    int // sequences
}

// Nets are the models of [IHBD] sec 6.3.
var Nets = []Net{
	{"llama405b-mha", 126, 16384, 53248, 3, 128256, 4096, 1, 1, 0, 1, 2048},
	{"gpt-moe-1.1t", 192, 12288, 49152, 2, 64000, 2048, 8, 2, 96, 3, 1536},
}

// NetNamed is one of Nets.
func NetNamed(name string) (Net, error) {
	if n := firstOf(Nets, func(n Net) bool { return n.Name == name }); n != nil {
		return *n, nil
	}
	known := each(Nets, func(n Net) string { return n.Name })
	return Net{}, invalid("model", "one of "+strings.Join(known, " "), "there is no model %q", name)
}

// params of the net, with untied embedding and head.
func (n Net) params() float64 {
	l, moe := float64(n.layers), float64(n.moe)
	expert := n.matrices * n.hidden * n.ffn
	return float64(l*4*n.hidden*n.hidden) + float64((l-moe)*expert) + float64(moe*float64(n.experts)*expert) + float64(2*n.hidden*n.vocab)
}

// flops of a forward pass per token: attention and FFN of a layer, and the
// head. Attention scores are counted in full, not causally.
func (n Net) flops() (attention, ffn, head float64) {
	return float64(8*n.hidden*n.hidden) + float64(4*n.tokens*n.hidden), 2 * n.matrices * n.hidden * n.ffn, 2 * n.hidden * n.vocab
}

// Strategy is a parallel layout.
type Strategy struct {
	TP int `json:"tp"`
	PP int `json:"pp"`
	DP int `json:"dp"`
	EP int `json:"ep"` // within the TP group
}

// layout is the strategy but for its experts.
func (s Strategy) layout() string { return fmt.Sprintf("TP%d PP%d DP%d", s.TP, s.PP, s.DP) }

// Outcome is a strategy and what it reaches.
type Outcome struct {
	Strategy
	MFU    float64 `json:"mfu"`
	Step   float64 `json:"step_s"`
	Memory float64 `json:"memory_bytes"` // of a GPU
}

// imbalance of the experts that the paper assumes ([IHBD] sec 6.3).
const imbalance = 0.2

// gemm is forward and backward time of a GEMM without recomputation: a loss
// for narrow shards and a roofline term for reading the weights.
func (n Net) gemm(flop, rows, tp float64) float64 {
	narrow := shardLoss * tp / n.ffn
	return 3 * flop * n.tokens / (tp * peakFLOPS) * ((1+float64(narrow*narrow))/gemmEfficiency + (peakFLOPS/memoryBps)/rows)
}

// ring is the exposed time of the all-reduces of a layer half, one forward and
// one backward, over a group and for a share of the tokens.
func (n Net) ring(group, tokens float64) float64 {
	return ringExposed * 2 * (2 * (group - 1) / group * tokens * n.hidden * 2 / (hbdBps * ringUse))
}

// moeLayer is the time of the FFN of a layer with experts.
func (n Net) moeLayer(s Strategy, ffn, coef float64) float64 {
	tp, ep := float64(s.TP), float64(s.EP)
	t := n.gemm(ffn*n.topK, n.tokens*n.topK/float64(n.experts), tp)
	if s.EP == 1 {
		return t + n.ring(tp, n.tokens)
	}
	// [IHBD] Table 3, dispatch and combine, forward and backward, all exposed.
	exchange := 2 * (2 * n.tokens * n.hidden * 2 * (n.topK / tp) * (ep - 1) / ep / (hbdBps * ringUse))
	inner := n.ring(tp/ep, n.tokens*n.topK/ep)
	return (t + exchange + inner) * (1 + coef)
}

// Evaluate a strategy. coef is (max-min)/max of the tokens of the experts and
// only matters with EP above 1.
func (n Net) Evaluate(s Strategy, coef float64) Outcome {
	tp, pp, dp := float64(s.TP), float64(s.PP), float64(s.DP)
	attention, ffn, head := n.flops()
	dense, moe := float64(n.layers-n.moe), float64(n.moe)
	t := float64(float64(n.layers)*(n.gemm(attention, n.tokens, tp)+n.ring(tp, n.tokens))) +
		float64(dense*(n.gemm(ffn, n.tokens, tp)+n.ring(tp, n.tokens)))
	if n.moe > 0 {
		t += float64(moe * n.moeLayer(s, ffn, coef))
	}
	micro := t/pp + float64(float64(n.chunks)*headShare*n.gemm(head, n.tokens, tp))
	exchange := gradientBytes * n.params() / (tp * pp) * (dp - 1) / dp / (dcnBps * dcnUse)
	batches := float64(n.batch) / dp
	step := float64((batches+(pp-1)/float64(n.chunks))*micro) + exchange
	useful := 3 * (float64(float64(n.layers)*attention) + float64((dense+float64(moe*n.topK))*ffn) + head) * float64(n.batch) * n.tokens
	return Outcome{s, useful / (step * tp * pp * dp * peakFLOPS), step, n.memory(s)}
}

// memory of a GPU: bf16 weights and fp32 gradients, ZeRO-1, activations of the
// micro-batches in flight.
func (n Net) memory(s Strategy) float64 {
	tp, pp, dp := float64(s.TP), float64(s.PP), float64(s.DP)
	flight := pp
	if n.chunks > 1 {
		flight += (pp - 1) / float64(n.chunks)
	}
	flight = min(float64(n.batch)/dp, flight)
	return float64(n.params()/(tp*pp)*(6+12/dp)) + float64(activationBytes*n.tokens*n.hidden/tp*(float64(n.layers)/pp)*flight)
}

// The search box of [IHBD] sec 6.3.
const (
	MaxTP  = 128
	mostPP = 16
	mostDP = 1024
	mostEP = 8
)

// maxGPUs of a search: the whole box.
const maxGPUs = MaxTP * mostPP * mostDP

// Answer is the best strategy for one question.
type Answer struct {
	Model string `json:"model"`
	GPUs  int    `json:"gpus_total"`
	TPMax int    `json:"tp_max"`
	Outcome
}

// Table of the answer.
func (a *Answer) Table() Table {
	t := Table{Columns: []string{"model", "gpus_total", "tp_max", "tp", "pp", "dp", "ep", "mfu", "step_s", "memory_gib"}}
	t.add(a.Model, a.GPUs, a.TPMax, a.TP, a.PP, a.DP, a.EP, decimals(a.MFU, 4), decimals(a.Step, 3), decimals(a.Memory/(1<<30), 2))
	return t
}

// Best searches all strategies for a number of GPUs.
func (n Net) Best(gpus, tpMax int) (Outcome, error) {
	if err := within(span{"gpus-total", gpus, 1, maxGPUs}, span{"tp-max", tpMax, 1, MaxTP}); err != nil {
		return Outcome{}, err
	}
	var best Outcome
	for tp := 1; tp <= tpMax; tp *= 2 {
		for pp := 1; pp <= mostPP; pp *= 2 {
			dp := gpus / (tp * pp)
			if dp*tp*pp != gpus || dp < 1 || dp > mostDP || n.batch%dp != 0 {
				continue
			}
			for ep := 1; ep <= min(n.experts, mostEP, tp); ep *= 2 {
				o := n.Evaluate(Strategy{tp, pp, dp, ep}, imbalance)
				if o.Memory <= memoryBytes && o.MFU > best.MFU {
					best = o
				}
			}
		}
	}
	if best.MFU == 0 {
		return Outcome{}, fmt.Errorf("no strategy trains %s on %d GPUs with TP up to %d: none divides the batch and fits in memory", n.Name, gpus, tpMax)
	}
	return best, nil
}

// experts is Table 4. The paper names neither the GPUs nor the strategy; its
// MFU with TP is that of Table 5 at 16,384 GPUs, so that is what is taken,
// with our best layout and all eight experts apart.
func (r *MFUResult) experts(n Net) {
	last := paperTable5[len(paperTable5)-1]
	best, err := n.Best(last.gpus, MaxTP)
	if err != nil {
		return // Table 5 has failed on the same search before
	}
	for _, p := range paperTable4 {
		s := best.Strategy
		s.EP = 1
		if p.ep {
			s.EP = n.experts
		}
		o := n.Evaluate(s, p.coef)
		r.Experts = append(r.Experts, ExpertRow{s.EP, p.coef, o.MFU, p.mfu, o.MFU/p.mfu - 1})
	}
}

// gainWithChunks is the gain over TP-8 that Llama would have with virtual
// pipeline stages.
func gainWithChunks(chunks, gpus int) float64 {
	n := Nets[0]
	n.chunks = chunks
	best, err := n.Best(gpus, MaxTP)
	eight, err8 := n.Best(gpus, 8)
	if err != nil || err8 != nil {
		return 0
	}
	return best.MFU / eight.MFU
}

func (r *MFUResult) describe() {
	r.Title = "Training MFU, analytic model"
	largest := paperTable2[len(paperTable2)-1].gpus
	r.note("an analytic model with four fitted numbers: large-GEMM efficiency %.2f, shard width at half efficiency %.0f, exposed share of ring time %.2f, share of the LM head on the slowest stage %.2f",
		gemmEfficiency, shardLoss, ringExposed, headShare)
	r.note("the tables were in view when it was made; nothing here was measured on hardware")
	r.note("chosen, not in the paper: sequences of 4,096 tokens for Llama, no virtual pipeline stages for it, 6 bytes per parameter of gradient exchange at 0.9 of the DCN, ZeRO-1, experts within the TP group, imbalance as a factor 1 + coef; GPU memory bandwidth from the H100 datasheet")
	r.note("the columns PP and DP of Table 5 are read swapped: as labelled its first row does not fit in memory")
	r.note("not modelled: pipeline point-to-point, latency of all-reduce, optimiser step, recomputation, DCN congestion")
	r.note("most of the gain over TP-8 at %d GPUs is pipeline bubble: with 2 or 3 virtual stages it is %.2f or %.2f", largest, gainWithChunks(2, largest), gainWithChunks(3, largest))
	for _, row := range r.Rows {
		why := fmt.Sprintf("the paper's %s reaches %.4f here", row.Paper.layout(), row.AtPaper)
		switch {
		case row.Best.Strategy == row.Paper:
			why = "same strategy; the model's rest"
		case row.Regret <= 0.015:
			why = "a near-tie: " + why
		default:
			why = "missed: " + why
		}
		ours, paper := fmt.Sprintf("%.4f %s", row.Best.MFU, row.Best.layout()), fmt.Sprintf("%.4f %s", row.PaperMFU, row.Paper.layout())
		if row.Table == 2 {
			ours += fmt.Sprintf(", x%.3f over TP-8", row.Improve)
			paper += fmt.Sprintf(", x%.3f", row.PaperGain)
		}
		r.compare(fmt.Sprintf("Table %d, %s, %d GPUs", row.Table, row.Net, row.GPUs), ours, paper, why)
	}
	for _, e := range r.Experts {
		name := "TP"
		if e.EP > 1 {
			name = fmt.Sprintf("EP, imbalance %.0f %%", 100*e.Coef)
		}
		r.compare("Table 4, "+name, percent(e.MFU, 1), percent(e.PaperMFU, 1), "the paper does not print the layout; ours is the best of 16,384 GPUs")
	}
}

// Table of the result.
func (r *MFUResult) Table() Table {
	t := Table{Columns: []string{"table", "model", "gpus_total", "tp", "pp", "dp", "ep", "imbalance", "mfu", "mfu_tp8", "improvement", "paper_mfu", "paper_mfu_tp8", "mfu_at_paper_strategy", "error"}}
	for _, row := range r.Rows {
		tp8, gain, paper8 := "", "", ""
		if row.TP8 != nil {
			tp8, gain, paper8 = decimals(row.TP8.MFU, 4), decimals(row.Improve, 4), decimals(row.PaperTP8, 4)
		}
		b := row.Best
		t.add(row.Table, row.Net, row.GPUs, b.TP, b.PP, b.DP, b.EP, "", decimals(b.MFU, 4), tp8, gain, decimals(row.PaperMFU, 4), paper8, decimals(row.AtPaper, 4), decimals(row.Error, 4))
	}
	for _, e := range r.Experts {
		t.add(4, Nets[1].Name, "", "", "", "", e.EP, decimals(e.Coef, 1), decimals(e.MFU, 4), "", "", decimals(e.PaperMFU, 4), "", "", decimals(e.Error, 4))
	}
	return t
}

// Charts are the three tables as bars.
func (r *MFUResult) Charts() []Chart {
	llama := Chart{Title: "Llama 3.1-405B ([IHBD] Table 2)", XLabel: "GPUs", YLabel: "model FLOPs utilisation", YPercent: true}
	moe := Chart{Title: "GPT-MoE 1.1T ([IHBD] Table 5)", XLabel: "GPUs", YLabel: "model FLOPs utilisation", YPercent: true}
	expert := Chart{Title: "GPT-MoE 1.1T, TP or EP ([IHBD] Table 4)", XLabel: "imbalance of the experts", YLabel: "model FLOPs utilisation", YPercent: true}
	for _, row := range r.Rows {
		c := &llama
		if row.Table == 5 {
			c = &moe
		}
		gpus := fmt.Sprint(row.GPUs)
		c.bar(gpus, "ours", row.Best.MFU)
		c.bar(gpus, "paper", row.PaperMFU)
		if row.TP8 != nil {
			c.bar(gpus, "ours, TP at most 8", row.TP8.MFU)
			c.bar(gpus, "paper, TP at most 8", row.PaperTP8)
		}
	}
	for _, e := range r.Experts {
		name := "TP"
		if e.EP > 1 {
			name = fmt.Sprintf("EP %.0f %%", 100*e.Coef)
		}
		expert.bar(name, "ours", e.MFU)
		expert.bar(name, "paper", e.PaperMFU)
	}
	return []Chart{llama, moe, expert}
}
