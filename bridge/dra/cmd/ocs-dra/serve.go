package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"ringlight/bridge/dra/plugin"
	"ringlight/proto/metric"
	"ringlight/proto/metric/self"
)

// health is how the work of this process goes, for probes and a monitoring system.
type health struct {
	own *self.Process
	me  string // as a lease names its holder

	mu      sync.Mutex
	leads   bool // or nobody chooses: it works
	done    map[string]int64
	failed  map[string]int64
	failing map[string]error // what its last look at something came to
}

func newHealth(c *common) *health {
	host, _ := os.Hostname() // with the process's number it is one of a kind in a cluster
	return &health{me: fmt.Sprintf("%s-%d", cmp.Or(host, "ocs-dra"), os.Getpid()), own: self.New("ocs-dra", version, self.File{Use: "ca", Path: c.planner.CAFile}, self.File{Use: "cert", Path: c.planner.CertFile}),
		done: map[string]int64{}, failed: map[string]int64{}, failing: map[string]error{}}
}

// told counts how a piece of work ended.
func (h *health) told(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failing[what] = err; err != nil {
		h.failed[what]++
	} else {
		h.done[what]++
	}
}

// ready: it stands by, or what it did last of each kind was done. That a claim could not be
// handed out is no fault of this process: its ring waits.
func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leads && len(h.failing) == 0 {
		return errors.New("has not looked yet")
	}
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(h.failing)) {
		if err := h.failing[what]; err != nil && what != plugin.HandOut {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	return errors.Join(errs...)
}

func each(of func(*health) map[string]int64) func(*health, *metric.Page) {
	return func(h *health, out *metric.Page) {
		for _, what := range slices.Sorted(maps.Keys(of(h))) {
			out.Word(what).Is(of(h)[what])
		}
	}
}

// measures are those of a bridge; docs/kubernetes.md has the same.
var measures = []metric.Measure[*health]{
	metric.Of(metric.Family{Name: "ringlight_dra_leading", Help: "1: this one works; 0: it stands by."}, func(h *health, out *metric.Page) { out.Bool(h.leads) }),
	metric.Of(metric.Family{Name: "ringlight_dra_done_total", Kind: metric.Counter, Labels: []string{"what"}, Help: "Looks at slices, claims and queue; claims handed out."},
		each(func(h *health) map[string]int64 { return h.done })),
	metric.Of(metric.Family{Name: "ringlight_dra_failed_total", Kind: metric.Counter, Labels: []string{"what"}, Help: "Those that failed; each is tried again."},
		each(func(h *health) map[string]int64 { return h.failed })),
}

// serve answers probes and scrapes until ctx ends, at the address that it gives; "" is nowhere.
func (h *health) serve(ctx context.Context, at string, log *slog.Logger) (string, error) {
	if at == "" {
		return "", nil
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "lives") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var p metric.Page
		h.mu.Lock()
		h.own.Look()
		metric.AppendAll(&p, self.Measures, h.own)
		metric.AppendAll(&p, measures, h)
		h.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(p.Text) // who asked is gone
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { <-ctx.Done(); _ = s.Close() }()
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("probes and metrics are not served any more", "err", err)
		}
	}()
	return l.Addr().String(), nil
}

// lead runs while this process has the lease; without it another works. A lease that is
// lost ends it: it is started anew and stands by. It is given up after the work's end.
func (h *health) lead(ctx context.Context, kube kubernetes.Interface, namespace, name string, log *slog.Logger, run func(context.Context) error) error {
	works := func(ctx context.Context) error {
		h.mu.Lock()
		h.leads = true
		h.mu.Unlock()
		return run(ctx)
	}
	if namespace == "" {
		return works(ctx)
	}
	leads := make(chan context.Context, 1)
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: kube.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: h.me}},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(mine context.Context) { leads <- mine }, OnStoppedLeading: func() {}}})
	if err != nil {
		return err
	}
	log.Info("stands by for the lease", "lease", namespace+"/"+name, "as", h.me)
	holds, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	var holding sync.WaitGroup
	holding.Go(func() { e.Run(holds) })
	defer holding.Wait()
	defer giveUp()
	select {
	case <-ctx.Done():
		return nil
	case mine := <-leads:
		work, stop := context.WithCancel(mine)
		defer context.AfterFunc(ctx, stop)()
		log.Info("leads", "lease", namespace+"/"+name, "as", h.me)
		if err := works(work); err != nil || ctx.Err() != nil {
			return err
		}
		return errors.New("the lease is lost to another, or the API server did not take it for 10 s")
	}
}
