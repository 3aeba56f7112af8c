package study

import (
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/sched"
	"ringlight/sim/workload"
)

// gpusPerServer and TP are those of [LUMOS] sec 6.2: tensor parallel domains
// stay in a server.
const gpusPerServer = 8

// llms are the models of [LUMOS] sec 5 with the shares of their time, in ten
// thousandths, that gradients, experts and pipelines cannot hide, from its
// public simulator.
var llms = []struct {
	name                      string
	reduce, exchange, forward int64
}{
	{"PanguAlpha-6B", 737, 2580, 58},
	{"Llama-7B", 690, 2550, 77},
	{"Llama2-7B", 110, 520, 47},
	{"Llama2-13B", 17, 580, 34},
	{"GPT2-13B", 470, 1450, 63},
}

// lumosJob is a job of a run. What it sends is in ten thousandths of its
// duration on the ideal network.
type lumosJob struct {
	workload.Job
	servers                   int // 0: a part of one
	pp, dp, ep                int // ep in servers
	reduce, exchange, forward int64
	collective                sched.Collective // of the replicas
}

func (j *lumosJob) sched(perServer int) sched.Job {
	return sched.Job{TP: perServer, EP: j.ep * perServer, PP: j.pp, DP: j.dp, Collective: j.collective}
}

// drawLumos draws how each job is divided ([LUMOS]'s public simulator): a
// model of five, 4 to 32 stages, domains of 8 to 64 GPUs of experts, both at
// most what the job has and a divisor of it, and shares within a fifth of the
// model's.
func drawLumos(jobs []workload.Job, in LumosInputs, seed uint64) []lumosJob {
	const stream = 0x4c554d4f53
	r := detmath.Stream(seed, stream)
	out := make([]lumosJob, len(jobs))
	for i, j := range jobs {
		model, pp, ep := llms[r.Below(len(llms))], 4<<r.Below(4), 1<<r.Below(4)
		times := func(share int64) int64 { return share * int64(800+r.Below(401)) * int64(in.Share) / 1_000_000 }
		k := lumosJob{Job: j, reduce: times(model.reduce), exchange: times(model.exchange), forward: times(model.forward), collective: in.collective()}
		out[i] = k
		if j.GPUs < gpusPerServer {
			out[i].reduce, out[i].exchange, out[i].forward = 0, 0, 0
			continue
		}
		n := (int(j.GPUs) + gpusPerServer - 1) / gpusPerServer
		for pp > 1 && n%pp != 0 {
			pp /= 2
		}
		for ep > 1 && (n%ep != 0 || ep*gpusPerServer > in.EP) {
			ep /= 2
		}
		k.servers, k.pp, k.dp, k.ep = n, pp, n/pp, ep
		if k.dp == 1 {
			k.reduce = 0
		}
		if k.ep == 1 {
			k.exchange = 0
		}
		if k.pp == 1 {
			k.forward = 0
		}
		out[i] = k
	}
	return out
}

// lumosJobs are the jobs of a cell, the same for every network.
func (c LumosConfig) lumosJobs(cell LumosCell) []lumosJob {
	jobs := c.List
	if jobs == nil {
		jobs = workload.Draw(workload.Config{Kind: cell.Workload, Jobs: c.Jobs, Gap: 1000 * time.Second, Seed: cell.Seed})
		workload.AtLoad(jobs, cell.GPUs, cell.Load)
	}
	return drawLumos(jobs, cell.LumosInputs, cell.Seed)
}
