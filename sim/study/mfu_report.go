package study

import "fmt"

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
		why := "the model's rest"
		switch {
		case row.Best.Strategy == row.Paper:
			why = "same strategy; the model's rest"
		case row.Regret <= 0.015:
			why = fmt.Sprintf("a near-tie: the paper's TP%d PP%d DP%d reaches %.4f here", row.Paper.TP, row.Paper.PP, row.Paper.DP, row.AtPaper)
		default:
			why = fmt.Sprintf("missed: the paper's TP%d PP%d DP%d reaches %.4f here", row.Paper.TP, row.Paper.PP, row.Paper.DP, row.AtPaper)
		}
		ours, paper := fmt.Sprintf("%.4f TP%d PP%d DP%d", row.Best.MFU, row.Best.TP, row.Best.PP, row.Best.DP), fmt.Sprintf("%.4f", row.PaperMFU)
		if row.Table == 2 {
			ours += fmt.Sprintf(", x%.3f over TP-8", row.Improve)
			paper += fmt.Sprintf(" TP%d PP%d DP%d, x%.3f", row.Paper.TP, row.Paper.PP, row.Paper.DP, row.PaperGain)
		} else {
			paper += fmt.Sprintf(" TP%d PP%d DP%d", row.Paper.TP, row.Paper.PP, row.Paper.DP)
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
