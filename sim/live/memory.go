package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// readSelf is what Linux says of this process; empty elsewhere.
func readSelf() string {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	return string(raw)
}

// PeakKiB is the most memory that a process has had resident, 0 where that cannot
// be told.
func PeakKiB(pid int) int { return StatusKiB(pid, "VmHWM:") }

// StatusKiB is one line of what Linux says of a process's memory.
func StatusKiB(pid int, key string) (kib int) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			_, _ = fmt.Sscan(rest, &kib)
		}
	}
	return kib
}

// waited is how long this process's threads were ready to run and had to wait for a
// processor, and how often they got one; 0 where Linux does not tell.
func waited() (micros, turns int64) {
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat") // the pattern is good
	for _, file := range threads {
		var ran, wait, n int64
		raw, _ := os.ReadFile(file) // empty: it has ended
		_, _ = fmt.Sscan(string(raw), &ran, &wait, &n)
		micros, turns = micros+wait/1000, turns+n
	}
	return micros, turns
}
