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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/cel"

	"ringlight/planner/job"
)

// QueueController is how an AdmissionCheck of Kueue calls this one.
const QueueController = "ringlight/ocs-dra"

// workloadOf is the annotation, with the name of their workload, of pods that were admitted.
const workloadOf = "ringlight/workload"

var kueue = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}

// workload is what counts of Kueue's.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodSets []struct {
			Name     string                 `json:"name"`
			Count    int                    `json:"count"`
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions      []metav1.Condition `json:"conditions"`
		AdmissionChecks []struct {
			Name    string `json:"name"`
			State   string `json:"state"`
			Message string `json:"message"`
		} `json:"admissionChecks"`
		ReclaimablePods []struct {
			Name  string `json:"name"`
			Count int    `json:"count"`
		} `json:"reclaimablePods"`
	} `json:"status"`
}

// demand is what one claim of a workload may be given: any of these pools.
type demand []string

// admit sees to the workloads of a queue that waits for rings. Each gets its word when as
// many rings as all its claims need are free at once, the oldest first; what was promised
// and is not yet allocated is free no more.
func (c *controller) admit(ctx context.Context) error {
	checks, err := c.Queue.Resource(kueue.WithResource("admissionchecks")).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // no Kueue here
	} else if err != nil {
		return err
	}
	var errs []error
	mine := map[string]bool{}
	for i := range checks.Items {
		name, _, _ := unstructured.NestedString(checks.Items[i].Object, "spec", "controllerName")
		if name == QueueController {
			mine[checks.Items[i].GetName()] = true
			errs = append(errs, c.active(ctx, &checks.Items[i]))
		}
	}
	if len(mine) == 0 {
		return errors.Join(errs...)
	}
	t, err := c.Planner.Topology(ctx)
	if err != nil {
		return err
	}
	list, err := c.Queue.Resource(kueue.WithResource("workloads")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var all []*workload
	for i := range list.Items {
		w := &workload{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, w); err != nil {
			return err
		}
		is := func(kind string) bool { return meta.IsStatusConditionTrue(w.Status.Conditions, kind) }
		if is("QuotaReserved") && !is("Finished") && !is("Evicted") && w.check(mine) >= 0 {
			all = append(all, w)
		}
	}
	ready := func(w *workload) int {
		if w.Status.AdmissionChecks[w.check(mine)].State == "Ready" {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b *workload) int {
		return cmp.Or(ready(a)-ready(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(string(a.UID), string(b.UID)))
	})
	free, err := c.free(t)
	if err != nil {
		return err
	}
	m := &match{has: map[string]int{}}
	for _, w := range all {
		need, err := c.needs(ctx, w, t)
		if err != nil {
			errs = append(errs, fmt.Errorf("workload %s/%s: %w", w.Namespace, w.Name, err))
			continue
		}
		got, before := 0, m.clone()
		for _, d := range need {
			if m.add(slices.DeleteFunc(d, func(pool string) bool { return !free[pool] })) {
				got++
			}
		}
		switch {
		case ready(w) == 0:
		case got < len(need):
			m = before
			errs = append(errs, c.say(ctx, w, mine, "Pending", fmt.Sprintf("%d of the %d rings that it needs are free and whole", got, len(need))))
		default:
			errs = append(errs, c.say(ctx, w, mine, "Ready", fmt.Sprintf("all %d rings that it needs are free and whole", len(need))))
		}
	}
	return errors.Join(errs...)
}

// check is the place of the check that is ours; -1: none.
func (w *workload) check(mine map[string]bool) int {
	for i, s := range w.Status.AdmissionChecks {
		if mine[s.Name] {
			return i
		}
	}
	return -1
}

// free are the pools that a claim may be given now.
func (c *controller) free(t *job.Topology) (map[string]bool, error) {
	out := map[string]bool{}
	for _, r := range t.Rings {
		out[poolOf(&r)] = r.Job == "" && len(r.Nodes) > 0 && len(taints(&r, c.ours)) == 0
	}
	all, err := c.claims.List(labels.Everything())
	for _, claim := range all {
		if h := HeldBy(c.Driver, claim); h != nil {
			delete(out, h.device.Pool)
		}
	}
	return out, err
}

// needs are the claims of a workload that have no ring yet, and which pools each may get.
func (c *controller) needs(ctx context.Context, w *workload, t *job.Topology) (out []demand, err error) {
	named := map[string]bool{}
	for _, set := range w.Spec.PodSets {
		for _, ref := range set.Template.Spec.ResourceClaims {
			var spec resourceapi.ResourceClaimSpec
			count := 1
			if name := ref.ResourceClaimName; name != nil {
				claim, err := c.claims.ResourceClaims(w.Namespace).Get(*name)
				if err != nil {
					return nil, err
				}
				if named[*name] || claim.Status.Allocation != nil {
					continue
				}
				named[*name], spec = true, claim.Spec
			} else {
				from, err := c.Kube.ResourceV1().ResourceClaimTemplates(w.Namespace).Get(ctx, *ref.ResourceClaimTemplateName, metav1.GetOptions{})
				if err != nil {
					return nil, err
				}
				spec, count = from.Spec.Spec, set.Count
				for _, r := range w.Status.ReclaimablePods {
					if r.Name == set.Name {
						count -= r.Count
					}
				}
				given, err := c.given(w, set.Name, ref.Name)
				if err != nil {
					return nil, err
				}
				count -= given
			}
			for _, r := range spec.Devices.Requests {
				d, err := c.pools(ctx, t, &r)
				if err != nil {
					return nil, err
				}
				for i := 0; d != nil && i < count; i++ {
					out = append(out, slices.Clone(d))
				}
			}
		}
	}
	return out, nil
}

// given counts the pods of a set that have a ring already by a claim of their own.
func (c *controller) given(w *workload, set, ref string) (n int, err error) {
	pods, err := c.pods.Pods(w.Namespace).List(labels.Everything())
	for _, p := range pods {
		if p.Annotations[workloadOf] != w.Name+"/"+set {
			continue
		}
		for _, s := range p.Status.ResourceClaimStatuses {
			if s.Name != ref || s.ResourceClaimName == nil {
				continue
			}
			if claim, err := c.claims.ResourceClaims(w.Namespace).Get(*s.ResourceClaimName); err == nil && claim.Status.Allocation != nil {
				n++
			}
		}
	}
	return n, err
}

var expressions = cel.NewCache(64, cel.Features{})

// pools are those whose ring answers a request; nil: it asks for no ring at all.
func (c *controller) pools(ctx context.Context, t *job.Topology, r *resourceapi.DeviceRequest) (demand, error) {
	if r.Exactly == nil {
		return nil, errors.New("a request for the first that is available cannot be counted")
	}
	class, err := c.Kube.ResourceV1().DeviceClasses().Get(ctx, r.Exactly.DeviceClassName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	tors, any := torsOf(t), job.FabricRing{Ring: 1, Nodes: []string{""}} // a class is for rings though there be none
	ours, out := fits(ctx, c.Driver, attributes(&any, nil), class.Spec.Selectors), demand{}
	for _, ring := range t.Rings {
		if len(ring.Nodes) == 0 {
			continue
		}
		if a := attributes(&ring, tors); fits(ctx, c.Driver, a, class.Spec.Selectors) {
			if ours = true; fits(ctx, c.Driver, a, r.Exactly.Selectors) {
				out = append(out, poolOf(&ring))
			}
		}
	}
	if !ours {
		return nil, nil
	}
	return out, nil
}

// fits: a device is what all of these ask for. What a device lacks it is not.
func fits(ctx context.Context, driver string, a map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, all []resourceapi.DeviceSelector) bool {
	return !slices.ContainsFunc(all, func(s resourceapi.DeviceSelector) bool {
		x := expressions.GetOrCompile(s.CEL.Expression) // one that is wrong the API server refuses
		if x.Error != nil {
			return true
		}
		is, _, err := x.DeviceMatches(ctx, cel.Device{Driver: driver, Attributes: a})
		return err != nil || !is
	})
}

// say writes the word of the check, and how pods will be known by it.
func (c *controller) say(ctx context.Context, w *workload, mine map[string]bool, state, message string) error {
	s := w.Status.AdmissionChecks[w.check(mine)]
	if s.State == state && s.Message == message {
		return nil
	}
	word := map[string]any{"name": s.Name, "state": state, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	if state == "Ready" {
		var sets []any
		for _, p := range w.Spec.PodSets {
			sets = append(sets, map[string]any{"name": p.Name, "annotations": map[string]any{workloadOf: w.Name + "/" + p.Name}})
		}
		word["podSetUpdates"] = sets
	}
	return c.apply(ctx, "workloads", w.Namespace, "Workload", w.Name, map[string]any{"admissionChecks": []any{word}})
}

// active says of a check that somebody sees to it.
func (c *controller) active(ctx context.Context, check *unstructured.Unstructured) error {
	var now struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(check.Object, &now); err != nil || meta.IsStatusConditionTrue(now.Status.Conditions, "Active") {
		return err
	}
	return c.apply(ctx, "admissionchecks", "", "AdmissionCheck", check.GetName(), map[string]any{"conditions": []any{map[string]any{
		"type": "Active", "status": "True", "reason": "Active", "message": "its controller looks at the planner's rings", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}})
}

func (c *controller) apply(ctx context.Context, resource, namespace, kind, name string, status map[string]any) error {
	_, err := c.Queue.Resource(kueue.WithResource(resource)).Namespace(namespace).ApplyStatus(ctx, name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kueue.String(), "kind": kind, "metadata": map[string]any{"name": name}, "status": status}}, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// match gives demands pools, one each, by augmenting paths.
type match struct {
	demands []demand
	has     map[string]int // by pool: whose it is
}

func (m *match) clone() *match {
	return &match{slices.Clone(m.demands), maps.Clone(m.has)}
}

// add says whether there is a pool for one more.
func (m *match) add(d demand) bool {
	m.demands = append(m.demands, d)
	return m.place(len(m.demands)-1, map[string]bool{})
}

func (m *match) place(i int, tried map[string]bool) bool {
	for _, pool := range m.demands[i] {
		if tried[pool] {
			continue
		}
		tried[pool] = true
		if other, taken := m.has[pool]; !taken || m.place(other, tried) {
			m.has[pool] = i
			return true
		}
	}
	return false
}
