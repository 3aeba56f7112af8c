package trace

import (
	"cmp"
	"slices"
	"time"
)

// stats are the figures by which traces are compared.
type stats struct {
	Faults       int
	Faulty       int           // servers that ever failed
	MostOfOne    int           // faults of the server that failed most
	MeanShare    float64       // of faulty servers over time
	P99Share     float64       // share not exceeded in 99 % of the time
	MedianRepair time.Duration // of the faults that end
	MeanRepair   time.Duration
	MaxBurst     int // most faults that follow each other within burstGap
	Class        map[string]int
}

// measure counts a trace.
func measure(t *Trace) stats {
	s := stats{Class: map[string]int{}}
	perServer := make([]int, t.Servers)
	down := make([]int, t.Servers)
	spent := make([]time.Duration, t.Servers+1) // time with so many servers down
	var now, last time.Duration
	downs, burst := 0, 0
	for _, e := range t.Events {
		spent[downs] += e.At - now
		now = e.At
		if !e.Start {
			if down[e.Server]--; down[e.Server] == 0 {
				downs--
			}
			continue
		}
		if down[e.Server]++; down[e.Server] == 1 {
			downs++
		}
		if burst == 0 || e.At-last >= burstGap {
			burst = 0
		}
		burst++
		last = e.At
		s.MaxBurst = max(s.MaxBurst, burst)
		s.Faults++
		s.Class[e.Fault.Class]++
		perServer[e.Server]++
	}
	spent[downs] += t.Span - now
	for _, n := range perServer {
		if n > 0 {
			s.Faulty++
		}
		s.MostOfOne = max(s.MostOfOne, n)
	}
	s.share(spent, t)
	s.repairs(t)
	return s
}

func (s *stats) share(spent []time.Duration, t *Trace) {
	var total, sum time.Duration
	for n, d := range spent {
		total += d
		sum += d / time.Duration(t.Servers) * time.Duration(n)
	}
	if total == 0 {
		return
	}
	s.MeanShare = float64(sum) / float64(total)
	var below time.Duration
	for n, d := range spent {
		if below += d; below >= total-total/100 {
			s.P99Share = float64(n) / float64(t.Servers)
			return
		}
	}
}

func (s *stats) repairs(t *Trace) {
	var all []time.Duration
	for _, f := range t.intervals() {
		if f.ended {
			all = append(all, f.to-f.from)
		}
	}
	if len(all) > 0 {
		slices.SortFunc(all, cmp.Compare[time.Duration])
		s.MedianRepair, s.MeanRepair = all[len(all)/2], t.MeanRepair()
	}
}
