package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"ringlight/bridge/dra/controller"
)

// events are all that the controller told of pods and claims.
type events struct {
	mu  sync.Mutex
	all map[string]*corev1.Event // by the event's own name, as it was last
}

func watchEvents(ctx context.Context, t *testing.T, kube kubernetes.Interface) *events {
	t.Helper()
	e := &events{all: map[string]*corev1.Event{}}
	see := func(x any) {
		if v, ok := x.(*corev1.Event); ok && v.Source.Component == "ocs-dra" {
			e.mu.Lock()
			e.all[v.Name] = v
			e.mu.Unlock()
		}
	}
	informer := informers.NewSharedInformerFactory(kube, 0).Core().V1().Events().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, x any) { see(x) }}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	return e
}

// of gives what was told of an object under a reason.
func (e *events) of(kind, name, reason string) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.all { // any order
		if v.InvolvedObject.Kind == kind && v.InvolvedObject.Name == name && v.Reason == reason {
			out = append(out, v.Message)
		}
	}
	return out
}

// with gives what an object was told that has these words.
func (e *events) with(uid, words string) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.all { // any order
		if string(v.InvolvedObject.UID) == uid && strings.Contains(v.Message, words) {
			out = append(out, v.Message)
		}
	}
	return out
}

// row is an event as the page has it: name, type, and what it says in any case.
var row = regexp.MustCompile("(?m)^\\| `(Ring\\w*)` \\| (Normal|Warning) \\| [^`\n]*`([^`]+)`")

// judge holds what was told against the page: each that it names was seen, on a pod or a
// claim, with its words, and no other.
func (e *events) judge(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds, words, seen := map[string]string{}, map[string]string{}, map[string]map[string]int{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		kinds[m[1]], words[m[1]] = m[2], m[3]
	}
	if !slices.Equal(slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(controller.Events))) {
		t.Errorf("the page has events %v, the controller %v", slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(controller.Events)))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	examples := map[string]string{}
	for _, v := range e.all { // any order
		on := v.InvolvedObject.Kind
		if kinds[v.Reason] != v.Type || !strings.Contains(v.Message, words[v.Reason]) || on != "Pod" && on != "ResourceClaim" {
			t.Errorf("%s %s of %s: %q; the page has %s with %q", v.Type, v.Reason, on, v.Message, kinds[v.Reason], words[v.Reason])
		}
		if seen[v.Reason] == nil {
			seen[v.Reason] = map[string]int{}
		}
		seen[v.Reason][on]++
		examples[v.Reason] = max(examples[v.Reason], v.Message)
	}
	for _, reason := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("event %s: on %d claims, %d pods: %q", reason, seen[reason]["ResourceClaim"], seen[reason]["Pod"], examples[reason])
		if len(seen[reason]) == 0 {
			t.Errorf("event %s is on the page and was never seen", reason)
		}
	}
}

// make creates a claim for a ring, and some of its pods.
func (b *bench) make(ctx context.Context, name string, pods int) error {
	claim := b.ring.DeepCopy()
	claim.Name, claim.Labels = name, map[string]string{"train": name}
	if _, err := b.c.kube.ResourceV1().ResourceClaims("default").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	return b.pods(ctx, name, pods)
}

// pods creates those of a claim that there are not.
func (b *bench) pods(ctx context.Context, name string, pods int) error {
	for i := range pods {
		p := b.pod.DeepCopy()
		p.Name, p.Labels = fmt.Sprintf("%s-%d", name, i), map[string]string{"train": name}
		p.Spec.ResourceClaims[0].ResourceClaimName = &name
		if _, err := b.c.kube.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("pod: %w", err)
		}
	}
	return nil
}

// nodesOf are those of a claim's ring; none: it has no ring.
func nodesOf(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values
}

func (b *bench) claim(ctx context.Context, name string) *resourceapi.ResourceClaim {
	c, err := b.c.kube.ResourceV1().ResourceClaims("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return &resourceapi.ResourceClaim{}
	}
	return c
}

// on are the nodes of a claim's running pods.
func (b *bench) on(ctx context.Context, name string) (out []string) {
	all, err := b.c.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "train=" + name})
	if err != nil {
		return nil
	}
	for _, p := range all.Items {
		if p.Status.Phase == corev1.PodRunning {
			out = append(out, p.Spec.NodeName)
		}
	}
	return out
}

// lose takes the power of a node for good whose ring was given to a claim no pod of which
// has begun; "": there is none now.
func (b *bench) lose(ctx context.Context) string {
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && sleep(ctx, 20*time.Millisecond); {
		all, err := b.c.kube.ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for i := range all.Items {
			c := &all.Items[i]
			if nodes := nodesOf(c); len(nodes) > 1 && c.DeletionTimestamp == nil && !b.bound(ctx, c.Name) {
				power(b.t, b.socket, nodes[0], false)
				return nodes[0]
			}
		}
	}
	return ""
}

// bound: a pod of the claim has a node.
func (b *bench) bound(ctx context.Context, name string) bool {
	all, err := b.c.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "train=" + name})
	return err != nil || slices.ContainsFunc(all.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != "" })
}

// anew makes those pods of a claim again that are told to be deleted: they have nodes, and
// none has begun.
func (b *bench) anew(ctx context.Context, name string) {
	pods := b.c.kube.CoreV1().Pods("default")
	all, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "train=" + name})
	if err != nil {
		return // looked at again
	}
	stuck := func(p corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.DeletionTimestamp == nil && len(b.said.with(string(p.UID), controller.Stuck)) > 0
	}
	if slices.ContainsFunc(all.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodPending }) || !slices.ContainsFunc(all.Items, stuck) {
		return
	}
	now := int64(0)
	for _, p := range all.Items {
		if p.Spec.NodeName != "" && pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID))}) == nil {
			b.renewed.Add(1)
		}
	}
	if err := b.pods(ctx, name, tp/gpus); err != nil && ctx.Err() == nil {
		b.t.Errorf("%s: %v", name, err)
	}
}

// tells goes through the life that a claim may have beside light, and waits for the words
// that it and its pods are told.
func (b *bench) tells(ctx context.Context) {
	t, said, mine := b.t, b.said, metav1.ListOptions{LabelSelector: "train=told"}
	heard := func(reason string, word string) {
		t.Helper()
		until(t, reason+" on claim and pods", 2*time.Minute, func() bool {
			for i := range tp / gpus {
				if !slices.ContainsFunc(said.of("Pod", fmt.Sprintf("told-%d", i), reason), func(m string) bool { return strings.Contains(m, word) }) {
					return false
				}
			}
			return slices.ContainsFunc(said.of("ResourceClaim", "told", reason), func(m string) bool { return strings.Contains(m, word) })
		})
	}
	// A node is lost for good between the claim's ring and the pods' start.
	if err := b.make(ctx, "told", 1); err != nil {
		t.Fatal(err)
	}
	until(t, "a ring for the claim", time.Minute, func() bool { return len(nodesOf(b.claim(ctx, "told"))) > 0 })
	lost := nodesOf(b.claim(ctx, "told"))[0]
	power(t, b.socket, lost, false)
	began := time.Now()
	until(t, "pods on a ring without the lost node", 2*time.Minute, func() bool {
		if err := b.pods(ctx, "told", tp/gpus); err != nil {
			t.Fatal(err)
		}
		b.anew(ctx, "told")
		return len(b.on(ctx, "told")) == tp/gpus
	})
	if len(said.with(string(b.claim(ctx, "told").UID), "node "+lost)) == 0 {
		t.Errorf("claim told is not told of node %s", lost)
	}
	if on := b.on(ctx, "told"); slices.Contains(on, lost) {
		t.Errorf("a pod runs on node %s, which is lost", lost)
	}
	t.Logf("node %s lost for good between allocation and start: all pods of the claim run on %v after %v; pods made anew that had nodes: %d", lost, b.on(ctx, "told"), time.Since(began).Round(100*time.Millisecond), b.renewed.Load())

	// Under running pods a node is lost, then all, then they are back.
	ring := nodesOf(b.claim(ctx, "told"))
	power(t, b.socket, ring[0], false)
	heard("RingDegraded", controller.Short)
	heard("RingDegraded", "node "+ring[0])
	for _, n := range ring[1:] {
		power(t, b.socket, n, false)
	}
	heard("RingDown", controller.Short)
	for _, n := range append(ring, lost) {
		power(t, b.socket, n, true)
	}
	until(t, "light for the claim again", 2*time.Minute, func() bool {
		d := b.claim(ctx, "told").Status.Devices
		return len(d) == 1 && meta.IsStatusConditionTrue(d[0].Conditions, controller.Ready)
	})

	// A claim whose ring is another's by now, and one whose ring has other nodes.
	for name, spoil := range map[string]func(a *resourceapi.AllocationResult){
		"taken": func(*resourceapi.AllocationResult) {},
		"anew": func(a *resourceapi.AllocationResult) {
			v := &a.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values
			*v = (*v)[1:]
		},
	} { // any order
		c := b.ring.DeepCopy()
		c.Name, c.Labels = name, nil
		c, err := b.c.kube.ResourceV1().ResourceClaims("default").Create(ctx, c, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Status.Allocation = b.claim(ctx, "told").Status.Allocation.DeepCopy()
		given := metav1.Now()
		c.Status.Allocation.AllocationTimestamp = &given
		spoil(c.Status.Allocation)
		if _, err := b.c.kube.ResourceV1().ResourceClaims("default").UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "word on claim "+name, time.Minute, func() bool { return len(said.of("ResourceClaim", name, controller.RingLost)) > 0 })
		if err := b.c.kube.ResourceV1().ResourceClaims("default").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.c.kube.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, mine); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the pods", time.Minute, func() bool {
		all, err := b.c.kube.CoreV1().Pods("default").List(ctx, mine)
		return err == nil && len(all.Items) == 0
	})
	if err := b.c.kube.ResourceV1().ResourceClaims("default").Delete(ctx, "told", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of what was told of, and whole rings", 2*time.Minute, func() bool { return b.left() == "" && b.agree() == "" })
}
