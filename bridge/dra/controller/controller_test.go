package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"ringlight/planner/job"
	"ringlight/proto"
)

// planner answers as one does; its answers are lost now and then, before and after
// what was asked for is done.
type planner struct {
	mu     sync.Mutex
	random *rand.Rand
	t      job.Topology
	jobs   map[string]*job.View
}

var errAway = errors.New("planner away")

func (p *planner) lost() bool { return p.random.IntN(4) == 0 }

func (p *planner) Topology(context.Context) (*job.Topology, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.t
	t.Rings, t.Nodes = slices.Clone(t.Rings), slices.Clone(t.Nodes)
	for i := range t.Rings {
		for id, v := range p.jobs { // any order
			if v.Wish.Circuits == nil && v.Rings[0].Ring == t.Rings[i].Ring {
				t.Rings[i].Job, t.Rings[i].Owner = id, v.Wish.Owner
			}
		}
	}
	return &t, nil
}

func (p *planner) List(context.Context) (out []*job.View, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(p.jobs)) {
		v := *p.jobs[id]
		out = append(out, &v)
	}
	return out, nil
}

func (p *planner) Put(_ context.Context, id string, w *job.Wish) (*job.View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost() {
		return nil, errAway
	}
	if old := p.jobs[id]; old != nil && fmt.Sprint(old.Wish) != fmt.Sprint(w) {
		return nil, &proto.Error{Code: proto.Conflict, Field: "id", Reason: "another wish"}
	}
	if w.Circuits != nil {
		p.jobs[id] = &job.View{ID: id, State: job.Ready, Wish: w}
		return p.jobs[id], nil
	}
	for _, r := range p.t.Rings {
		names := []job.Name{}
		for _, n := range r.Nodes {
			names = append(names, job.Name(n))
		}
		if !slices.Equal(names, w.Nodes) || w.TP != r.TP || w.Ring != 0 && w.Ring != r.Ring {
			continue
		}
		for other, v := range p.jobs { // any order
			if v.Rings[0].Ring == r.Ring && other != id {
				return nil, &proto.Error{Code: proto.Conflict, Field: "nodes", Reason: "another's"}
			}
		}
		p.jobs[id] = &job.View{ID: id, State: job.Ready, Wish: w, Rings: []job.Ring{{Ring: r.Ring, Nodes: r.Nodes}}}
		if p.lost() {
			return nil, errAway
		}
		return p.jobs[id], nil
	}
	return nil, &proto.Error{Code: proto.Conflict, Field: "nodes", Reason: "no ring of these"}
}

func (p *planner) Release(_ context.Context, id string) (*job.View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost() {
		return nil, errAway
	}
	delete(p.jobs, id)
	if p.lost() {
		return nil, errAway
	}
	return &job.View{ID: id, State: job.Released}, nil
}

func fabricOf(rings int) job.Topology {
	t := job.Topology{GPUsPerNode: 4, TP: 8}
	for r := range rings {
		ring := job.FabricRing{Ring: proto.RingID(r + 1), State: proto.RingInService.String(), Generation: 1, TP: 8, GPUs: 8}
		for i := range 2 {
			tor, at := r/2, i
			n := job.FabricNode{Host: fmt.Sprintf("n%02d", 2*r+i), Node: proto.NodeID(2*r + i), Ring: ring.Ring, Position: &at, ToR: &tor, State: job.Well}
			t.Nodes, ring.Nodes = append(t.Nodes, n), append(ring.Nodes, n.Host)
		}
		t.Rings = append(t.Rings, ring)
	}
	return t
}

// allocated is a claim as the scheduler leaves it.
func allocated(name string, r *job.FabricRing) *resourceapi.ResourceClaim {
	pools := Rings(&job.Topology{Rings: []job.FabricRing{*r}}, func(string) bool { return true })
	now := metav1.Now()
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{AllocationTimestamp: &now, NodeSelector: pools[poolOf(r)].NodeSelector,
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Request: "ring", Driver: Driver, Pool: poolOf(r), Device: device}}}}}}
}

// cluster is a client of an API server that gives names to slices.
func cluster(objects ...runtime.Object) *fake.Clientset {
	kube := fake.NewClientset(objects...)
	var mu sync.Mutex
	made := 0
	kube.PrependReactor("create", "resourceslices", func(a ktesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		made++
		a.(ktesting.CreateAction).GetObject().(*resourceapi.ResourceSlice).Name = fmt.Sprintf("slice-%d", made)
		return false, nil, nil
	})
	return kube
}

// until waits for what a running controller brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-look.C { // a bound on a hang, on any machine
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Goal: jobs are those of the claims that hold rings, slices those of the rings and
// labels those of the topology, whenever the controller ends and whichever answers
// of the planner are lost.
// Method: random claims come and go while controllers are ended after random times
// and begun anew; then one that may work in peace.
func TestControllerMayEndAtAnyMoment(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := &planner{random: rand.New(rand.NewPCG(3, 4)), t: fabricOf(6), jobs: map[string]*job.View{
		"k8s-of-an-earlier-life": {ID: "k8s-of-an-earlier-life", State: job.Ready, Wish: &job.Wish{Owner: Owner("k8s")}, Rings: []job.Ring{{Ring: 99}}},
		"k8s-b-of-another":       {ID: "k8s-b-of-another", State: job.Ready, Wish: &job.Wish{Owner: Owner("k8s-b")}, Rings: []job.Ring{{Ring: 98}}},
		"k8s-of-an-operator":     {ID: "k8s-of-an-operator", State: job.Ready, Wish: &job.Wish{}, Rings: []job.Ring{{Ring: 6}}}}}
	kube := cluster()
	ctx := t.Context()
	for _, n := range p.t.Nodes[:11] { // the fabric has a node more than the cluster
		if _, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Host, Labels: map[string]string{"kept": "yes"}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claims := kube.ResourceV1().ResourceClaims("default")
	holds := map[int]string{} // by ring: the claim
	life := func(d time.Duration) {
		run, end := context.WithTimeout(ctx, d)
		defer end()
		if err := Run(run, Config{Driver: Driver, Cluster: "k8s", Kube: kube, Planner: p, Every: 2 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}); err != nil && run.Err() == nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		r := random.IntN(5) // the sixth is somebody else's
		if name, ok := holds[r]; ok {
			if err := claims.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			delete(holds, r)
		} else {
			holds[r] = fmt.Sprintf("claim-%d", i)
			if _, err := claims.Create(ctx, allocated(holds[r], &p.t.Rings[r]), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		life(time.Duration(random.IntN(12)) * time.Millisecond)
	}
	p.mu.Lock()
	p.t.Rings[0].State, p.t.Rings[0].GPUs = proto.RingDegraded.String(), 4
	p.mu.Unlock()
	peace, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(peace, Config{Driver: Driver, Cluster: "k8s", Kube: kube, Planner: p, Every: 2 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer end()
	until(t, "jobs for the claims that there are, and no other", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for r, name := range holds { // any order
			if v := p.jobs["k8s-"+name]; v == nil || v.Rings[0].Ring != p.t.Rings[r].Ring {
				return false
			}
		}
		return len(p.jobs) == len(holds)+2 && p.jobs["k8s-b-of-another"] != nil && p.jobs["k8s-of-an-operator"] != nil
	})
	until(t, "claims that are told", func() bool {
		for _, name := range holds { // any order
			claim, err := claims.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(claim.Status.Devices) != 1 || !slices.ContainsFunc(claim.Status.Devices[0].Conditions, func(c metav1.Condition) bool { return c.Type == Ready && c.Status == metav1.ConditionTrue }) {
				return false
			}
		}
		return true
	})
	until(t, "a slice for each ring, as it stands", func() bool {
		all, err := kube.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now, _ := p.Topology(ctx)
		want := Rings(now, (&Config{Cluster: "k8s"}).ours)
		for _, s := range all.Items {
			w, ok := want[s.Spec.Pool.Name]
			if !ok || len(s.Spec.Devices) != 1 || fmt.Sprint(s.Spec.NodeSelector) != fmt.Sprint(w.NodeSelector) ||
				fmt.Sprint(taintsOf(s.Spec.Devices[0])) != fmt.Sprint(taintsOf(w.Slices[0].Devices[0])) {
				return false
			}
		}
		return len(all.Items) == len(want)
	})
	until(t, "labels of the nodes", func() bool {
		for _, n := range p.t.Nodes[:11] {
			got, err := kube.CoreV1().Nodes().Get(ctx, n.Host, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Labels["ringlight.dev/ring"] != fmt.Sprint(n.Ring) || got.Labels["kept"] != "yes" {
				return false
			}
		}
		return true
	})
}

// Goal: a claim whose ring the planner formed anew, or moved, since it was published is
// told to take another, and no ring of another name is held for it.
// Method: claims as they were allocated; then the planner has ring 1 on other nodes, and
// ring 9 stands on those that ring 2 had.
func TestClaimKeepsTheRingThatItNames(t *testing.T) {
	p := &planner{random: rand.New(rand.NewPCG(3, 4)), t: fabricOf(4), jobs: map[string]*job.View{}}
	moved, anew, stands := allocated("moved", &p.t.Rings[0]), allocated("anew", &p.t.Rings[1]), allocated("stands", &p.t.Rings[2])
	p.t.Rings[0].Nodes = p.t.Rings[3].Nodes
	p.t.Rings[1].Ring = 9
	p.t.Rings = append(p.t.Rings[:1:1], p.t.Rings[2], p.t.Rings[1]) // by number
	kube := cluster(moved, anew, stands)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(ctx, Config{Driver: Driver, Cluster: "k8s", Kube: kube, Planner: p, Every: 2 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer end()
	until(t, "claims that are told", func() bool {
		for name, lost := range map[string]metav1.ConditionStatus{"moved": "True", "anew": "True", "stands": "False"} { // any order
			claim, err := kube.ResourceV1().ResourceClaims("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(claim.Status.Devices) != 1 || !slices.ContainsFunc(claim.Status.Devices[0].Conditions, func(c metav1.Condition) bool { return c.Type == RingLost && c.Status == lost }) {
				return false
			}
		}
		return true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.jobs) != 1 || p.jobs["k8s-stands"].Rings[0].Ring != 3 {
		t.Errorf("jobs %v", p.jobs)
	}
}

// Goal: circuits are asked for between just the nodes of the pods that share a claim, once
// as many have one as its parameters say; they stay while a pod ends, are asked for anew
// where its successor is elsewhere, and go with the claim.
// Method: a claim and its pods, as the scheduler and the kubelets would change them.
func TestCircuitsAreOfTheNodesOfTheirPods(t *testing.T) {
	p := &planner{random: rand.New(rand.NewPCG(3, 4)), t: fabricOf(1), jobs: map[string]*job.View{}}
	for n := range 200 {
		p.t.Servers = append(p.t.Servers, job.FabricNode{Host: fmt.Sprintf("s%03d", n), Node: proto.NodeID(n)})
	}
	pool := Rings(&p.t, func(string) bool { return true })[core]
	if d := pool.Slices[0].Devices; len(d) != maxJobs || *d[7].Attributes["ring"].IntValue != 0 || *d[7].Attributes["nodes"].IntValue != 200 || len(pool.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values) != 200 {
		t.Fatalf("pool %+v", pool)
	}
	asks := func(name, parameters string, pods ...string) *resourceapi.ResourceClaim {
		c := allocated(name, &p.t.Rings[0])
		a := c.Status.Allocation
		a.NodeSelector = pool.NodeSelector
		a.Devices.Results[0].Pool, a.Devices.Results[0].Device = core, "job-7"
		config := func(source resourceapi.AllocationConfigSource, text string) {
			a.Devices.Config = append(a.Devices.Config, resourceapi.DeviceAllocationConfiguration{Source: source, DeviceConfiguration: resourceapi.DeviceConfiguration{
				Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: Driver, Parameters: runtime.RawExtension{Raw: []byte(text)}}}})
		}
		config(resourceapi.AllocationConfigSourceClass, `{"servers":9}`)
		config(resourceapi.AllocationConfigSourceClaim, parameters)
		for _, name := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(name)})
		}
		return c
	}
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
	}
	const both = `{"servers":2,"tp":8}`
	kube := cluster(asks("c", both, "a", "b"), asks("typo", `{"serfers":2}`), asks("none", `{"tp":8}`), asks("more", `{"servers":1}`, "x", "y"),
		pod("a", "s003"), pod("b", ""), pod("x", "s008"), pod("y", "s009"))
	claims := kube.ResourceV1().ResourceClaims("default")
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(ctx, Config{Driver: Driver, Cluster: "k8s", Kube: kube, Planner: p, Every: 2 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer end()
	told := func(name string, status metav1.ConditionStatus, message string) {
		t.Helper()
		until(t, name+" that is told: "+message, func() bool {
			claim, err := claims.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return len(claim.Status.Devices) == 1 && slices.ContainsFunc(claim.Status.Devices[0].Conditions, func(c metav1.Condition) bool {
				return c.Type == Ready && c.Status == status && strings.Contains(c.Message, message)
			})
		})
	}
	jobs := func(nodes ...job.Name) {
		t.Helper()
		until(t, fmt.Sprintf("circuits between %v", nodes), func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			v := p.jobs["k8s-c"]
			return nodes == nil && len(p.jobs) == 0 || v != nil && len(p.jobs) == 1 && slices.Equal(v.Wish.Nodes, nodes) && v.Wish.Circuits.Servers == 2 && *v.Wish.Circuits.TP == 8 && v.Wish.Owner == "kubernetes/k8s"
		})
	}
	told("typo", "False", "serfers")
	told("none", "False", "name no servers")
	told("more", "False", "on 2 nodes, its parameters say servers 1")
	told("c", "False", "1 of 2 pods have nodes")
	jobs()
	move := func(update *corev1.Pod) {
		t.Helper()
		if _, err := kube.CoreV1().Pods("default").Update(ctx, update, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	share := func(pods ...string) {
		t.Helper()
		now := asks("c", both, pods...)
		before, err := claims.Get(ctx, "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now.Status.Devices = before.Status.Devices
		if _, err := claims.Update(ctx, now, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	move(pod("b", "s001"))
	jobs("s001", "s003")
	told("c", "True", "light")
	share("a")
	if _, err := claims.Create(ctx, asks("late", `{"tp":8}`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	told("late", "False", "name no servers") // and so "c" was looked at
	jobs("s001", "s003")
	if _, err := kube.CoreV1().Pods("default").Create(ctx, pod("d", "s150"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	share("a", "d")
	jobs("s003", "s150")
	if err := claims.Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	jobs()
}

// taintsOf are keys and values of a device's taints: the API server adds times.
func taintsOf(d resourceapi.Device) (out []string) {
	for _, x := range d.Taints {
		out = append(out, x.Key+"="+x.Value)
	}
	return out
}

// Goal: a ring that no pod is to get is tainted, and only it.
// Method: rings as they may stand.
func TestTaints(t *testing.T) {
	for _, c := range []struct {
		ring job.FabricRing
		want []string
	}{
		{job.FabricRing{State: "in_service", TP: 8, GPUs: 8}, nil},
		{job.FabricRing{State: "in_service", TP: 8, GPUs: 8, Job: "k8s-1", Owner: "kubernetes/k8s"}, nil},
		{job.FabricRing{State: "in_service", TP: 8, GPUs: 8, Job: "k8s-b-1", Owner: "kubernetes/k8s-b"}, []string{"ringlight/job="}},
		{job.FabricRing{State: "in_service", TP: 8, GPUs: 8, Job: "k8s-777"}, []string{"ringlight/job="}},
		{job.FabricRing{State: "forming", TP: 8, GPUs: 8}, []string{"ringlight/state=forming"}},
		{job.FabricRing{State: "degraded", TP: 8, GPUs: 4}, []string{"ringlight/state=degraded", "ringlight/degraded=4"}},
	} {
		c.ring.Ring, c.ring.Generation, c.ring.Nodes = 7, 5, []string{"b", "a"}
		pool := Rings(&job.Topology{Rings: []job.FabricRing{c.ring}}, (&Config{Cluster: "k8s"}).ours)["ring-7"]
		d := pool.Slices[0].Devices[0]
		if pool.Generation != 5 || d.Attributes["generation"].IntValue == nil {
			t.Errorf("pool of generation %d", pool.Generation)
		}
		if got := taintsOf(d); !slices.Equal(got, c.want) {
			t.Errorf("%+v: taints %v, want %v", c.ring, got, c.want)
		}
		if got := pool.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("nodes %v", got)
		}
		if _, ok := d.Attributes["tor"]; ok {
			t.Error("a ring under no known switch has one")
		}
	}
}

// Goal: the scheduler takes another ring where this one has no place, and only then.
// Method: what the planner may answer, soon and late.
func TestConditions(t *testing.T) {
	f := fabricOf(1)
	claim := allocated("c", &f.Rings[0])
	h := HeldBy(Driver, claim)
	if len(h.nodes) != 2 || h.wrong != "" {
		t.Fatalf("%+v", h)
	}
	given := claim.Status.Allocation.AllocationTimestamp.Time
	for _, c := range []struct {
		state       job.State
		refused     string
		lacking     string
		after       time.Duration
		ready, lost metav1.ConditionStatus
	}{
		{job.Ready, "", "", 0, "True", "False"},
		{job.Forming, "", "", time.Hour, "False", "False"},
		{job.Forming, "", "node b is lost", mends + time.Second, "False", "True"}, // it will have no light
		{job.Degraded, "", "", mends, "False", "False"},
		{job.Degraded, "", "", mends + time.Second, "False", "True"},
		{job.Down, "", "", mends + time.Second, "False", "True"},
		{job.Waiting, "", "", patience, "False", "False"},
		{job.Waiting, "", "", patience + time.Second, "False", "True"},
		{"", "no such ring", "", 0, "False", "True"},
	} {
		got := conditions(h, &job.View{State: c.state}, c.refused, c.lacking, "", given.Add(c.after))
		if got[0].Status != c.ready || got[1].Status != c.lost || got[0].Reason == "" || got[1].Reason == "" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	// A pod that may have begun keeps its ring, however short it is of light; a pod without a node has none to lose.
	for advice, want := range map[string]metav1.ConditionStatus{Short: "False", "": "True"} { // any order
		down := conditions(h, &job.View{State: job.Down}, "", "node b is lost: unheard", advice, given.Add(time.Hour))
		if down[0].Status != "False" || down[1].Status != want || down[0].Message != strings.TrimSuffix("node b is lost: unheard; "+advice, "; ") {
			t.Errorf("advice %q: %+v", advice, down)
		}
	}
	two := allocated("c", &f.Rings[0])
	two.Status.Allocation.Devices.Results = append(two.Status.Allocation.Devices.Results, two.Status.Allocation.Devices.Results[0])
	if h := HeldBy(Driver, two); h.wrong == "" {
		t.Error("a claim with two rings passes")
	}
	watched, admin := allocated("w", &f.Rings[0]), true
	watched.Status.Allocation.Devices.Results[0].AdminAccess = &admin
	if HeldBy(Driver, watched) != nil {
		t.Error("who watches a ring takes it")
	}
	if HeldBy("another", two) != nil {
		t.Error("another driver's devices count")
	}
}
