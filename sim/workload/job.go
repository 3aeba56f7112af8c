package workload

import "time"

// Job is one job.
type Job struct {
	Arrival  time.Duration // since the start of the list, whole milliseconds, never falling
	Duration time.Duration // on a network of its own, whole milliseconds
	GPUs     int32
	Volume   uint16 // what it sends, in thousandths of what its model says
	Slack    uint16 // how much later than at once it may end, in thousandths of its duration
	Estimate uint16 // what it declares, in thousandths of its duration
	Model    uint8  // index of Models
	Pattern  Pattern
}

// Shares of a job are in ten thousandths of its duration.
const Shares = 10_000

const thousandth = 1000

// Declared is how long the job says that it will run, at least a millisecond.
func (j Job) Declared() time.Duration {
	return max(time.Millisecond, j.Duration/thousandth*time.Duration(j.Estimate)).Truncate(time.Millisecond)
}

// Deadline is when the job wants to have ended.
func (j Job) Deadline() time.Duration {
	return j.Arrival + j.Duration + (j.Duration / thousandth * time.Duration(j.Slack)).Truncate(time.Millisecond)
}

// AllReduce is the share of the duration that goes to gradients, of Shares.
func (j Job) AllReduce() int { return Models[j.Model].AllReduce * int(j.Volume) / thousandth }

// AllToAll is the share of the duration that goes between experts, of Shares.
func (j Job) AllToAll() int { return Models[j.Model].AllToAll * int(j.Volume) / thousandth }

// Pattern is how the replicas of a job meet.
type Pattern uint8

// The patterns. A job of Alone has nobody to talk to, whatever its model.
const (
	Alone Pattern = iota
	HalvingDoubling
	Ring
	AllToAll // and an AllReduce for what is not an expert
)

func (p Pattern) String() string {
	return [...]string{"alone", "halving-doubling", "ring", "all-to-all"}[p]
}

// Model is a network in training and the shares of a step, in ten
// thousandths, that it spends on an idle network of 100 Gb/s a GPU.
type Model struct {
	Name                string
	AllReduce, AllToAll int
}

// Models as measured by [VCLOS] for its simulations, with the mini-batch in
// the name. The AllReduce of the mixture of experts holds its AllGather and
// ReduceScatter, .016, which go the same way.
var Models = [...]Model{
	{"vgg16-4", 2500, 0}, {"vgg16-8", 2300, 0}, {"vgg16-16", 1600, 0}, {"vgg16-32", 1000, 0}, {"vgg16-64", 700, 0}, {"vgg16-96", 400, 0},
	{"resnet50-16", 400, 0}, {"resnet50-32", 500, 0}, {"resnet50-64", 400, 0}, {"resnet50-96", 300, 0}, {"resnet50-128", 200, 0},
	{"resnet101-16", 500, 0}, {"resnet101-32", 500, 0}, {"resnet101-64", 400, 0}, {"resnet101-96", 200, 0},
	{"bert-16", 1200, 0}, {"bert-32", 800, 0},
	{"moe", 897, 2580},
	{"none", 0, 0}, // sends nothing
}

const (
	denseModels = 17 // the first of Models: data parallel, AllReduce alone
	moeModel    = 17
)

// AtLoad moves the arrivals so that the jobs ask for a share of the GPUs, in
// thousandths: sum(GPUs x Duration) over gpusTotal x the time to the last
// arrival. Their order and their relative gaps stay.
func AtLoad(jobs []Job, gpusTotal, load int) {
	if len(jobs) == 0 || jobs[len(jobs)-1].Arrival == 0 {
		return
	}
	var asked float64 // GPU-milliseconds; beyond 63 bits for the longest lists
	for _, j := range jobs {
		asked += float64(float64(j.GPUs) * float64(j.Duration.Milliseconds()))
	}
	span := float64(jobs[len(jobs)-1].Arrival.Milliseconds())
	stretch := asked * thousandth / (float64(gpusTotal) * float64(load)) / span
	for i := range jobs {
		jobs[i].Arrival = time.Duration(float64(jobs[i].Arrival.Milliseconds())*stretch) * time.Millisecond
	}
}
