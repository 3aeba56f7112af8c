package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Used is what a testbed took of its machine.
type Used struct {
	Namespaces int
	Ports      int // interfaces at which light ends
	Processes  int // in its namespaces as it ended
	PeakMiB    int // resident: this process at its most, and with it those as they are
	CPU        time.Duration
	Wall       time.Duration
}

func (u Used) String() string {
	return fmt.Sprintf("%d namespaces, %d ports, %d processes more, %d MiB, %.1f s of processor in %.1f s", u.Namespaces, u.Ports, u.Processes, u.PeakMiB, u.CPU.Seconds(), u.Wall.Seconds())
}

// used is asked while the processes in the namespaces are there.
func (b *Bed) used() Used {
	u := Used{Namespaces: len(b.made), Ports: len(b.optics.ports), Wall: time.Since(b.begun)}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} { // children: those that have ended
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			u.CPU += time.Duration(r.Utime.Nano() + r.Stime.Nano())
			if who == syscall.RUSAGE_SELF {
				u.PeakMiB = int(r.Maxrss >> 10)
			}
		}
	}
	for _, d := range b.made {
		pids, _ := inside(b.NS(d)) // gone: none
		for _, pid := range pids {
			cpu, bytes := processUsed(pid)
			u.Processes, u.CPU, u.PeakMiB = u.Processes+1, u.CPU+cpu, u.PeakMiB+int(bytes>>20)
		}
	}
	return u
}

// tick is the unit of processor time in /proc (proc(5); USER_HZ is 100 on all of Linux).
const tick = 10 * time.Millisecond

// processUsed is what a process has taken, and the memory that it holds; none that is gone.
func processUsed(pid int) (cpu time.Duration, bytes int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ") // a name may hold anything before
	if f := strings.Fields(rest); len(f) > 21 {
		user, _ := strconv.Atoi(f[11]) // utime, stime, rss: fields 14, 15 and 24
		system, _ := strconv.Atoi(f[12])
		pages, _ := strconv.Atoi(f[21])
		cpu, bytes = time.Duration(user+system)*tick, pages*os.Getpagesize()
	}
	return cpu, bytes
}

// inside are the processes in a namespace but this one.
func inside(ns string) (pids []int, err error) {
	out, err := exec.Command("ip", "netns", "pids", ns).Output()
	for word := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}
