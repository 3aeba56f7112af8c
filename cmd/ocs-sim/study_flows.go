package main

import (
	"context"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/sim/study"
)

func studyFlows(ctx context.Context, s *studyRun) error {
	cfg := study.DefaultFlows()
	fs := s.flags("-patterns ring,all-to-all -jobs 300", &cfg)
	bypass := fs.Int("bypass-us", int(cfg.Faults.Bypass.Microseconds()), "for which a ring is dark that goes around a lost node")
	reload := fs.Int("reload-s", int(cfg.Faults.Reload.Seconds()), "from when a job has all its nodes again until it goes on")
	file := s.traceFlag()
	micros := fs.Int("compute-us", int(cfg.Compute.Microseconds()), "compute of an iteration, times 0.5 to 1.5 by job")
	patterns := fs.String("patterns", strings.Join(cfg.Patterns, ","), "traffic of the jobs, a `LIST` of "+strings.Join(study.FlowPatterns, ", "))
	if err := s.parse(); err != nil {
		return err
	}
	faults, err := readTrace(*file)
	if err != nil {
		return err
	}
	cfg.Faults.Trace = faults.Trace
	cfg.Faults.Bypass, cfg.Faults.Reload = time.Duration(*bypass)*time.Microsecond, time.Duration(*reload)*time.Second
	cfg.Patterns = strings.Split(*patterns, ",")
	cfg.Compute = time.Duration(*micros) * time.Microsecond
	if s.gather == nil {
		cfg.Clock, cfg.Memory = processorTime, memoryInUse
	}
	return compute(ctx, s, &cfg, study.Flows)
}

// processorTime is what this process has had of the processor in its own code.
func processorTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano())
}

// threadTime is what the thread that asks, which must be locked, has had of
// the processor, finer than a tick of the kernel.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// memoryInUse counts what is left after a collection.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
