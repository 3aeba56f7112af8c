package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"ringlight/planner/job"
)

// Goal: claim and pods are told of each change once, a warning also when its text is
// another, and of a ring short of nodes what to do, by how far the pods are.
// Method: the same claim through the states of its job, its pods without nodes, bound, running.
func TestEvents(t *testing.T) {
	f := fabricOf(1)
	claim := allocated("c", &f.Rings[0])
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p"}}
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	heard := record.NewFakeRecorder(100)
	c := &controller{events: heard, pods: corelisters.NewPodLister(pods)}
	h, cause := HeldBy(Driver, claim), ""
	step := func(state job.State, refused string, node job.Standing, want ...string) {
		t.Helper()
		f.Nodes[0].State, f.Nodes[0].Cause = node, map[bool]string{true: "unheard"}[node != job.Well]
		now := conditions(h, &job.View{State: state, Cause: cause, Links: 2, Confirmed: 2}, refused, c.lacking(&f, h), c.advice(h), claim.Status.Allocation.AllocationTimestamp.Add(mends*2))
		c.announce(h, now)
		claim.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: h.device.Driver, Pool: h.device.Pool, Device: h.device.Device, Conditions: now}}
		var got []string
		for len(heard.Events) > 0 {
			got = append(got, <-heard.Events)
		}
		var twice []string
		for _, w := range want {
			twice = append(twice, w, w) // of the claim, of the pod
		}
		if !slices.Equal(got, twice) {
			t.Errorf("%s with %s of the node: told %q, want %q", state, node, got, twice)
		}
		for _, e := range got {
			reason := strings.Fields(e)[1]
			if warns, ok := Events[strings.Replace(reason, "Circuits", "Ring", 1)]; !ok || warns != strings.HasPrefix(e, "Warning") {
				t.Errorf("%q is not as Events has it", e)
			}
		}
	}
	const lost = "node n00 is lost: unheard"
	step(job.Waiting, "", job.Well, "Warning RingLost ring-1: another ring is taken")
	step(job.Forming, "", job.Well)
	step(job.Ready, "", job.Well, "Normal RingReady ring-1: light on 2 of 2 links")
	step(job.Degraded, "", job.Lost, "Warning RingLost ring-1: "+lost+": another ring is taken") // no pod has a node
	step(job.Degraded, "", job.Lost)
	pod.Spec.NodeName = "n01"
	step(job.Degraded, "", job.Lost, "Warning RingDegraded ring-1: "+lost+"; "+Stuck)
	pod.Status.Phase = corev1.PodRunning
	step(job.Degraded, "", job.Lost, "Warning RingDegraded ring-1: "+lost+"; "+Short)
	step(job.Down, "", job.Lost, "Warning RingDown ring-1: "+lost+"; "+Short)
	step(job.Ready, "", job.Well, "Normal RingReady ring-1: light on 2 of 2 links")
	step("", "the ring has other nodes", job.Well, "Warning RingLost ring-1: the ring has other nodes: another ring is taken")
	step("", "there is no such ring", job.Well, "Warning RingLost ring-1: there is no such ring: another ring is taken")

	// Circuits: while pods are without nodes the number of these is no news; what the
	// planner waits for is.
	h.circuits, h.nodes, claim.Status.Devices = &job.Circuits{Servers: 2}, nil, nil
	cause = "0 of 2 pods have nodes"
	step(job.Waiting, "", job.Well, "Normal CircuitsWaiting "+cause)
	h.nodes, cause = []job.Name{"n00"}, "1 of 2 pods have nodes"
	step(job.Waiting, "", job.Well)
	h.nodes, cause = []job.Name{"n00", "n01"}, "wants 2 servers, 0 are free for it"
	step(job.Waiting, "", job.Well, "Normal CircuitsWaiting "+cause)
	step(job.Waiting, "", job.Well)
	step(job.Ready, "", job.Well, "Normal CircuitsReady light on 2 of 2 links")
}
