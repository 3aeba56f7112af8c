package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// queue: the API server takes the examples of Kueue, JobSet and LeaderWorkerSet by those
// projects' own definitions, RINGLIGHT_CRDS: their folders; and workloads are let in whole,
// the oldest first, as rings are free. What Kueue writes of a workload the test writes.
func (b *bench) queue(ctx context.Context) {
	t := b.t
	dirs := strings.Fields(os.Getenv("RINGLIGHT_CRDS"))
	if len(dirs) == 0 {
		t.Log("no definitions of Kueue, JobSet and LeaderWorkerSet here: their examples are not judged")
		return
	}
	anything := dynamic.NewForConfigOrDie(b.c.cfg)
	crds := anything.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no definitions, %v", dir, err)
		}
		b.c.apply(t, files...)
	}
	until(t, "the definitions of others", time.Minute, func() bool {
		list, err := crds.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		for _, x := range list.Items {
			conditions, _, _ := unstructured.NestedSlice(x.Object, "status", "conditions")
			if !strings.Contains(fmt.Sprint(conditions), "status:True type:Established") {
				return false
			}
		}
		return true
	})
	b.c.apply(t, "queue.yaml", "jobset.yaml", "lws.yaml")
	kueue := schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	until(t, "an active AdmissionCheck", time.Minute, func() bool {
		x, err := anything.Resource(kueue.WithResource("admissionchecks")).Get(ctx, "rings", metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(x.Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(conditions), "status:True type:Active")
	})
	workloads := anything.Resource(kueue.WithResource("workloads")).Namespace("default")
	asks := func(name string, rings int) {
		var sets, given []any
		for i := range rings {
			claim := b.ring.DeepCopy()
			claim.Name, claim.Labels = fmt.Sprintf("%s-%d", name, i), nil
			if _, err := b.c.kube.ResourceV1().ResourceClaims("default").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			pod := b.pod.DeepCopy()
			pod.Spec.ResourceClaims[0].ResourceClaimName = &claim.Name
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
			if err != nil {
				t.Fatal(err)
			}
			set := fmt.Sprintf("ring-%d", i)
			sets = append(sets, map[string]any{"name": set, "count": int64(tp / gpus), "template": map[string]any{"spec": spec}})
			given = append(given, map[string]any{"name": set, "count": int64(tp / gpus)})
		}
		w, err := workloads.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": kueue.String(), "kind": "Workload", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"queueName": "rings", "podSets": sets}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().UTC().Format(time.RFC3339)
		w.Object["status"] = map[string]any{"admission": map[string]any{"clusterQueue": "rings", "podSetAssignments": given},
			"conditions":      []any{map[string]any{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "", "lastTransitionTime": now}},
			"admissionChecks": []any{map[string]any{"name": "rings", "state": "Pending", "message": "", "lastTransitionTime": now}}}
		if _, err := workloads.UpdateStatus(ctx, w, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(name, state, message string) {
		t.Helper()
		last := ""
		until(t, "word to workload "+name, time.Minute, func() bool {
			w, err := workloads.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			checks, _, _ := unstructured.NestedSlice(w.Object, "status", "admissionChecks")
			last = fmt.Sprint(checks...)
			return strings.Contains(last, "state:"+state) && strings.Contains(last, message)
		})
		t.Logf("workload %s: %s", name, last)
	}
	const first = 8
	asks("first", first)
	told("first", "Ready", fmt.Sprintf("all %d rings", first))
	asks("second", large-first+1)
	told("second", "Pending", fmt.Sprintf("%d of the %d rings", large-first, large-first+1))
	if err := workloads.Delete(ctx, "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	told("second", "Ready", fmt.Sprintf("all %d rings", large-first+1))
	if err := workloads.Delete(ctx, "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.c.kube.ResourceV1().ResourceClaims("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of what was queued", time.Minute, func() bool {
		all, err := b.c.kube.ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(all.Items) == 0
	})
}
