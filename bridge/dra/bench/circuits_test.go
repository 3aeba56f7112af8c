package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ringlight/bridge/dra/controller"
	"ringlight/planner/job"
)

// circuits.yaml asks for this many servers, with this many GPUs a tensor parallel domain.
const servers, asked, domain = 8, 4, 8

// Goal: the pods of circuits.yaml run on a node each, none before all circuits of their
// claim have light, with the ranks that the planner gives; claim and pods are told why
// they wait and that there is light; what is deleted leaves no circuit behind.
// Method: a real API server, scheduler and controller manager; a planner, and agents on
// simulated boards of eight servers joined directly. The manifest as it stands, twice:
// with all servers free, and while an operator's job has them all. At the moment when a
// plugin lets a pod run, light is asked of the planner and of the boards.
func TestPodsGetCircuitsOfARealControlPlane(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := startBench(ctx, t, servers, "-core", "direct", "-servers", fmt.Sprint(servers), "-gpus-per-server", fmt.Sprint(gpus), "-degree", "4")
	until(t, "the planner and all boards", 2*time.Minute, func() bool {
		x, err := b.planner.Topology(ctx)
		_, dark := b.lit()
		return err == nil && len(x.Servers) == servers && dark == nil
	})
	b.k.judge = func(p *corev1.Pod, claim *resourceapi.ResourceClaim, env map[string]string) {
		b.onCircuits(ctx, p, claim, env)
	}
	defer func() {
		b.k.mu.Lock()
		defer b.k.mu.Unlock()
		for _, w := range b.k.wrong {
			t.Error(w)
		}
	}()
	b.control()
	until(t, "the slice of the core", 2*time.Minute, func() bool { return b.agree() == "" })

	began := time.Now()
	b.c.apply(t, "circuits.yaml")
	b.runs(ctx)
	t.Logf("circuits.yaml: %d pods on %v run after %v; claim: %q; events: %q; boards: %s", asked, b.ofJob(ctx), time.Since(began).Round(100*time.Millisecond), b.says(ctx), b.said.of("ResourceClaim", "circuits", "CircuitsReady"), b.light())
	b.ends(ctx)

	// An operator's job has all servers: the claim waits, and is told for what.
	if _, err := b.planner.As("operator").Put(ctx, "all", &job.Wish{Circuits: &job.Circuits{Servers: servers}}); err != nil {
		t.Fatal(err)
	}
	until(t, "light for the operator's job", 2*time.Minute, func() bool {
		v, err := b.planner.Get(ctx, "all")
		return err == nil && v.State == job.Ready
	})
	started := b.k.begun()
	b.c.apply(t, "circuits.yaml")
	until(t, "pods with nodes and a claim that waits for servers", 2*time.Minute, func() bool {
		v, err := b.planner.Get(ctx, controller.JobOf("k8s", b.claim(ctx, "circuits")))
		return err == nil && v.State == job.Waiting && v.Cause != "" && strings.Contains(b.says(ctx), v.Cause)
	})
	why := b.says(ctx)
	b.heard(ctx, "CircuitsWaiting", strings.TrimPrefix(why, "Waiting: "))
	until(t, "plugins that let no pod run", 2*time.Minute, func() bool { return len(b.k.waits("waits for light")) == asked })
	if n := b.k.begun() - started; n != 0 {
		t.Errorf("%d pods ran while no server was free", n)
	}
	t.Logf("all servers taken: pods on %v; claim: %q; kubelet of one: %q", b.ofJob(ctx), why, b.k.waits("waits for light")[0])
	if _, err := b.planner.As("operator").Release(ctx, "all"); err != nil {
		t.Fatal(err)
	}
	b.runs(ctx)
	t.Logf("servers given back: pods run on %v; boards: %s", b.ofJob(ctx), b.light())
	b.ends(ctx)
	if n := b.k.begun(); n != 2*asked {
		t.Errorf("%d pods started, want %d", n, 2*asked)
	}
}

// onCircuits faults a pod that is to run before all light is there, or that is told what
// the planner does not say.
func (b *bench) onCircuits(ctx context.Context, p *corev1.Pod, claim *resourceapi.ResourceClaim, env map[string]string) {
	lit, err := b.lit()
	v, failed := b.planner.Get(ctx, env["RINGLIGHT_JOB"])
	if err != nil || failed != nil {
		b.k.fault("%s: %v, %v", p.Name, err, failed)
		return
	}
	// A link is a circuit of its layer's switch and one of the transceivers.
	if v.State != job.Ready || v.Links == 0 || v.Confirmed != v.Links || lit < 2*v.Links {
		b.k.fault("%s is let run and its job is %s with %d of %d links, %d circuits lit on the boards", p.Name, v.State, v.Confirmed, v.Links, lit)
	}
	var ranks []string
	rank := 0
	for _, d := range v.Circuits.Domains {
		if len(d.GPUs) != domain {
			b.k.fault("%s: a domain of its job has %d GPUs", p.Name, len(d.GPUs))
		}
		for _, g := range d.GPUs {
			if g.Host == p.Spec.NodeName {
				ranks = append(ranks, fmt.Sprint(rank))
			}
			rank++
		}
	}
	if has := claim.Status.Allocation.Devices.Results[0].Pool; has != "core" || env["RINGLIGHT_POSITIONS"] != strings.Join(ranks, ",") || env["RINGLIGHT_FILES"] != "/run/ringlight" || env["RINGLIGHT_RING"] != "" {
		b.k.fault("%s: of pool %s told %v, its ranks are %v", p.Name, has, env, ranks)
	}
}

// lit is how many circuits the boards have light on.
func (b *bench) lit() (int, error) {
	var of struct {
		Lit int `json:"circuits_lit"`
	}
	text, err := boards(b.socket, "light")
	if err != nil {
		return 0, err
	}
	return of.Lit, json.Unmarshal(text, &of)
}

func (b *bench) light() string {
	n, err := b.lit()
	return fmt.Sprintf("%d circuits lit, %v", n, err)
}

// says is condition Ready of the claim.
func (b *bench) says(ctx context.Context) string {
	if d := b.claim(ctx, "circuits").Status.Devices; len(d) == 1 {
		if c := meta.FindStatusCondition(d[0].Conditions, controller.Ready); c != nil {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// ofJob gives the nodes of the Job's pods, by the pods' names.
func (b *bench) ofJob(ctx context.Context) map[string]string {
	all, err := b.c.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "job-name=circuits"})
	if err != nil {
		return nil
	}
	on := map[string]string{}
	for _, p := range all.Items {
		on[p.Name] = p.Spec.NodeName
	}
	return on
}

// heard waits for an event on the claim and on each of its pods.
func (b *bench) heard(ctx context.Context, reason, words string) {
	b.t.Helper()
	has := func(kind, name string) bool {
		return slices.ContainsFunc(b.said.of(kind, name, reason), func(m string) bool { return strings.Contains(m, words) })
	}
	until(b.t, fmt.Sprintf("%s with %q on claim and pods", reason, words), 2*time.Minute, func() bool {
		n := 0
		for pod := range b.ofJob(ctx) { // any order
			if has("Pod", pod) {
				n++
			}
		}
		return n == asked && has("ResourceClaim", "circuits")
	})
}

// runs waits for all pods of the Job to run, each on a node of its own, and for the word.
func (b *bench) runs(ctx context.Context) {
	b.t.Helper()
	still := ""
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Logf("pods: %s", still)
		}
	})
	until(b.t, "pods of circuits on nodes of their own", 3*time.Minute, func() bool {
		all, err := b.c.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "job-name=circuits"})
		if err != nil {
			return false
		}
		on := map[string]bool{}
		for _, p := range all.Items {
			if p.Status.Phase == corev1.PodRunning {
				on[p.Spec.NodeName] = true
			}
		}
		if still = ""; len(on) < asked {
			still = b.stands(ctx, "circuits", all.Items)
		}
		return len(on) == asked
	})
	b.heard(ctx, "CircuitsReady", "light on ")
}

// ends deletes the Job and its claim, and waits until nothing is left, and the circuits
// of its links are dark: transceivers stay as they are.
func (b *bench) ends(ctx context.Context) {
	b.t.Helper()
	before, err := b.lit()
	v, failed := b.planner.Get(ctx, controller.JobOf("k8s", b.claim(ctx, "circuits")))
	if err != nil || failed != nil {
		b.t.Fatal(err, failed)
	}
	how := metav1.DeletePropagationBackground
	if err := b.c.kube.BatchV1().Jobs("default").Delete(ctx, "circuits", metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		b.t.Fatal(err)
	}
	until(b.t, "the end of the pods", 2*time.Minute, func() bool { on := b.ofJob(ctx); return on != nil && len(on) == 0 })
	if err := b.c.kube.ResourceV1().ResourceClaims("default").Delete(ctx, "circuits", metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	until(b.t, "the end of what was asked for, and dark layers", 2*time.Minute, func() bool {
		lit, err := b.lit()
		return b.left() == "" && b.agree() == "" && err == nil && lit <= before-v.Links
	})
	b.t.Logf("deleted: nothing left; boards: %s", b.light())
}

// begun are the pods that were let run so far.
func (k *kubelets) begun() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.started
}

// waits are the refusals of plugins that have these words.
func (k *kubelets) waits(words string) (out []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, why := range k.refused { // any order
		if strings.Contains(why, words) {
			out = append(out, why)
		}
	}
	return out
}
