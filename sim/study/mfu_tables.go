package study

// paperTable2 is [IHBD] Table 2, Llama 3.1-405B.
var paperTable2 = []struct {
	gpus, tp, pp, dp   int
	mfu, mfu8, improve float64
}{
	{1024, 16, 4, 16, 0.5236, 0.5217, 1.0036}, {4096, 16, 8, 32, 0.4668, 0.4282, 1.0901},
	{8192, 32, 8, 32, 0.4247, 0.3512, 1.2093}, {16384, 32, 16, 32, 0.3756, 0.2584, 1.4536},
	{32768, 32, 16, 64, 0.3090, 0.1690, 1.8284}, {65536, 64, 16, 64, 0.2493, 0.0999, 2.4955},
	{131072, 64, 16, 128, 0.1851, 0.0550, 3.3655},
}

// paperTable5 is [IHBD] Table 5, GPT-MoE, with its columns as printed.
var paperTable5 = []struct {
	gpus, tp, dp, pp, ep int
	mfu                  float64
}{
	{1024, 16, 16, 4, 1, 0.4276}, {2048, 16, 16, 8, 1, 0.4140}, {4096, 32, 16, 8, 1, 0.3894},
	{8192, 32, 16, 16, 1, 0.3656}, {16384, 64, 16, 16, 1, 0.3116},
}

// paperTable4 is [IHBD] Table 4: GPT-MoE with TP, then with EP and a growing
// imbalance.
var paperTable4 = []struct {
	ep   bool
	coef float64
	mfu  float64
}{{false, 0, 0.312}, {true, 0, 0.315}, {true, 0.1, 0.305}, {true, 0.2, 0.298}, {true, 0.3, 0.288}}

// MFURow is one line of Table 2 or 5.
type MFURow struct {
	Table     int      `json:"table"`
	Net       string   `json:"model"`
	GPUs      int      `json:"gpus_total"`
	Best      Outcome  `json:"best"`
	TP8       *Outcome `json:"best_tp8,omitempty"`
	Improve   float64  `json:"improvement,omitempty"`
	Paper     Strategy `json:"paper_strategy"`
	PaperMFU  float64  `json:"paper_mfu"`
	PaperTP8  float64  `json:"paper_mfu_tp8,omitempty"`
	PaperGain float64  `json:"paper_improvement,omitempty"`
	// AtPaper is our MFU at the paper's strategy; Regret is how much of our
	// best it gives away: several optima are near-ties.
	AtPaper float64 `json:"mfu_at_paper_strategy"`
	Regret  float64 `json:"regret"`
	Error   float64 `json:"error"` // of our best against the paper's MFU
}

// ExpertRow is one column of Table 4.
type ExpertRow struct {
	EP       int     `json:"ep"`
	Coef     float64 `json:"imbalance"`
	MFU      float64 `json:"mfu"`
	PaperMFU float64 `json:"paper_mfu"`
	Error    float64 `json:"error"`
}

// MFUResult is Tables 2, 4 and 5.
type MFUResult struct {
	Study   string      `json:"study"`
	Rows    []MFURow    `json:"rows"`
	Experts []ExpertRow `json:"experts"` // Table 4
	Report
}

// MFU computes the three tables.
func MFU(p Progress) (*MFUResult, error) {
	res := &MFUResult{Study: "mfu"}
	llama, moe := Nets[0], Nets[1]
	total := len(paperTable2) + len(paperTable5) + 1
	for i, row := range paperTable2 {
		p.report(i, total)
		r, err := compareStrategy(2, llama, row.gpus, Strategy{row.tp, row.pp, row.dp, 1}, row.mfu)
		if err != nil {
			return nil, err
		}
		eight, err := llama.Best(row.gpus, 8)
		if err != nil {
			return nil, err
		}
		r.TP8, r.Improve, r.PaperTP8, r.PaperGain = &eight, r.Best.MFU/eight.MFU, row.mfu8, row.improve
		res.Rows = append(res.Rows, r)
	}
	for i, row := range paperTable5 {
		p.report(len(paperTable2)+i, total)
		// As labelled, PP = 4 and DP = 16, the first row does not fit in
		// memory: the columns are read the other way round.
		s := Strategy{row.tp, row.dp, row.pp, row.ep}
		r, err := compareStrategy(5, moe, row.gpus, s, row.mfu)
		if err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, r)
	}
	res.experts(moe)
	res.describe()
	p.report(total, total)
	return res, nil
}

func compareStrategy(table int, n Net, gpus int, paper Strategy, mfu float64) (MFURow, error) {
	best, err := n.Best(gpus, MaxTP)
	if err != nil {
		return MFURow{}, err
	}
	at := n.Evaluate(paper, imbalance).MFU
	return MFURow{Table: table, Net: n.Name, GPUs: gpus, Best: best, Paper: paper, PaperMFU: mfu, AtPaper: at, Regret: 1 - at/best.MFU, Error: best.MFU/mfu - 1}, nil
}
