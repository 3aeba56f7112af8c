package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"ringlight/agent"
	"ringlight/hal/linux"
	"ringlight/proto"
)

// again is this process as it was started: what is installed in its file's place by
// then may follow it, under the same number, so that whoever started it goes on
// watching the same process.
type again struct {
	path      string
	args, env []string
	config    string // file; "": none
	not       error  // why nothing can follow
}

// startedAs looks how this process was started. It comes before anything of the
// environment is taken away.
func startedAs(config string) *again {
	a := &again{args: os.Args, env: os.Environ(), config: config}
	path, err := namedFile(os.Args[0])
	if path == "" {
		path, err = os.Executable()
	}
	a.path = path
	switch {
	case config == "-":
		a.not = errors.New("its configuration came from stdin; start it with -config FILE")
	case err != nil:
		a.not = fmt.Errorf("its file is not known: %w", err)
	}
	return a
}

// namedFile is this process's file as it was named, since what that points to may have
// been moved away by then. Empty: it is another file by now, or none.
func namedFile(arg string) (string, error) {
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", err
	}
	places := []string{""}
	if !strings.Contains(arg, "/") {
		places = filepath.SplitList(os.Getenv("PATH"))
	}
	for _, dir := range places {
		if is, err := os.Stat(filepath.Join(dir, arg)); err == nil && os.SameFile(own, is) {
			return filepath.Abs(filepath.Join(dir, arg))
		}
	}
	return "", nil
}

// lookPatience bounds each look at what is installed. chosen: many times what a small
// controller takes to start a program.
const lookPatience = 20 * time.Second

// look says whether what is installed runs here, is the software that is wanted, and
// takes the configuration. The agent goes on meanwhile.
func (a *again) look(software string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	out, err := a.ask(ctx, "version")
	if err != nil {
		return err
	}
	if is := out; software != "" && is != proto.Release(software) {
		return fmt.Errorf("%s is %s, wanted is %s: install that first", a.path, is, proto.Release(software))
	}
	if a.config == "" {
		return nil
	}
	_, err = a.ask(ctx, "config", "-config", a.config)
	return err
}

// maxSaid bounds what is read of each of its outputs, in bytes. chosen: a configuration
// and every complaint about one are a tenth of it.
const maxSaid = 64 << 10

// ask runs what is installed, and ends it with ctx. Not by os/exec: what that can do
// besides is 90 KB of a controller's flash.
func (a *again) ask(ctx context.Context, args ...string) (string, error) {
	failed := func(err error) (string, error) {
		return "", fmt.Errorf("%s %s: %w", a.path, strings.Join(args, " "), err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return failed(err)
	}
	defer null.Close()
	out, toOut, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	defer out.Close()
	errs, toErrs, err := os.Pipe()
	if err != nil {
		toOut.Close()
		return failed(err)
	}
	defer errs.Close()
	pid, err := syscall.ForkExec(a.path, append([]string{a.path}, args...), &syscall.ProcAttr{Env: os.Environ(),
		Files: []uintptr{null.Fd(), toOut.Fd(), toErrs.Fd()}})
	toOut.Close()
	toErrs.Close()
	if err != nil {
		return failed(err)
	}
	said, saidErr := readUntil(ctx, out), readUntil(ctx, errs)
	status, err := waitFor(ctx, pid)
	switch {
	case err != nil:
		return failed(err)
	case status.Signaled():
		return failed(fmt.Errorf("%v: %s", status.Signal(), proto.Clip(saidErr)))
	case status.ExitStatus() != 0:
		return failed(fmt.Errorf("exit status %d: %s", status.ExitStatus(), proto.Clip(saidErr)))
	}
	return said, nil
}

// readUntil is what comes before the end, or before ctx ends.
func readUntil(ctx context.Context, f *os.File) string {
	if at, bounded := ctx.Deadline(); bounded {
		_ = f.SetReadDeadline(at) // one that cannot be bounded ends with its process
	}
	said, _ := io.ReadAll(io.LimitReader(f, maxSaid))
	return strings.TrimSpace(string(said))
}

// waitFor waits for the end of a child, and makes one with ctx. Nobody else waits for
// it, so that its number is its own until then.
func waitFor(ctx context.Context, pid int) (status syscall.WaitStatus, err error) {
	tick := time.NewTicker(lookPatience / 4000)
	defer tick.Stop()
	for {
		is, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		if is == pid || err != nil && err != syscall.EINTR {
			return status, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = syscall.Kill(pid, syscall.SIGKILL)
			for {
				if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
					return status, ctx.Err()
				}
			}
		}
	}
}

// follow executes the new program in this process. It returns only when it cannot.
func (a *again) follow() error {
	failed := make(chan error)
	go func() { // not the thread of the board: what follows would be real time as a whole
		runtime.LockOSThread()
		linux.Ordinary()
		failed <- syscall.Exec(a.path, a.args, a.env)
	}()
	return fmt.Errorf("%s is not started: %w", a.path, <-failed)
}

// restartWhenAllowed has the running agent start anew, for whoever has installed it.
func restartWhenAllowed(_ context.Context, args []string) error {
	fs, common := newFlags("restart-when-allowed", "start the running agent anew, as the software that is installed now, as soon as a planner gives leave. "+
		"Without an answer within -wait it goes on only where the node protects nothing: both sides in loopback. The light stays as it is",
		"ocs-agent restart-when-allowed -config /etc/ringlight/agent.json")
	wait := fs.Duration("wait", 30*time.Second, "`TIME` within which a planner must give leave, at most 10m")
	cfg, err := common.alone(args)
	if err != nil {
		return err
	}
	if *wait <= 0 || *wait > agent.LeavePatience {
		return usagef("wait: %v: want over 0, at most %v", *wait, agent.LeavePatience)
	}
	before, err := answered(cfg.askSocket(agent.Question{Verb: "status"}))
	if err != nil {
		return err
	}
	if _, err := answered(cfg.askSocket(agent.Question{Verb: "restart", Value: uint32(wait.Milliseconds())})); err != nil {
		return err
	}
	was := before.Status.Reported.Session
	for until := time.Now().Add(backPatience); time.Now().Before(until); time.Sleep(backPatience / 200) {
		if ans, err := answered(cfg.askSocket(agent.Question{Verb: "status"})); err == nil && ans.Status.Reported.Session != was {
			node := ans.Status.Reported.Node
			return answer(common.json, map[string]any{"restarted": true, "node": node}, func() { fmt.Printf("node %d: started anew, the light as it was found\n", node) })
		}
	}
	return fmt.Errorf("the agent went, and none answers at %s within %v", cfg.socketPath(), backPatience)
}

// backPatience is how long the next life is waited for. chosen: a start takes well under
// a second, a slow controller's some.
const backPatience = 20 * time.Second
