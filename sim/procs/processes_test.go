package procs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ringlight/sim/live"
	"ringlight/sim/step"
)

// processes are those of a small cluster on this machine, each started,
// killed and stopped by its name.
type processes struct {
	dir  string
	bin  string   // folder of the commands
	env  []string // of what is run to its end, besides this process's own
	runs map[string]*exec.Cmd
}

func newProcesses(bin string) (*processes, error) {
	dir, err := os.MkdirTemp("", "ringlight-procs-")
	if err != nil {
		return nil, err
	}
	return &processes{dir: dir, bin: bin, runs: map[string]*exec.Cmd{}}, nil
}

func (h *processes) path(name string) string { return filepath.Join(h.dir, name) }

// start starts a process; what it prints goes to a file of its name.
func (h *processes) start(name, command string, args ...string) {
	log := step.Got(os.OpenFile(h.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	defer log.Close()
	c := exec.Command(h.file(command), args...)
	c.Stdout, c.Stderr = log, log
	step.Within(name, func() { step.Must(c.Start()) })
	h.runs[name] = c
}

// file is that of a command; a path stands for itself.
func (h *processes) file(command string) string {
	if strings.ContainsRune(command, '/') {
		return command
	}
	return filepath.Join(h.bin, command)
}

// signal sends one to a process; after SIGKILL it is gone when signal returns.
func (h *processes) signal(name string, s syscall.Signal) {
	c := h.runs[name]
	_ = c.Process.Signal(s)
	if s == syscall.SIGKILL {
		_ = c.Wait()
		delete(h.runs, name)
	}
}

// once runs a command to its end.
func (h *processes) once(ctx context.Context, command string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, h.file(command), args...)
	if h.env != nil {
		c.Env = append(os.Environ(), h.env...)
	}
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", command, strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// close kills all that runs. What was printed is kept when something failed.
func (h *processes) close(failed bool) {
	for name := range h.runs { // any order: all are killed
		h.signal(name, syscall.SIGCONT)
		h.signal(name, syscall.SIGKILL)
	}
	if !failed {
		_ = os.RemoveAll(h.dir)
	}
}

// tell sends a board's control socket one line and reads the record that
// answers it.
func (h *processes) tell(board, line string) live.BoardRecord {
	var r struct {
		live.BoardRecord
		Error string `json:"error"`
	}
	c := step.Got(net.DialTimeout("unix", h.path(board+".ctl"), 5*time.Second))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	step.Got(fmt.Fprintln(c, line))
	step.Within(board+": "+line, func() { step.Must(json.NewDecoder(bufio.NewReader(c)).Decode(&r)) })
	if r.Error != "" {
		step.Fail("%s: %s: %s", board, line, r.Error)
	}
	return r.BoardRecord
}

// await asks again and again, until it is so or the time is over. What ends a step
// is here that it is not so yet.
func await(ctx context.Context, limit time.Duration, what string, so func() (bool, string)) time.Duration {
	began := time.Now()
	for {
		ok, why := false, ""
		if err := step.Attempt(func() { ok, why = so() }); err != nil {
			why = err.Error()
		}
		if ok {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			step.Fail("%s: not within %v: %s", what, limit, why)
		}
		select {
		case <-ctx.Done():
			step.Must(ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
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

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
		step.Must(ctx.Err())
	case <-time.After(d):
	}
}
