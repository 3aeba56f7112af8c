package trace

import (
	"cmp"
	"slices"
	"time"

	"ringlight/mzi/detmath"
)

// Streams of the seed.
const (
	streamGenerate = 1
	streamShuffle  = 1 << 16 // + copy
)

// Statistics of the public trace that the generator is built on, counted on
// the file itself ([IHBD] App. A): 584 faults of 231 out of 400 servers in
// 349 days. The generator keeps the counts exactly and draws who, when and
// with whom.

// generatedSpan is the length of the public trace, rounded up to a day.
const generatedSpan = 349 * Day

// tick is the precision of the public trace.
const tick = Day / 10_000

// countRow says that so many things have this size.
type countRow struct{ size, count int }

// faultsPerServer is how unevenly faults fall on those servers that ever
// fail: 96 fail once, one fails fourteen times.
var faultsPerServer = []countRow{{1, 96}, {2, 50}, {3, 31}, {4, 21}, {5, 10}, {6, 12}, {7, 5}, {8, 5}, {14, 1}}

// faultsPerBurst is how many faults start with less than 0.05 days between
// one and the next.
var faultsPerBurst = []countRow{{1, 332}, {2, 50}, {3, 16}, {4, 7}, {5, 2}, {9, 2}, {14, 1}, {15, 1}, {19, 1}}

const burstGap = Day / 20

// repairTicks is the distribution of the time to repair, in ticks at
// per mille: half a day at 40 %, 0.85 days in the middle, months at the end.
var repairTicks = []struct{ permille, ticks int }{
	{0, 0}, {25, 1}, {50, 82}, {75, 89}, {100, 94}, {150, 149}, {200, 446}, {250, 855}, {300, 1398}, {350, 2607},
	{400, 4830}, {450, 6857}, {500, 8496}, {550, 11470}, {600, 15612}, {650, 20687}, {700, 24796}, {750, 31647},
	{800, 45000}, {850, 78000}, {875, 95000}, {900, 125000}, {925, 190000}, {950, 295000}, {965, 415000},
	{980, 540000}, {990, 800000}, {995, 900000}, {1000, 1309636},
}

// kindRow is how often one kind of fault is there, and how its repairs stand
// in the order of all repairs: -1000 puts all its repairs among the shortest,
// +1000 among the longest.
type kindRow struct {
	fault  Fault
	count  int
	longer int
}

const (
	hardware = "Hardware Failure"
	software = "Software Failure"
	other    = "Other Failure"
)

// kinds is the mix of faults of the public trace.
var kinds = []kindRow{
	{Fault{other, "Unknown Error", "Unknown Error"}, 144, 0},
	{Fault{other, "Stress Test Failure", "Unknown Error"}, 97, -150},
	{Fault{hardware, "GPU", "GPU DBE(Double Bit ECC) > Threshold"}, 60, 0},
	{Fault{hardware, "GPU", "GPU device unknow error"}, 40, 0},
	{Fault{hardware, "GPU", "GPU PCI link width low"}, 25, 0},
	{Fault{hardware, "GPU", "GPU xid Error"}, 11, 0},
	{Fault{hardware, "GPU", "nvidia-smi Timeout"}, 9, 0},
	{Fault{hardware, "GPU", "GPU Lost"}, 5, 0},
	{Fault{hardware, "GPU", "GPU P2P Bandwidth Low"}, 3, 0},
	{Fault{hardware, "GPU", "GPU Temperature High"}, 2, 0},
	{Fault{hardware, "GPU", "GPU SBE(Single Bit ECC) > Threshold"}, 1, 0},
	{Fault{hardware, "GPU", "Silent Data Corruption"}, 1, 0},
	{Fault{hardware, "GPU", "GPU device not found"}, 1, 0},
	{Fault{hardware, "Parameter Plane Cable", "Link Down"}, 40, 100},
	{Fault{hardware, "Fan", "Speed Critical (Sensor)"}, 31, 200},
	{Fault{hardware, "Fan", "Redundancy Lost"}, 2, 200},
	{Fault{hardware, "NIC", "Rnic Gid Error"}, 11, 0},
	{Fault{hardware, "NIC", "NIC Link Speed low"}, 10, 0},
	{Fault{hardware, "NIC", "NIC Lost"}, 8, 0},
	{Fault{hardware, "NIC", "NIC PCI link Width low"}, 1, 0},
	{Fault{hardware, "Power Supply", "Power Supply Failure detected"}, 25, 500},
	{Fault{hardware, "Power Supply", "Redundancy Lost"}, 1, 500},
	{Fault{other, "Training Task Troubleshooting", "Suspect Machine Offline"}, 14, -50},
	{Fault{software, "Other Failures", "Unknown Error"}, 12, 0},
	{Fault{software, "Software Tool", "Kubelet Date Absent"}, 7, 0},
	{Fault{hardware, "Motherboard", "Motherboard Failed"}, 4, 0},
	{Fault{other, "Change", "Y-cables Taken offline"}, 3, 0},
	{Fault{other, "Change", "Remote Optical Module Failure"}, 1, 0},
	{Fault{hardware, "CPU", "Machine Check Exception ( Uncorrectable )"}, 2, 0},
	{Fault{hardware, "CPU", "Configuration Error"}, 1, 0},
	{Fault{software, "File System", "FS: Multiple Disk FS Error"}, 2, 0},
	{Fault{software, "File System", "FS Readonly"}, 1, 0},
	{Fault{other, "Test", "Temporarily Offline"}, 2, -300},
	{Fault{other, "System Crash", "Server down"}, 1, -1000},
	{Fault{software, "Operating System", "Kernel Panic"}, 1, 0},
	{Fault{software, "Firmware", "Firmware mismatch"}, 1, 0},
	{Fault{hardware, "Motherboard Battery", "Low"}, 1, 0},
	{Fault{hardware, "Other Failures", "Unknown Error"}, 1, 0},
	{Fault{hardware, "RAID Card", "Bus Correctable error"}, 1, 0},
	{Fault{hardware, "Riser Card", "RiserCard Fault"}, 1, 0},
}

// The public trace has one bad time: two months in which twenty to thirty
// servers are out at once, where five to ten are otherwise. Without it the
// share of faulty servers has the right mean and half the right 99th
// percentile. Chosen so that the mean over seeds is that of the trace.
const (
	stormLength   = 60 * Day
	stormPermille = 280 // of the bursts start in it
	stormLonger   = 100 // and their repairs stand so much higher, as `longer`
)

// againPermille of the faults hit a server that came back within a day, which
// is how the public trace has it.
const againPermille = 350

type draft struct {
	interval
	storm  bool
	longer int
}

// Generate draws a trace with the statistics of the public one. The same seed
// gives the same trace everywhere.
func Generate(seed uint64) *Trace {
	r := detmath.Stream(seed, streamGenerate)
	faults := drawStarts(r)
	drawKinds(r, faults)
	drawRepairs(r, faults)
	slices.SortStableFunc(faults, func(a, b draft) int { return cmp.Compare(a.from, b.from) })
	drawServers(r, faults)
	t := &Trace{Servers: Servers, Span: generatedSpan}
	for _, f := range faults {
		t.Events = append(t.Events, Event{f.from, f.server, true, f.fault}, Event{f.to, f.server, false, f.fault})
	}
	slices.SortStableFunc(t.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return t
}

// drawStarts places the bursts and the faults in them. Faults of one burst
// are neighbours in what it returns.
func drawStarts(r *detmath.Random) []draft {
	var sizes []int
	for _, row := range faultsPerBurst {
		sizes = append(sizes, slices.Repeat([]int{row.size}, row.count)...)
	}
	r.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	storm := time.Duration(r.Modulo(int((generatedSpan-3*stormLength)/tick))) * tick
	var out []draft
	for _, size := range sizes {
		from, length := time.Duration(0), time.Duration(generatedSpan-Day)
		in := r.Modulo(1000) < stormPermille
		if in {
			from, length = storm, stormLength
		}
		at := from + time.Duration(r.Modulo(int(length/tick)))*tick
		for range size {
			out = append(out, draft{interval: interval{from: at, ended: true}, storm: in})
			at = min(at+time.Duration(r.Modulo(int(burstGap/tick/2)))*tick, generatedSpan-tick)
		}
	}
	return out
}

// drawKinds shares the kinds out. The faults of a burst of four or more are of
// one kind as far as there are enough: it is one cause.
func drawKinds(r *detmath.Random, faults []draft) {
	var deck []int
	for k, row := range kinds {
		deck = append(deck, slices.Repeat([]int{k}, row.count)...)
	}
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	take := func(i int) int {
		k := deck[i]
		deck = slices.Delete(deck, i, i+1)
		return k
	}
	for i := 0; i < len(faults); {
		n := 1
		for i+n < len(faults) && faults[i+n].from-faults[i+n-1].from < burstGap && faults[i+n].from >= faults[i+n-1].from {
			n++
		}
		first := take(0)
		for j := range n {
			k := first
			if j > 0 {
				at := 0
				if n >= 4 {
					at = max(0, slices.Index(deck, first))
				}
				k = take(at)
			}
			faults[i+j].fault, faults[i+j].longer = kinds[k].fault, kinds[k].longer
		}
		i += n
	}
}

// drawRepairs shares the repair times out by rank: the distribution is kept
// exactly, and what takes long goes to the kinds and the time that take long.
func drawRepairs(r *detmath.Random, faults []draft) {
	n := len(faults)
	score := make([]int, n)
	order := make([]int, n)
	for i, f := range faults {
		order[i] = i
		score[i] = r.Modulo(1000) + f.longer
		if f.storm {
			score[i] += stormLonger
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[a], score[b]) })
	repair := make([]time.Duration, n)
	for rank, i := range order {
		repair[i] = repairTime(rank, n)
	}
	// A repair that would end after the trace changes places with a shorter
	// one earlier on.
	for i := range faults {
		for try := 0; faults[i].from+repair[i] > generatedSpan && try < 100*n; try++ {
			j := r.Modulo(n)
			if faults[j].from+repair[i] <= generatedSpan && faults[i].from+repair[j] <= generatedSpan {
				repair[i], repair[j] = repair[j], repair[i]
			}
		}
	}
	for i := range faults {
		faults[i].to = min(faults[i].from+repair[i], generatedSpan)
	}
}

// repairTime is the middle of part `rank` of n equal parts of the distribution.
func repairTime(rank, n int) time.Duration {
	// In millionths, so that the parts do not fall on each other.
	u := (2*rank + 1) * 500_000 / n
	for i := 1; i < len(repairTicks); i++ {
		a, b := repairTicks[i-1], repairTicks[i]
		if u <= b.permille*1000 {
			part := (b.ticks - a.ticks) * (u - a.permille*1000) / (b.permille*1000 - a.permille*1000)
			return time.Duration(a.ticks+part) * tick
		}
	}
	return time.Duration(repairTicks[len(repairTicks)-1].ticks) * tick
}

// drawServers shares the servers out in order of time. One that is down does
// not fail again; one that has just come back often does.
func drawServers(r *detmath.Random, faults []draft) {
	order := make([]int, Servers)
	for i := range order {
		order[i] = i
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var deck []int
	next := 0
	for _, row := range faultsPerServer {
		for range row.count {
			deck = append(deck, slices.Repeat([]int{order[next]}, row.size)...)
			next++
		}
	}
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	until := make([]time.Duration, Servers)
	for i := range faults {
		f := &faults[i]
		again := r.Modulo(1000) < againPermille
		best := 0 // when every server left is down, faults overlap: a count
		for j, s := range deck {
			if until[s] > f.from {
				continue
			}
			if recent := until[s] > 0 && f.from-until[s] < Day; recent == again {
				best = j
				break
			} else if until[deck[best]] > f.from {
				best = j
			}
		}
		f.server = deck[best]
		deck = slices.Delete(deck, best, best+1)
		until[f.server] = f.to
	}
}
