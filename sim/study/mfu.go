package study

import "fmt"

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
	known := ""
	for _, n := range Nets {
		if n.Name == name {
			return n, nil
		}
		known += " " + n.Name
	}
	return Net{}, invalid("model", "one of"+known, "there is no model %q", name)
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

// ErrNoStrategy says that nothing in the search box fits.
type ErrNoStrategy struct {
	Net      string
	GPUs, TP int
}

func (e *ErrNoStrategy) Error() string {
	return fmt.Sprintf("no strategy trains %s on %d GPUs with TP up to %d: none divides the batch and fits in memory", e.Net, e.GPUs, e.TP)
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
		return Outcome{}, &ErrNoStrategy{n.Name, gpus, tpMax}
	}
	return best, nil
}
