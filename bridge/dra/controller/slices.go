package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"ringlight/planner/job"
	"ringlight/proto"
)

// Conditions of an allocated ring, in the claim's status. The scheduler waits for
// Ready before it binds the first pod, and takes another ring where RingLost is true.
const (
	Ready    = "Ready"
	RingLost = "RingLost"
)

// Taints of rings that no claim is to get.
const (
	taintState    = "ringlight/state"    // light does not close it, or some link is not confirmed
	taintDegraded = "ringlight/degraded" // it has fewer GPUs than it is to have
	taintJob      = "ringlight/job"      // somebody has it whom this cluster does not know
)

// device is the one device of a ring's pool.
const device = "ring"

// hostname is the label that slices choose nodes by.
const hostname = "kubernetes.io/hostname"

// pool is what pools are called by, with a ring's number: a claim that was given one
// names it so as long as it lives.
const pool = "ring-"

func poolOf(r *job.FabricRing) string { return pool + strconv.FormatUint(uint64(r.Ring), 10) }

// ringOf is the ring of a pool, 0: none.
func ringOf(name string) proto.RingID {
	number, ok := strings.CutPrefix(name, pool)
	id, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil {
		return 0
	}
	return proto.RingID(id)
}

// core is the pool of the circuits of a core. Each of its devices is a job on any of its
// servers: which, the pods say that share the claim, once they have nodes.
const core, maxJobs = "core", resourceapi.ResourceSliceMaxDevices

// Rings gives a pool for each ring: one device, which the ring's nodes see. A core has one
// for all its circuits, whose attributes are those of a ring of number 0.
func Rings(t *job.Topology, ours func(owner string) bool) map[string]resourceslice.Pool {
	tors := torsOf(t)
	pools := map[string]resourceslice.Pool{}
	for _, r := range t.Rings {
		if len(r.Nodes) == 0 {
			continue
		}
		d := resourceapi.Device{Name: device, Attributes: attributes(&r, tors), Taints: taints(&r, ours),
			BindingConditions: []string{Ready}, BindingFailureConditions: []string{RingLost}}
		pools[poolOf(&r)] = resourceslice.Pool{
			Generation:   int64(r.Generation), // grows whenever the ring's members do not stay
			NodeSelector: on(r.Nodes), Slices: []resourceslice.Slice{{Devices: []resourceapi.Device{d}}},
		}
	}
	if len(t.Servers) > 0 {
		var hosts []string
		for _, s := range t.Servers {
			hosts = append(hosts, s.Host)
		}
		var jobs []resourceapi.Device
		for n := range min(len(hosts), maxJobs) {
			jobs = append(jobs, resourceapi.Device{Name: fmt.Sprintf("job-%d", n), Attributes: attributes(&job.FabricRing{Nodes: hosts}, nil)})
		}
		pools[core] = resourceslice.Pool{NodeSelector: on(hosts), Slices: []resourceslice.Slice{{Devices: jobs}}}
	}
	return pools
}

// torsOf are the switches above those nodes of which the fabric says so.
func torsOf(t *job.Topology) map[string]int {
	tors := map[string]int{}
	for _, n := range t.Nodes {
		if n.ToR != nil {
			tors[n.Host] = *n.ToR
		}
	}
	return tors
}

// on selects nodes by their names.
func on(hosts []string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: hostname, Operator: corev1.NodeSelectorOpIn, Values: slices.Sorted(slices.Values(hosts))}}}}}
}

func attributes(r *job.FabricRing, tors map[string]int) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	number := func(n int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: &n} }
	out := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"ring": number(int64(r.Ring)), "generation": number(int64(r.Generation)), "state": {StringValue: &r.State},
		"tp": number(int64(r.TP)), "gpus": number(int64(r.GPUs)), "nodes": number(int64(len(r.Nodes)))}
	tor, known := tors[r.Nodes[0]]
	for _, n := range r.Nodes {
		known = known && tors[n] == tor
	}
	if known {
		out["tor"] = number(int64(tor)) // of a ring whose nodes share one
	}
	return out
}

func taints(r *job.FabricRing, ours func(owner string) bool) (out []resourceapi.DeviceTaint) {
	add := func(key, value string) {
		out = append(out, resourceapi.DeviceTaint{Key: key, Value: value, Effect: resourceapi.DeviceTaintEffectNoSchedule})
	}
	if r.State != proto.RingInService.String() {
		add(taintState, r.State)
	}
	if r.GPUs < r.TP {
		add(taintDegraded, fmt.Sprint(r.GPUs))
	}
	if r.Job != "" && !ours(r.Owner) {
		add(taintJob, "")
	}
	return out
}
