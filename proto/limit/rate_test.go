package limit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var everyTenth = Rate{Interval: 100 * time.Millisecond, Burst: 5}

// A source has its burst, then its rate; a debt is waited for.
func TestBucket(t *testing.T) {
	now := time.Now()
	var b Bucket
	for i := range 7 {
		if got := b.Take(now, everyTenth, 1); got != (i < 5) {
			t.Errorf("%d: %v", i, got)
		}
	}
	if b.Take(now.Add(99*time.Millisecond), everyTenth, 1) || !b.Take(now.Add(100*time.Millisecond), everyTenth, 1) {
		t.Error("one comes back each interval")
	}
	if b.Take(now.Add(time.Hour), everyTenth, 6) {
		t.Error("more than the burst at once")
	}
	b = Bucket{}
	if b.Spend(now, everyTenth, 5) != 0 || b.Spend(now, everyTenth, 3) != 300*time.Millisecond {
		t.Error("the wait is not the debt")
	}
}

// One source does not use up another's share, and names cost nothing without
// end.
// A flood of one name beside another; then of more names than fit; then rest.
func TestSources(t *testing.T) {
	now := time.Now()
	s := Sources{Rate: everyTenth, Max: 100}
	for range 1000 {
		s.Take(now, "flood", 1)
	}
	if !s.Take(now, "other", 1) {
		t.Error("one source pays for another")
	}
	taken := 0
	for i := range 1000 {
		if s.Take(now, fmt.Sprint(i), 1) {
			taken++
		}
	}
	if len(s.buckets) != 100 || taken != 98+5 {
		t.Errorf("%d buckets, %d taken", len(s.buckets), taken)
	}
	if !s.Take(now, "other", 1) {
		t.Error("who is known pays for who is not")
	}
	if !s.Take(now.Add(time.Minute), "late", 1) || len(s.buckets) != 1 {
		t.Errorf("%d buckets after a rest", len(s.buckets))
	}
}

func BenchmarkSources(b *testing.B) {
	s := Sources{Rate: everyTenth, Max: 100}
	now := time.Now()
	for i := 0; b.Loop(); i++ {
		s.Take(now.Add(time.Duration(i)), "ocs/v1/f1/n/7/reported", 1)
	}
}

// Goal: a node that floods writes few lines, how many more it would have is told with
// its number, and the lines of others stand among them.
func TestOneNodeWritesFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Logger(slog.New(slog.NewTextHandler(&out, nil)))
		for range 6000 { // a minute of it
			log.Warn("message refused", "node", 7)
			<-time.After(10 * time.Millisecond)
		}
		log.Warn("message refused", "node", 8)
		<-time.After(nodeReport)
		synctest.Wait()
		if n := strings.Count(out.String(), `msg="message refused" node=7`); n > 20 || n < nodeRate.Burst {
			t.Errorf("%d lines of one node in a minute", n)
		}
		if !strings.Contains(out.String(), `msg="message refused" node=8`) || !strings.Contains(out.String(), `msg="log lines kept back" line="message refused" count=`) || !strings.Contains(out.String(), " node=7\n") {
			t.Error(out.String())
		}
	})
}

// A log does not grow with what is received, and says what it left out.
// A hundred thousand lines within a second, of one of two kinds.
func TestLinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Logger(slog.New(slog.NewTextHandler(&out, nil)))
		if Logger(log) != log {
			t.Error("limited twice")
		}
		for i := range 100_000 {
			log.With("node", i%64).Warn("message refused", "text", "not a map")
		}
		log.Warn("link down")
		if n := strings.Count(out.String(), "message refused"); n != lineBurst || !strings.Contains(out.String(), "link down") {
			t.Errorf("%d lines", n)
		}
		<-time.After(lineReport)
		synctest.Wait()
		if want := `msg="log lines kept back" line="message refused" count=99800`; !strings.Contains(out.String(), want) {
			t.Error(out.String()[out.Len()-200:])
		}
		<-time.After(10 * lineReport)
		if n := strings.Count(out.String(), "kept back"); n != 1 {
			t.Errorf("told %d times", n)
		}
		for i := range 2 * lineKinds { // kinds are bounded too
			log.Info(fmt.Sprint(i))
		}
	})
}
