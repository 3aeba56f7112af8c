package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ringlight/bridge/dra/controller"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
)

const (
	nodes, gpus, tp = 64, 4, 16
	spares          = 4
	singles         = 4 // rings of one node
	large           = (nodes - spares - singles) / (tp / gpus)
)

func quantity(s string) *resource.Quantity { q := resource.MustParse(s); return &q }

// bench is one run.
type bench struct {
	t       *testing.T
	c       *cluster
	k       *kubelets
	planner *client.Client
	socket  string           // of the boards' power
	again   func() *exec.Cmd // the planner, which is started anew when it ends
	control func() *exec.Cmd // starts a controller
	names   []string         // of the nodes
	random  *rand.Rand

	ring    *resourceapi.ResourceClaim // as the manifests have it
	pod     *corev1.Pod
	said    *events
	renewed atomic.Int64 // pods made again that had nodes of a lost ring
}

// Goal: every pod runs on its ring and no ring is given twice, slices are equal to
// the planner's rings two seconds after a change, and nothing is left, whatever fails.
// Method: a real API server, scheduler and controller manager, the manifests that
// users are given, the accounts that they make; a planner, and 64 agents on simulated
// boards; jobs of 1 to 8 rings end at random moments, boards lose their power, the
// controller is killed and so is the planner. RINGLIGHT_KUBERNETES names the folder of
// the control plane's programs, RINGLIGHT_BIN that of ours, RINGLIGHT_RUNS the jobs,
// RINGLIGHT_SEED what is random.
func TestPodsGetRingsOfARealControlPlane(t *testing.T) {
	jobs, seed := 200, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_RUNS")); err == nil {
		jobs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_SEED"), 10, 64); err == nil {
		seed = n
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := startBench(ctx, t, nodes, "-nodes", fmt.Sprint(nodes), "-gpus", fmt.Sprint(gpus), "-tp", fmt.Sprint(tp), "-k", "3", "-spares", fmt.Sprint(spares), "-ring-sizes", fmt.Sprintf("%d:%d", gpus, singles))
	b.random = rand.New(rand.NewPCG(seed, 2))
	until(t, "rings in service", 5*time.Minute, func() bool {
		x, err := b.planner.Topology(ctx)
		return err == nil && len(x.Rings) > 0 && !slices.ContainsFunc(x.Rings, func(r job.FabricRing) bool { return r.State != "in_service" })
	})
	b.c.apply(t, "ring.yaml")
	b.templates()
	watcher := watchSlices(ctx, t, b.c.cfg)
	names := b.names
	drivers := []*exec.Cmd{b.control(), b.control()} // as many as the manifests say: one works
	began := time.Now()
	until(t, "the slices of "+fmt.Sprint(large+singles)+" rings", 5*time.Minute, func() bool { return b.agree() == "" })
	t.Logf("slices and labels stand %v after the controller began", time.Since(began).Round(time.Millisecond))
	stands, killed := time.Now(), []time.Time(nil)
	b.each(ctx)
	b.tells(ctx)
	b.queue(ctx)

	// Jobs, one after the other as there is room: who admits jobs whole is a queue's business.
	var all sync.WaitGroup
	room := make(chan struct{}, large-1)
	rings, began := 0, time.Now()
	var gone []string
	var going sync.Mutex
	lost := func(node string) {
		going.Lock()
		defer going.Unlock()
		if node != "" {
			gone = append(gone, node)
		}
	}
	for i := range jobs {
		want := 1 + b.random.IntN(8)
		for range want {
			room <- struct{}{}
		}
		rings += want
		for r := range want {
			name, lasts := fmt.Sprintf("job-%d-%d", i, r), time.Duration(b.random.IntN(3000))*time.Millisecond
			early := b.random.IntN(10) == 0 // it ends before its pods have begun
			all.Go(func() {
				b.oneRing(ctx, name, lasts, early)
				<-room
			})
		}
		node := names[b.random.IntN(len(names))]
		switch {
		case i%10 == 3:
			power(t, b.socket, node, false)
			all.Go(func() {
				if !sleep(ctx, 5*time.Second) {
					return
				}
				going.Lock()
				defer going.Unlock()
				if !slices.Contains(gone, node) {
					power(t, b.socket, node, true)
				}
			})
		case i%20 == 7:
			killed = append(killed, time.Now())
			at := len(killed) % 2
			_ = drivers[at].Process.Kill() // it may be gone
			_ = drivers[at].Wait()
			drivers[at] = b.control()
		case i%5 == 4:
			all.Go(func() { b.k.restart(ctx, node) })
		case i%70 == 35:
			all.Go(func() { lost(b.lose(ctx)) })
		case i == jobs/2:
			_ = b.again().Process.Kill()
		}
	}
	all.Wait()
	t.Logf("%d jobs of %d rings, %d pods started, in %v; nodes lost for good under claims without pods: %v; plugins and kubelets restarted: %d, claims of running pods handed out again: %d; pods made anew that had nodes of a lost ring: %d", jobs, rings, b.k.started, time.Since(began).Round(time.Second), gone, b.k.restarts, b.k.prepared, b.renewed.Load())
	for _, n := range gone {
		power(t, b.socket, n, true)
	}

	still := ""
	t.Cleanup(func() {
		if still != "" {
			t.Logf("at the end: %.2000s", still)
		}
	})
	until(t, "the end of all that was asked for", 2*time.Minute, func() bool {
		still = cmp.Or(b.left(), b.agree())
		return still == ""
	})
	b.k.mu.Lock()
	for _, w := range b.k.wrong {
		t.Error(w)
	}
	b.k.mu.Unlock()
	watcher.judge(t, b.c.dir, stands, killed)
	b.said.judge(t)
}

// templates takes claim and pod as the manifests have them.
func (b *bench) templates() {
	b.ring, b.pod = &resourceapi.ResourceClaim{}, &corev1.Pod{}
	for _, o := range objects(b.t, "ring.yaml") {
		var to any = b.ring
		if o.GetKind() == "Pod" {
			to = b.pod
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, to); err != nil {
			b.t.Fatal(err)
		}
	}
	ctx, now := b.t.Context(), int64(0)
	if err := b.c.kube.CoreV1().Pods("default").Delete(ctx, b.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		b.t.Fatal(err)
	}
	if err := b.c.kube.ResourceV1().ResourceClaims("default").Delete(ctx, b.ring.Name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// each runs the Job of the manifests, whose pods have a claim each by a template.
func (b *bench) each(ctx context.Context) {
	b.c.apply(b.t, "each.yaml")
	pods, mine := b.c.kube.CoreV1().Pods("default"), metav1.ListOptions{LabelSelector: "job-name=each"}
	on := map[string]bool{}
	began := time.Now()
	until(b.t, "pods of a Job with a ring each", 2*time.Minute, func() bool {
		all, err := pods.List(ctx, mine)
		if err != nil {
			b.t.Fatal(err)
		}
		clear(on)
		for _, p := range all.Items {
			if p.Status.Phase == corev1.PodRunning {
				on[p.Spec.NodeName] = true
			}
		}
		return len(on) == 3
	})
	b.t.Logf("a Job with a ResourceClaimTemplate: 3 pods on 3 rings of one node after %v", time.Since(began).Round(time.Millisecond))
	how := metav1.DeletePropagationBackground
	if err := b.c.kube.BatchV1().Jobs("default").Delete(ctx, "each", metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		b.t.Fatal(err)
	}
	until(b.t, "the end of the Job's pods, claims and rings", 2*time.Minute, func() bool { return b.left() == "" })
}

// oneRing is the life of a ring's pods and their claim.
func (b *bench) oneRing(ctx context.Context, name string, lasts time.Duration, early bool) {
	claims, pods := b.c.kube.ResourceV1().ResourceClaims("default"), b.c.kube.CoreV1().Pods("default")
	fail := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			b.t.Errorf("%s: %s: %v", name, what, err)
		}
	}
	fail("begin", b.make(ctx, name, tp/gpus))
	mine := metav1.ListOptions{LabelSelector: "train=" + name}
	for end := time.Now().Add(2 * time.Minute); !early; {
		all, err := pods.List(ctx, mine)
		fail("pods", err)
		running, at := 0, map[string]bool{}
		for _, p := range all.Items {
			if p.Status.Phase == corev1.PodRunning {
				running, at[p.Spec.NodeName] = running+1, true
			}
		}
		if running == tp/gpus {
			if len(at) != running {
				b.t.Errorf("%s: its pods are on %v", name, at)
			}
			break
		}
		b.anew(ctx, name)
		if time.Now().After(end) {
			b.t.Errorf("%s: %d of %d pods run: %s", name, running, tp/gpus, b.stands(ctx, name, all.Items))
			break
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
	if !sleep(ctx, lasts) {
		return
	}
	fail("end", pods.DeleteCollection(ctx, metav1.DeleteOptions{}, mine))
	for { // pods first: a kubelet needs the claim
		all, err := pods.List(ctx, mine)
		fail("pods", err)
		now, unbound := int64(0), 0
		for _, p := range all.Items {
			if p.Spec.NodeName == "" {
				unbound++
				_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) // looked at again
			}
		}
		if len(all.Items) == 0 || !sleep(ctx, 100*time.Millisecond) {
			break
		}
	}
	fail("end of the claim", claims.Delete(ctx, name, metav1.DeleteOptions{}))
}

// stands says how a claim, its job and those of its pods stand that do not run.
func (b *bench) stands(ctx context.Context, name string, pods []corev1.Pod) string {
	claim, err := b.c.kube.ResourceV1().ResourceClaims("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	view, err := b.planner.Get(ctx, controller.JobOf("k8s", claim))
	if err != nil {
		return err.Error()
	}
	said := map[string]any{"claim": claim.Status, "job": view}
	b.k.mu.Lock()
	defer b.k.mu.Unlock()
	for _, p := range pods {
		if p.Status.Phase != corev1.PodRunning {
			said[p.Name] = []any{p.Spec.NodeName, p.Status, b.k.refused[p.Name]}
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// standing is what counts of a ring, as a text.
func standing(selector *corev1.NodeSelector, d *resourceapi.Device) string {
	var taints []string
	for _, x := range d.Taints {
		taints = append(taints, x.Key+"="+x.Value)
	}
	a := d.Attributes
	return fmt.Sprint(selector.NodeSelectorTerms[0].MatchExpressions[0].Values, taints, *a["tp"].IntValue, *a["gpus"].IntValue, *a["state"].StringValue, *a["generation"].IntValue)
}

// rings gives both sides, by pool.
func (b *bench) rings(ctx context.Context) (planner, slices map[string]string, err error) {
	t, err := b.planner.Topology(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := b.c.kube.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	planner, slices = map[string]string{}, map[string]string{}
	for name, p := range controller.Rings(t, func(id string) bool { return strings.HasPrefix(id, "k8s-") }) { // any order
		planner[name] = standing(p.NodeSelector, &p.Slices[0].Devices[0])
	}
	for _, s := range all.Items {
		slices[s.Spec.Pool.Name] += standing(s.Spec.NodeSelector, &s.Spec.Devices[0])
	}
	return planner, slices, nil
}

// agree says what differs between slices, labels and the planner.
func (b *bench) agree() string {
	planner, slices, err := b.rings(b.t.Context())
	if err != nil {
		return err.Error()
	}
	if len(planner) == 0 || !maps.Equal(planner, slices) {
		return fmt.Sprintf("rings %v, slices %v", planner, slices)
	}
	t, err := b.planner.Topology(b.t.Context())
	if err != nil {
		return err.Error()
	}
	for host, want := range t.Labels(job.LabelDomain) { // any order
		n, err := b.c.kube.CoreV1().Nodes().Get(b.t.Context(), host, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for k, v := range want { // any order
			if n.Labels[k] != v {
				return fmt.Sprintf("node %s: %s is %q, not %q", host, k, n.Labels[k], v)
			}
		}
	}
	return ""
}

// left says what of the jobs is still there.
func (b *bench) left() string {
	ctx := b.t.Context()
	jobs, err := b.planner.List(ctx)
	if err != nil || len(jobs) > 0 {
		return fmt.Sprintf("%d jobs, %v", len(jobs), err)
	}
	claims, err := b.c.kube.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil || len(claims.Items) > 0 {
		return fmt.Sprintf("%d claims, %v", len(claims.Items), err)
	}
	pods, err := b.c.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		return fmt.Sprintf("%d pods, %v", len(pods.Items), err)
	}
	for n := range b.k.node { // any order
		for _, d := range []string{"cdi", "files"} {
			if left, err := os.ReadDir(filepath.Join(b.c.dir, n, d)); err != nil || len(left) > 0 {
				return fmt.Sprintf("node %s: %s has %v, %v", n, d, left, err)
			}
		}
	}
	return ""
}
