package live

import (
	"fmt"
	"os"
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

// peakKiB is the most memory that a process has had resident, 0 where that cannot
// be told.
func peakKiB(pid int) int { return statusKiB(pid, "VmHWM:") }

// statusKiB is one line of what Linux says of a process's memory.
func statusKiB(pid int, key string) (kib int) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			_, _ = fmt.Sscan(rest, &kib)
		}
	}
	return kib
}
