package testbed

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

//go:embed trainer.py
var trainerText string

// trainerPort is of the rank that others find each other by.
const trainerPort = "29500"

// Python is the first interpreter that has PyTorch, or why there is none.
func Python() (string, error) {
	for _, at := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(at, "-c", "import torch.distributed").Run() == nil {
			return at, nil
		}
	}
	return "", errors.New("testbed: needs PyTorch (package python3-torch)")
}

// trainer is processes that train together, one in each of several namespaces.
type trainer struct {
	begun time.Time
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu    sync.Mutex
	came  []arrival // steps of rank 0
	wrong int       // sums, of all ranks
	err   error     // of a process that ended by itself
}

// train starts one in each device, by the address of its loopback, which is the only one
// there from now on: gloo takes the first.
func (b *Bed) train(ctx context.Context, devices, addresses []string, elements int, compute time.Duration) (*trainer, error) {
	python, err := Python()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	t := &trainer{begun: time.Now(), stop: stop}
	for n, d := range devices {
		if err := ip(b.NS(d), "addr del 127.0.0.1/8 dev lo"); err != nil {
			return nil, errors.Join(err, t.end())
		}
		cmd := exec.CommandContext(ctx, "ip", "netns", "exec", b.NS(d), python, "-c", trainerText,
			fmt.Sprint(n), fmt.Sprint(len(devices)), addresses[0], trainerPort, fmt.Sprint(elements), fmt.Sprint(compute.Seconds()))
		cmd.Env = append(os.Environ(), "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1")
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, errors.Join(err, t.end())
		}
		t.all.Go(func() {
			runtime.LockOSThread() // the kernel ends a child with the thread that began it
			err := cmd.Start()
			for lines := bufio.NewScanner(out); err == nil && lines.Scan(); {
				t.step(n, lines.Text())
			}
			if err == nil {
				err = cmd.Wait()
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			if ctx.Err() == nil && t.err == nil {
				t.err = fmt.Errorf("testbed: rank %d ended: %w", n, err)
			}
		})
	}
	return t, until(ctx, "a first step of all", func() bool { steps, _, err := t.done(0); return steps > 0 || err != nil })
}

func (t *trainer) step(rank int, line string) {
	wrong := -1
	_, err := fmt.Sscan(line, &wrong)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || wrong != 0 {
		t.wrong++
	}
	if rank == 0 {
		t.came = append(t.came, arrival{uint64(len(t.came)), time.Since(t.begun)})
	}
}

// done is how many steps there were since a time, how many sums were wrong in all, and why
// a process has ended.
func (t *trainer) done(since time.Duration) (steps, wrong int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.came {
		if a.at > since {
			steps++
		}
	}
	return steps, t.wrong, t.err
}

// took is how long each step took that ended since a time.
func (t *trainer) took(since time.Duration) (micros []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, a := range t.came {
		if i > 0 && a.at > since {
			micros = append(micros, (a.at - t.came[i-1].at).Microseconds())
		}
	}
	return micros
}

// longest is the longest step that touches a span; who stands still at its end is waited for.
func (t *trainer) longest(ctx context.Context, from, to time.Duration) (micros int64, err error) {
	steps := 0
	ended := func() bool { steps, _, err = t.done(to); return steps > 0 || err != nil }
	if late := until(ctx, "a step that ends after a cut", ended); late != nil || err != nil {
		return 0, errors.Join(late, err)
	}
	return Quantile(t.took(from), 1000), nil
}

func (t *trainer) now() time.Duration { return time.Since(t.begun) }

func (t *trainer) end() error {
	t.stop()
	t.all.Wait()
	return t.err
}
