package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	// The file as it was named: what it points to may have been moved away by then.
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	own, _ := os.Stat("/proc/self/exe")
	if named, statErr := os.Stat(path); err != nil || statErr != nil || own == nil || !os.SameFile(own, named) {
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
	if is := strings.TrimSpace(out); software != "" && is != proto.Release(software) {
		return fmt.Errorf("%s is %s, wanted is %s: install that first", a.path, is, proto.Release(software))
	}
	if a.config == "" {
		return nil
	}
	_, err = a.ask(ctx, "config", "-config", a.config)
	return err
}

// ask runs what is installed.
func (a *again) ask(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, a.path, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", a.path, strings.Join(args, " "), err, proto.Clip(strings.TrimSpace(errs.String())))
	}
	return out.String(), nil
}

// follow lets it take this process's place. It returns only when it cannot.
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
	if err := common.none(args); err != nil {
		return err
	}
	if *wait <= 0 || *wait > agent.LeavePatience {
		return usagef("wait: %v: want over 0, at most %v", *wait, agent.LeavePatience)
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	path := cfg.socketPath()
	before, err := answered(agent.AskSocket(path, agent.Question{Verb: "status"}))
	if err != nil {
		return err
	}
	if _, err := answered(agent.AskSocket(path, agent.Question{Verb: "restart", Value: uint32(wait.Milliseconds())})); err != nil {
		return err
	}
	was := before.Status.Reported.Session
	for until := time.Now().Add(backPatience); time.Now().Before(until); time.Sleep(backPatience / 200) {
		if ans, err := answered(agent.AskSocket(path, agent.Question{Verb: "status"})); err == nil && ans.Status.Reported.Session != was {
			if common.json {
				return printJSON(map[string]any{"restarted": true, "node": ans.Status.Reported.Node})
			}
			fmt.Printf("node %d: started anew, the light as it was found\n", ans.Status.Reported.Node)
			return nil
		}
	}
	return fmt.Errorf("the agent went, and none answers at %s within %v", path, backPatience)
}

// backPatience is how long the next life is waited for. chosen: a start takes well under
// a second, a slow controller's some.
const backPatience = 20 * time.Second
