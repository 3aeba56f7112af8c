package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	asker "ringlight/planner/jobapi/client"
	"ringlight/proto"
)

// What pushing is bounded by.
const (
	maxPushes  = 16      // devices at once. chosen: each is a process and a connection
	maxAnswer  = 8 << 20 // bytes. chosen: more than a configuration of 10,000 routes
	pushPause  = 2 * time.Second
	routesPoll = 5 * time.Second
)

func routesList(ctx context.Context, args []string, out io.Writer) error {
	j := jobFlags{help: help("routes")}
	_, c, err := j.open(cli.NewFlags("routes list"), args, 0, "no further word", 0)
	if err != nil {
		return err
	}
	_, all, err := c.Routers(ctx, 0, 0)
	return j.answer(out, map[string]any{"routers": all}, err, func() {
		table(out, func(w io.Writer) {
			fmt.Fprintln(w, "ROUTER\tJOB OR PORT\tROUTES\tHELD\tWHY NOT")
			row := func(router, of, must string, held bool, says string) {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", router, of, must, cli.Either(held, "yes", "not confirmed"), dash(says))
			}
			for _, r := range all {
				for _, x := range r.Jobs {
					row(r.Router, x.Job, cmp.Or(x.Want, "to be taken away"), x.Held, x.Says)
				}
				for _, x := range r.Ports {
					row(r.Router, x.Port, cli.Either(x.Drained, "to be drained", "to be used again"), x.Held, x.Says)
				}
			}
		})
	})
}

// pusher brings routers to hold what they must.
type pusher struct {
	c             *asker.Client
	dialect, exec string
	post          string // of ports that are drained: who is asked instead
	split         job.Split
	timeout       time.Duration
	do            func(context.Context, job.Router) error
	tell          func(format string, args ...any)
}

// pushed is what came of one router.
type pushed struct {
	router string
	err    error
}

func routesPush(ctx context.Context, args []string, out io.Writer) error {
	p, fs := pusher{}, cli.NewFlags("routes push")
	p.do = p.router
	fs.StringVar(&p.dialect, "dialect", "linux", "the routers' `WORDS`: linux, frr or eos")
	fs.TextVar(&p.split.Hosts, "hosts", job.DefaultHosts, "`NETWORK` of the addresses of GPUs")
	fs.TextVar(&p.split.Ports, "ports", job.DefaultPorts, "`NETWORK` of the addresses of ports of leaves and spines")
	return p.start(ctx, fs, args, out, help("routes"), func() error {
		if _, err := job.AskRoutes(p.dialect, "a"); err != nil {
			return cli.AsUsage(err)
		}
		if p.exec == "" {
			return cli.Usage("exec", "a command", "none")
		}
		return nil
	})
}

func routesDrain(ctx context.Context, args []string, out io.Writer) error {
	p, fs := pusher{}, cli.NewFlags("routes drain")
	p.do = p.tellDrain
	fs.StringVar(&p.post, "post", "", "`URL` that is asked instead of a command, once for each port")
	return p.start(ctx, fs, args, out, help("ports"), func() error {
		if (p.exec == "") == (p.post == "") {
			return cli.Usage("exec", "either a command, or -post", "%q and %q", p.exec, p.post)
		}
		if p.exec == "" {
			return cli.AsUsage(asker.CheckPost("post", p.post))
		}
		return nil
	})
}

// start reads flags and brings routers to do what they must, until ctx ends.
func (p *pusher) start(ctx context.Context, fs *flag.FlagSet, args []string, out io.Writer, help string, wrong func() error) error {
	j := jobFlags{help: help}
	fs.StringVar(&p.exec, "exec", "", "`COMMAND` that speaks to router $ROUTER: its standard input is what the device is told, its output what it says")
	only := fs.String("only", "*", "`PATTERN` of the routers that are these words' and this command's, such as leaf*")
	once := fs.Bool("once", false, "end when each router was tried, with an error where one does not hold what it must")
	fs.DurationVar(&p.timeout, "within", 30*time.Second, "`TIME` that a device may take; then it counts as one that does not hold what it must")
	check := fs.Duration("check", time.Minute, "`TIME` after which a router that holds what it must is read again")
	if _, err := j.read(fs, args, 0, "no further word"); err != nil {
		return err
	}
	if _, err := path.Match(*only, ""); err != nil {
		return cli.Usage("only", "a pattern such as leaf*", "%q", *only)
	}
	if p.timeout <= 0 || *check <= 0 {
		return cli.Usage("within", "times above 0", "%v, and check %v", p.timeout, *check)
	}
	err := wrong()
	if err == nil {
		p.c, err = j.client(map[bool]time.Duration{false: time.Hour}[*once])
	}
	if err != nil {
		return err
	}
	var one sync.Mutex // of those who say something
	p.tell = func(format string, args ...any) {
		one.Lock()
		defer one.Unlock()
		_ = cli.Say(out, format, args...) // nobody listens: routers are told all the same
	}
	if *once {
		return p.once(ctx, *only)
	}
	return p.follow(ctx, *only, *check)
}

// mine are the routers of a pattern.
func mine(all []job.Router, only string) []job.Router {
	return slices.DeleteFunc(all, func(r job.Router) bool { ok, _ := path.Match(only, r.Router); return !ok })
}

// once tries each router one time.
func (p *pusher) once(ctx context.Context, only string) error {
	_, all, err := p.c.Routers(ctx, 0, 0)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range mine(all, only) {
		if err := p.do(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Router, err))
		}
	}
	return errors.Join(errs...)
}

// follow tries each router when there is something new, again after a pause where it
// failed, and reads it again after a longer one.
func (p *pusher) follow(ctx context.Context, only string, check time.Duration) error {
	busy, next, last, done := map[string]bool{}, map[string]time.Time{}, map[string]string{}, make(chan pushed, maxPushes)
	over := func(x pushed) {
		delete(busy, x.router)
		next[x.router] = time.Now().Add(check)
		if x.err != nil {
			next[x.router] = time.Now().Add(pushPause)
			p.tell("%s: %v", x.router, x.err)
		}
	}
	for news := uint64(0); ; {
		now, all, err := p.c.Routers(ctx, news, routesPoll)
		if ctx.Err() != nil {
			for len(busy) > 0 { // what was begun is ended by the same context
				over(<-done)
			}
			return nil
		}
		if err != nil {
			return err
		}
		news = now
		for _, r := range mine(all, only) {
			what := fmt.Sprint(r.Jobs, r.Ports)
			for len(done) > 0 || len(busy) >= maxPushes {
				over(<-done)
			}
			if busy[r.Router] || what == last[r.Router] && time.Now().Before(next[r.Router]) {
				continue
			}
			busy[r.Router], last[r.Router] = true, what
			go func() { done <- pushed{r.Router, p.do(ctx, r)} }()
		}
	}
}

// router brings a router to hold what it must of each job, those that are over first.
// What it does not hold the planner is told; the error is of the first.
func (p *pusher) router(ctx context.Context, r job.Router) (first error) {
	for _, x := range r.Jobs {
		text, digest := "", ""
		if x.Want != "" {
			file, d, err := p.c.Routes(ctx, x.Job, r.Router, p.dialect, p.split)
			if err != nil {
				return err
			}
			if d != x.Want {
				return fmt.Errorf("the routes of job %s have changed meanwhile", x.Job)
			}
			text, digest = string(file), d
		}
		err := p.bring(ctx, r.Router, x.Job, text, x.Held)
		got := job.Routed{Has: digest}
		if err != nil {
			got = job.Routed{Says: proto.Clip(err.Error())}
			first = cmp.Or(first, fmt.Errorf("job %s: %w", x.Job, err))
		}
		if ctx.Err() != nil {
			return ctx.Err() // it was not the device that failed
		}
		if err := p.c.Routed(ctx, r.Router, x.Job, got); err != nil {
			return cmp.Or(first, err)
		}
		if err == nil && !x.Held {
			p.tell("%s: job %s: %s", r.Router, x.Job, cli.Either(text != "", "routes are there", "routes are taken away"))
		}
	}
	return first
}

// bring reads what a router holds of a job, and changes and reads it again where that
// is not what it must.
func (p *pusher) bring(ctx context.Context, router, id, text string, held bool) error {
	ask, err := job.AskRoutes(p.dialect, id)
	if err != nil {
		return err
	}
	holds, err := p.run(ctx, router, id, ask)
	if err != nil {
		return err
	}
	before := job.CheckRoutes(p.dialect, id, text, holds)
	if before == nil {
		return nil
	}
	if held {
		p.tell("%s: job %s: %v", router, id, before)
	}
	words, err := job.PushRoutes(p.dialect, id, text, holds)
	if err != nil {
		return err
	}
	if holds, err = p.run(ctx, router, id, words); err != nil {
		return err
	}
	return job.CheckRoutes(p.dialect, id, text, holds)
}

// run speaks to a router. A command that does not end in time is ended, with all that
// it began.
func (p *pusher) run(ctx context.Context, router, id, words string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", p.exec)
	cmd.Env = append(os.Environ(), "ROUTER="+router, "JOB="+id)
	cmd.Stdin = strings.NewReader(words)
	said, wrong := &limited{most: maxAnswer}, &limited{most: 64 << 10}
	cmd.Stdout, cmd.Stderr = said, wrong
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(wrong.String()), "\n")
	switch last := lines[len(lines)-1]; {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("no answer within %v %s", p.timeout, last)
	case said.over:
		return "", fmt.Errorf("it says more than %d bytes", maxAnswer)
	case err != nil:
		return "", fmt.Errorf("%v: %s", err, cmp.Or(last, "it says nothing"))
	}
	return said.String(), nil
}

// limited keeps so many bytes.
type limited struct {
	bytes.Buffer
	most int
	over bool
}

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > l.most {
		l.over = true
		return len(b), nil
	}
	return l.Buffer.Write(b)
}
