package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1"

	"ringlight/planner/job"
	"ringlight/proto"
)

// patience is how long a ring may have no place before the scheduler is told to
// take another. chosen: a planner that has room finds it in its next step; slices
// are at most two seconds old.
const patience = 3 * time.Second

// mends is how long one that is short of nodes or light may be mended before that.
// chosen: a spare takes a place within seconds.
const mends = 15 * time.Second

// hasPods is why a ring is not lost: a pod has a node by it, and may have begun.
const hasPods = "HasPods"

// JobOf is the name of the job that holds a claim's ring.
func JobOf(cluster string, claim *resourceapi.ResourceClaim) string {
	return cluster + "-" + string(claim.UID)
}

// Owner is who a cluster is with the planner.
func Owner(cluster string) string { return "kubernetes/" + cluster }

// ours says whether an owner of jobs is this cluster.
func (c *Config) ours(owner string) bool { return owner == Owner(c.Cluster) }

// Held is a claim that was given a ring, or circuits of a core.
type Held struct {
	claim    *resourceapi.ResourceClaim
	device   *resourceapi.DeviceRequestAllocationResult
	ring     proto.RingID
	circuits *job.Circuits // in place of a ring: what its parameters say
	nodes    []job.Name    // of the ring when it was given; of circuits its pods'
	wrong    string        // what cannot be served about it
}

// HeldBy gives what a claim holds; nil: no ring.
func HeldBy(driver string, claim *resourceapi.ResourceClaim) *Held {
	if claim.Status.Allocation == nil {
		return nil
	}
	var h *Held
	for i, r := range claim.Status.Allocation.Devices.Results {
		switch {
		case r.Driver != driver || r.AdminAccess != nil && *r.AdminAccess: // who watches a ring takes none
		case h != nil:
			h.wrong = "a claim has one ring, or circuits once; for several, make several claims"
		default:
			h = &Held{claim: claim, device: &claim.Status.Allocation.Devices.Results[i]}
		}
	}
	if h == nil {
		return nil
	}
	if h.device.Pool == core {
		h.parse(driver)
		return h
	}
	if s := claim.Status.Allocation.NodeSelector; s != nil && len(s.NodeSelectorTerms) == 1 {
		for _, e := range s.NodeSelectorTerms[0].MatchExpressions {
			if e.Key != hostname {
				continue
			}
			for _, n := range e.Values {
				h.nodes = append(h.nodes, job.Name(n))
			}
		}
	}
	if slices.Sort(h.nodes); len(h.nodes) == 0 {
		h.wrong = "its allocation names no nodes"
	}
	if h.ring = ringOf(h.device.Pool); h.ring == 0 {
		h.wrong = "its allocation names no ring"
	}
	return h
}

// parse reads which circuits a claim asks for: those of a wish, with the number of servers.
func (h *Held) parse(driver string) {
	h.circuits = &job.Circuits{}
	for _, x := range h.claim.Status.Allocation.Devices.Config { // a claim's after its class's
		if x.Opaque == nil || x.Opaque.Driver != driver {
			continue
		}
		h.circuits = &job.Circuits{}
		if err := proto.DecodeFile(x.Opaque.Parameters.Raw, h.circuits); err != nil {
			h.wrong = fmt.Sprintf("its parameters are not what circuits have in a wish: %v", err)
		}
	}
	if h.circuits.Servers == 0 {
		h.wrong = cmp.Or(h.wrong, "its parameters name no servers: a pod on each, before there are circuits")
	}
}

// seat finds the nodes of the pods that share the circuits of a claim.
func (c *controller) seat(h *Held) {
	for _, p := range c.sharers(h) {
		if p.Spec.NodeName != "" && !slices.Contains(h.nodes, job.Name(p.Spec.NodeName)) {
			h.nodes = append(h.nodes, job.Name(p.Spec.NodeName))
		}
	}
	if slices.Sort(h.nodes); len(h.nodes) > int(h.circuits.Servers) {
		h.wrong = cmp.Or(h.wrong, fmt.Sprintf("its pods are on %d nodes, its parameters say servers %d", len(h.nodes), h.circuits.Servers))
	}
}

// lacks: circuits wait for pods that have no node yet.
func (h *Held) lacks() bool { return h.circuits != nil && len(h.nodes) < int(h.circuits.Servers) }

// Is says whether a job is the one for a claim as it is allocated now. A ring is its
// number and its nodes: a claim keeps the name of one that was formed anew meanwhile.
// Circuits stay while a pod ends, until there are as many on other nodes.
func (h *Held) Is(v *job.View) bool {
	return v.Wish != nil && v.Wish.Ring == h.ring && (v.Wish.Circuits != nil) == (h.circuits != nil) &&
		(h.lacks() || slices.Equal(slices.Sorted(slices.Values(v.Wish.Nodes)), h.nodes))
}

func (h *Held) String() string { return fmt.Sprintf("%s of nodes %v", h.device.Pool, h.nodes) }

// settle releases jobs whose claims are gone, asks for those that are lacking, and
// tells the claims how their rings stand.
func (c *controller) settle(ctx context.Context, t *job.Topology, jobs []*job.View) error {
	var errs []error
	have := map[string]*job.View{}
	for _, v := range jobs {
		if c.ours(v.Wish.Owner) {
			have[v.ID] = v
		}
	}
	all, err := c.claims.List(labels.Everything())
	if err != nil {
		return err
	}
	want := c.wanted(all)
	stale := func(id string, want map[string]*Held) bool { return want[id] == nil || !want[id].Is(have[id]) }
	var gone []string
	for id := range have { // sorted below
		if stale(id, want) {
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 { // what was heard of the claims may be late: a ring is given back on the API server's own word
		now, err := c.Kube.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		all = all[:0]
		for i := range now.Items {
			all = append(all, &now.Items[i])
		}
		want = c.wanted(all)
	}
	slices.Sort(gone)
	for _, id := range gone {
		if !stale(id, want) {
			continue
		}
		if _, err := c.Planner.Release(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("release job %s: %w", id, err))
			continue
		}
		c.Log.Info("job released", "job", id)
		delete(have, id)
	}
	for _, h := range sorted(want) {
		if err := c.serve(ctx, t, h, have[JobOf(c.Cluster, h.claim)]); err != nil {
			errs = append(errs, fmt.Errorf("claim %s/%s: %w", h.claim.Namespace, h.claim.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *controller) wanted(claims []*resourceapi.ResourceClaim) map[string]*Held {
	want := map[string]*Held{}
	for _, claim := range claims {
		if h := HeldBy(c.Driver, claim); h != nil {
			if h.circuits != nil {
				c.seat(h)
			}
			want[JobOf(c.Cluster, claim)] = h
		}
	}
	return want
}

// sorted are the claims by age: who came first is asked for first.
func sorted(want map[string]*Held) []*Held {
	return slices.SortedFunc(maps.Values(want), func(a, b *Held) int {
		return cmp.Or(a.claim.CreationTimestamp.Compare(b.claim.CreationTimestamp.Time), strings.Compare(string(a.claim.UID), string(b.claim.UID)))
	})
}

// serve sees to the job of one claim.
func (c *controller) serve(ctx context.Context, t *job.Topology, h *Held, v *job.View) (err error) {
	refused := h.wrong
	if v == nil && refused == "" && h.lacks() {
		v = &job.View{State: job.Waiting, Cause: fmt.Sprintf("%d of %d pods have nodes", len(h.nodes), h.circuits.Servers)}
	}
	if v == nil && refused == "" {
		w := &job.Wish{Circuits: h.circuits, Nodes: h.nodes, Owner: Owner(c.Cluster)}
		if h.circuits == nil {
			w.TP, w.Rings, w.Ring = len(h.nodes)*t.GPUsPerNode, 1, h.ring
		}
		id := JobOf(c.Cluster, h.claim)
		if v, err = c.Planner.Put(ctx, id, w); err != nil {
			if wire := (*proto.Error)(nil); !errors.As(err, &wire) || wire.Code != proto.Invalid && wire.Code != proto.Conflict {
				return err // it is asked again
			}
			refused = err.Error()
		} else {
			c.Log.Info("job asked for", "job", id, "claim", h.claim.Namespace+"/"+h.claim.Name, "has", h)
		}
	}
	now := conditions(h, v, refused, c.lacking(t, h), c.advice(h), time.Now())
	c.announce(h, now)
	return c.tell(ctx, h, now)
}

// sharers are the pods that a claim is reserved for.
func (c *controller) sharers(h *Held) (out []*corev1.Pod) {
	for _, r := range h.claim.Status.ReservedFor {
		if p, err := c.pods.Pods(h.claim.Namespace).Get(r.Name); err == nil && p.UID == r.UID {
			out = append(out, p)
		}
	}
	return out
}

// lacking names those nodes of a claim's ring that are not well, and why.
func (c *controller) lacking(t *job.Topology, h *Held) string {
	var out []string
	for _, n := range t.Nodes {
		if n.State != job.Well && slices.Contains(h.nodes, job.Name(n.Host)) {
			out = append(out, strings.TrimSuffix(fmt.Sprintf("node %s is %s: %s", n.Host, n.State, n.Cause), ": "))
		}
	}
	return strings.Join(out, "; ")
}

// conditions say how a claim's ring stands, or its circuits, which are never lost to others:
// lacking are its nodes that are not well; with an advice a pod may have begun on it.
func conditions(h *Held, v *job.View, refused, lacking, advice string, now time.Time) []metav1.Condition {
	ready := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse}
	lost := metav1.Condition{Type: RingLost, Status: metav1.ConditionFalse, Reason: "HasItsPlace"}
	if refused != "" {
		ready.Reason, ready.Message = "Refused", refused
		lost.Status, lost.Reason, lost.Message = metav1.ConditionTrue, "Refused", refused
		return []metav1.Condition{ready, lost}
	}
	state := string(v.State)
	ready.Reason, ready.Message = strings.ToUpper(state[:1])+state[1:], v.Cause
	if short := v.State == job.Degraded || v.State == job.Down || v.State == job.Forming; short && lacking != "" {
		if ready.Message = lacking; advice != "" && v.State != job.Forming {
			ready.Message += "; " + advice
		}
	}
	if v.State == job.Ready {
		ready.Status, ready.Message = metav1.ConditionTrue, fmt.Sprintf("light on %d of %d links", v.Confirmed, v.Links)
	}
	if h.circuits != nil {
		return []metav1.Condition{ready}
	}
	age := time.Duration(0)
	if given := h.claim.Status.Allocation.AllocationTimestamp; given != nil {
		age = now.Sub(given.Time)
	}
	switch {
	case v.State == job.Ready:
	case advice != "" && v.State != job.Waiting:
		lost.Reason = hasPods
	case v.State == job.Waiting && age > patience, (v.State == job.Down || v.State == job.Degraded || v.State == job.Forming && lacking != "") && age > mends:
		lost.Status, lost.Reason, lost.Message = metav1.ConditionTrue, ready.Reason, ready.Message
	}
	return []metav1.Condition{ready, lost}
}

// told are the conditions that the claim has.
func (h *Held) told() []metav1.Condition {
	for _, d := range h.claim.Status.Devices {
		if d.Driver == h.device.Driver && d.Pool == h.device.Pool && d.Device == h.device.Device {
			return d.Conditions
		}
	}
	return nil
}

// tell writes conditions that differ from those the claim has.
func (c *controller) tell(ctx context.Context, h *Held, now []metav1.Condition) error {
	before, same := h.told(), true
	d := resourceapply.AllocatedDeviceStatus().WithDriver(h.device.Driver).WithPool(h.device.Pool).WithDevice(h.device.Device)
	for _, n := range now {
		since := metav1.Now()
		i := slices.IndexFunc(before, func(b metav1.Condition) bool { return b.Type == n.Type })
		if i >= 0 && before[i].Status == n.Status {
			since = before[i].LastTransitionTime
		}
		same = same && i >= 0 && before[i].Status == n.Status && before[i].Reason == n.Reason && before[i].Message == n.Message
		d.WithConditions(metaapply.Condition().WithType(n.Type).WithStatus(n.Status).WithReason(n.Reason).WithMessage(n.Message).WithLastTransitionTime(since))
	}
	if same {
		return nil
	}
	a := resourceapply.ResourceClaim(h.claim.Name, h.claim.Namespace).WithUID(h.claim.UID).
		WithStatus(resourceapply.ResourceClaimStatus().WithDevices(d))
	_, err := c.Kube.ResourceV1().ResourceClaims(h.claim.Namespace).ApplyStatus(ctx, a, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}
