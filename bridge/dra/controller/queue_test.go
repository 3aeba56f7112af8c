package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	ktesting "k8s.io/client-go/testing"

	"ringlight/planner/job"
)

// Goal: as many demands have a pool each as can have.
// Method: demands whose first choice is another's only one; one too many.
func TestMatchFindsARingForEach(t *testing.T) {
	m := &match{has: map[string]int{}}
	for i, d := range []demand{{"a", "b"}, {"a", "c"}, {"a"}} {
		if !m.add(d) {
			t.Fatalf("demand %d has no pool: %v", i, m.has)
		}
	}
	if m.has["a"] != 2 || len(m.has) != 3 {
		t.Errorf("%v", m.has)
	}
	if m.add(demand{"b", "a"}) || m.add(nil) || len(m.has) != 3 {
		t.Errorf("four demands on three pools pass: %v", m.has)
	}
}

// Goal: workloads are let in whole, the oldest first; what was promised is free no more, by
// a claim's name and by a template, until it is allocated; what asks for no ring passes.
// Method: workloads as Kueue writes them on five rings, one of which a claim has.
func TestWorkloadsAreLetInWhole(t *testing.T) {
	f := fabricOf(5)
	for i := range f.Rings {
		f.Rings[i].State, f.Rings[i].TP, f.Rings[i].GPUs = "in_service", 8, 8
	}
	rings := func(tp int) resourceapi.ResourceClaimSpec {
		return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "ring", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "ringlight",
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf(`device.attributes["ringlight"].tp == %d`, tp)}}}}}}}}
	}
	class := func(name, says string) *resourceapi.DeviceClass {
		return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: says}}}}}
	}
	named := func(name, class string) *resourceapi.ResourceClaim {
		c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: rings(8)}
		c.Spec.Devices.Requests[0].Exactly.DeviceClassName = class
		return c
	}
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "each"}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: rings(8)}}
	kube := cluster(class("ringlight", `device.driver == "ringlight" && device.attributes["ringlight"].ring > 0`), class("nic", `device.driver == "nic"`),
		template, allocated("held", &f.Rings[0]), named("named", "ringlight"), named("nic", "nic"))
	workload := func(at int, name, state, ref string, count int) *unstructured.Unstructured {
		kind := "resourceClaimName"
		if ref == "each" {
			kind = "resourceClaimTemplateName"
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": kueue.String(), "kind": "Workload",
			"metadata": map[string]any{"name": name, "namespace": "default", "uid": name, "creationTimestamp": time.Unix(int64(at), 0).UTC().Format(time.RFC3339)},
			"spec": map[string]any{"podSets": []any{map[string]any{"name": "main", "count": int64(count), "template": map[string]any{"spec": map[string]any{"containers": []any{},
				"resourceClaims": []any{map[string]any{"name": "ring", kind: ref}}}}}}},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
				"admissionChecks": []any{map[string]any{"name": "rings", "state": state, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}}}
	}
	check := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kueue.String(), "kind": "AdmissionCheck", "metadata": map[string]any{"name": "rings"}, "spec": map[string]any{"controllerName": QueueController}}}
	queue := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		kueue.WithResource("admissionchecks"): "AdmissionCheckList", kueue.WithResource("workloads"): "WorkloadList"},
		check, workload(1, "promised", "Ready", "each", 2), workload(2, "large", "Pending", "each", 3), workload(3, "shared", "Pending", "named", 4), workload(4, "late", "Pending", "each", 2), workload(5, "plain", "Pending", "nic", 9))
	var mu sync.Mutex
	said := map[string]string{}
	queue.PrependReactor("patch", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		p := a.(ktesting.PatchAction)
		var x struct {
			Status struct {
				AdmissionChecks []struct{ State, Message string }
				Conditions      []metav1.Condition
			}
		}
		if err := json.Unmarshal(p.GetPatch(), &x); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range x.Status.AdmissionChecks {
			said[p.GetName()] = c.State + " " + c.Message
		}
		for _, c := range x.Status.Conditions {
			said[p.GetName()] = c.Type + " " + string(c.Status)
		}
		return true, &unstructured.Unstructured{Object: map[string]any{}}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Driver: Driver, Cluster: "k8s", Kube: kube, Queue: queue, Planner: &planner{random: rand.New(rand.NewPCG(1, 2)), t: f, jobs: map[string]*job.View{}}, Every: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	told := func(want map[string]string) {
		t.Helper()
		until(t, fmt.Sprint(want), func() bool {
			mu.Lock()
			defer mu.Unlock()

			for name, words := range want { // any order
				if !strings.HasPrefix(said[name], words) {
					return false
				}
			}
			return true
		})
	}
	// Of four rings two are promised: three do not fit, one does, and after it one is left.
	told(map[string]string{"rings": "Active True", "large": "Pending 2 of the 3 rings", "shared": "Ready all 1 rings", "late": "Pending 1 of the 2 rings", "plain": "Ready all 0 rings"})
	if said["promised"] != "" {
		t.Errorf("who has its word is told %q again", said["promised"])
	}
	// One of the promised is allocated, to a pod of the workload: it is taken and no more
	// promised. Another ring goes to a claim of nobody's.
	mine := "p-ring"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: map[string]string{workloadOf: "promised/main"}},
		Status: corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "ring", ResourceClaimName: &mine}}}}
	if _, err := kube.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{mine, "other"} {
		if _, err := kube.ResourceV1().ResourceClaims("default").Create(ctx, allocated(name, &f.Rings[1+i]), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	told(map[string]string{"large": "Pending 1 of the 3 rings", "late": "Pending 0 of the 2 rings"})
}
