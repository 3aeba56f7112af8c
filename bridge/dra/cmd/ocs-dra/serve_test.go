package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"ringlight/bridge/dra/plugin"
)

// Goal: probes and metrics say how the work goes, and why it does not.
// Method: over HTTP, at work that is not begun, done, failed, done again, and claims that wait.
func TestProbes(t *testing.T) {
	h := newHealth(&common{})
	at, err := h.serve(t.Context(), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get("http://" + at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	is := func(path string, status int, words ...string) {
		t.Helper()
		code, text := get(path)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in %q", path, w, text)
			}
		}
		if code != status {
			t.Errorf("%s: %d %q, want %d", path, code, text, status)
		}
	}
	is("/healthz", 200)
	is("/readyz", 200) // it stands by
	is("/metrics", 200, "ringlight_dra_leading 0\n")
	h.leads = true
	is("/readyz", 503, "not looked yet")
	h.told("slices", nil)
	h.told("claims", errors.New("planner away"))
	is("/readyz", 503, "claims: planner away")
	h.told("claims", nil)
	h.told(plugin.HandOut, errors.New("waits for light"))
	is("/readyz", 200)
	is("/metrics", 200, "ringlight_dra_leading 1\n", `ringlight_dra_done_total{what="claims"} 1`, `ringlight_dra_failed_total{what="claims"} 1`, `ringlight_dra_failed_total{what="claim"} 1`, "process_start_time_seconds ")
}

// Goal: one of several works, and who stands by takes over when it ends.
// Method: two at one lease of a fake API server.
func TestOneLeads(t *testing.T) {
	kube, log := fake.NewClientset(), slog.New(slog.DiscardHandler)
	run := func(name string, works chan<- string) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			h := newHealth(&common{})
			h.me = name
			done <- h.lead(ctx, kube, "ringlight", "ocs-dra-k8s", log, func(ctx context.Context) error {
				works <- name
				<-ctx.Done()
				return nil
			})
		}()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	works := make(chan string)
	endA := run("a", works)
	if got := <-works; got != "a" {
		t.Fatal(got)
	}
	endB := run("b", works)
	l, err := kube.CoordinationV1().Leases("ringlight").Get(t.Context(), "ocs-dra-k8s", metav1.GetOptions{})
	if err != nil || *l.Spec.HolderIdentity != "a" {
		t.Errorf("%v, %v", l, err)
	}
	select {
	case got := <-works:
		t.Errorf("%s works beside a", got)
	default:
	}
	endA()
	if got := <-works; got != "b" {
		t.Error(got)
	}
	endB()
	if l, err = kube.CoordinationV1().Leases("ringlight").Get(t.Context(), "ocs-dra-k8s", metav1.GetOptions{}); err != nil || *l.Spec.HolderIdentity != "" {
		t.Errorf("after the end the lease is %v's, %v", l, err)
	}
}
