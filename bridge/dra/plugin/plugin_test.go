package plugin

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"ringlight/planner/job"
	"ringlight/proto"
)

// planner has one job, whose light comes when it is told.
type planner struct {
	mu    sync.Mutex
	v     job.View
	away  error
	looks chan struct{} // one for each look at it
}

func (p *planner) Get(context.Context, string) (*job.View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.looks <- struct{}{}:
	default:
	}
	v := p.v
	return &v, p.away
}

// File is what the planner would answer, of circuits a file of four ranks.
func (p *planner) File(_ context.Context, id, name string, s job.Split, generation uint64) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id != p.v.ID || generation != p.v.Generation {
		return nil, &proto.Error{Code: proto.Conflict, Field: "generation", Reason: "it has moved on"}
	}
	if p.v.Wish.Circuits != nil {
		return []byte("# job\n0 b 1 0 0\n1 a 1 0 1\n2 a 0 1 0\n3 b 0 1 1\n"), nil
	}
	text, _, err := p.v.File(name, s)
	return text, err
}

func (p *planner) change(f func(*job.View)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.v)
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// node is one with a plugin, of which the test is the kubelet.
type node struct {
	t       *testing.T
	root    string
	kube    *fake.Clientset
	planner *planner
	kubelet dra.DRAPluginClient
	end     func() // of the plugin
}

const uid = "0b6f"

var claims = []*dra.Claim{{Namespace: "default", Name: "c", Uid: uid}}

// held is the claim as the scheduler leaves it, with a ring of nodes a and b.
func held(pool string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", UID: uid},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}}}}},
			Devices:      resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Request: "ring", Driver: "ringlight", Pool: pool, Device: "ring"}}}}}}
}

func newNode(t *testing.T) *node {
	root, err := os.MkdirTemp("", "dra") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for _, d := range []string{"plugins", "reg"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := &node{t: t, root: root, kube: fake.NewClientset(held("ring-3")), planner: &planner{looks: make(chan struct{}), v: job.View{ID: "k8s-" + uid, Generation: 5, State: job.Ready,
		Wish: &job.Wish{TP: 4, Rings: 1, Ring: 3, Nodes: []job.Name{"b", "a"}}, Rings: []job.Ring{{Ring: 3, Nodes: []string{"a", "b"},
			GPUOrder: []job.GPU{{Host: "a", GPU: 1}, {Host: "b", GPU: 0}, {Host: "b", GPU: 1}, {Host: "a", GPU: 0}}}}}}}
	n.begin()
	return n
}

// begin runs the plugin of node a, and registers it as a kubelet does.
func (n *node) begin() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute) // a bound on a hang, on any machine
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(ctx, Config{Driver: "ringlight", Cluster: "k8s", Node: "a", Kube: n.kube, Planner: n.planner, CDI: filepath.Join(n.root, "cdi"),
			Plugins: filepath.Join(n.root, "plugins"), Registry: filepath.Join(n.root, "reg"), Files: filepath.Join(n.root, "files"), Log: slog.New(slog.DiscardHandler)}); err != nil {
			n.t.Error(err)
		}
	})
	n.end = func() { cancel(); running.Wait() }
	n.t.Cleanup(n.end)
	register := registration.NewRegistrationClient(dial(n.t, filepath.Join(n.root, "reg", "ringlight-reg.sock")))
	info, err := register.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		n.t.Fatal(err)
	}
	if info.Type != registration.DRAPlugin || info.Name != "ringlight" || !slices.Contains(info.SupportedVersions, dra.DRAPluginService) {
		n.t.Fatalf("registers as %+v", info)
	}
	if _, err := register.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		n.t.Fatal(err)
	}
	n.kubelet = dra.NewDRAPluginClient(dial(n.t, info.Endpoint))
}

// prepare asks for the claim, for as long as a kubelet that has so much patience.
func (n *node) prepare(patience time.Duration) (*dra.NodePrepareResourceResponse, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	r, err := n.kubelet.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: claims})
	if err != nil {
		return nil, err
	}
	return r.Claims[uid], nil
}

// refuses: the claim is not prepared, for this reason.
func (n *node) refuses(reason string) {
	n.t.Helper()
	r, err := n.prepare(time.Minute)
	if err != nil || !strings.Contains(r.GetError(), reason) {
		n.t.Errorf("prepared: %v, %v; want %s", r, err, reason)
	}
}

// container gives what a runtime's own CDI code makes of a prepared claim.
func (n *node) container(r *dra.NodePrepareResourceResponse) *oci.Spec {
	n.t.Helper()
	if r.GetError() != "" || len(r.GetDevices()) != 1 || r.Devices[0].PoolName != "ring-3" || r.Devices[0].DeviceName != "ring" || !slices.Equal(r.Devices[0].RequestNames, []string{"ring"}) {
		n.t.Fatalf("prepared: %v", r)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Join(n.root, "cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		n.t.Fatal(err)
	}
	if wrong := cache.GetErrors(); len(wrong) > 0 {
		n.t.Fatalf("CDI files: %v", wrong)
	}
	out := &oci.Spec{}
	if unknown, err := cache.InjectDevices(out, r.Devices[0].CdiDeviceIds...); err != nil {
		n.t.Fatalf("devices %v: unknown %v, %v", r.Devices[0].CdiDeviceIds, unknown, err)
	}
	return out
}

// left are the files of claims.
func (n *node) left() (names []string) {
	for _, d := range []string{"cdi", "files"} {
		all, err := os.ReadDir(filepath.Join(n.root, d))
		if err != nil {
			n.t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, d+"/"+e.Name())
		}
	}
	return names
}

func (n *node) unprepare(claims ...*dra.Claim) {
	n.t.Helper()
	r, err := n.kubelet.NodeUnprepareResources(n.t.Context(), &dra.NodeUnprepareResourcesRequest{Claims: claims})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, c := range claims {
		if got, ok := r.Claims[c.Uid]; !ok || got.GetError() != "" {
			n.t.Errorf("given up: %v", r)
		}
	}
}

// Goal: a kubelet that registers the plugin has a claim prepared only once its ring
// has light, with the order of light in files and environment, and nothing of it is
// left afterwards.
// Method: the test is the kubelet, over the sockets, and the runtime, by the CDI
// project's own code; the job has no light at first; everything is asked for twice.
func TestKubeletHasPodsWaitForLight(t *testing.T) {
	n := newNode(t)
	n.planner.change(func(v *job.View) { v.State = job.Forming })
	prepared := make(chan *dra.NodePrepareResourceResponse, 1)
	go func() {
		r, err := n.prepare(time.Minute)
		if err != nil {
			t.Error(err)
		}
		prepared <- r
	}()
	for range 3 { // it looks, and looks again
		select {
		case <-n.planner.looks:
		case r := <-prepared:
			t.Fatalf("prepared without light: %v", r)
		}
	}
	n.planner.change(func(v *job.View) { v.State = job.Ready })
	first := n.container(<-prepared)
	again, err := n.prepare(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if second := n.container(again); !slices.Equal(first.Process.Env, second.Process.Env) || len(n.left()) != 2 {
		t.Errorf("prepared twice: %v and %v, left %v", first.Process.Env, second.Process.Env, n.left())
	}
	for _, want := range []string{"RINGLIGHT_JOB=k8s-0b6f", "RINGLIGHT_RING=3", "RINGLIGHT_TP=4", "RINGLIGHT_POSITIONS=3,0", "RINGLIGHT_GENERATION=5", "RINGLIGHT_FILES=/run/ringlight", "NCCL_ALGO=Ring"} {
		if !slices.Contains(first.Process.Env, want) {
			t.Errorf("no %s in %v", want, first.Process.Env)
		}
	}
	if m := first.Mounts; len(m) != 1 || m[0].Destination != Inside || !slices.Contains(m[0].Options, "ro") {
		t.Fatalf("mounts %+v", m)
	}
	ranks, err := os.ReadFile(filepath.Join(first.Mounts[0].Source, "ranks"))
	if err != nil || !strings.Contains(string(ranks), "3 a 0 0 3\n") {
		t.Errorf("ranks: %s, %v", ranks, err)
	}
	for range 2 {
		n.unprepare(claims...)
	}
	n.unprepare(&dra.Claim{Namespace: "default", Name: "never", Uid: "seen"})
	if left := n.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Goal: no pod gets the files of a ring that is not the one its claim names now.
// Method: the claim or the job are what they may be for a moment, and the kubelet asks.
func TestPluginRefusesAnotherRing(t *testing.T) {
	n := newNode(t)
	claim := func(c *resourceapi.ResourceClaim) {
		if _, err := n.kube.ResourceV1().ResourceClaims("default").Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	n.planner.change(func(v *job.View) { v.Rings = []job.Ring{{Ring: 3, Nodes: []string{"x", "b"}}} })
	n.refuses("its ring 0 is not")
	n.planner.change(func(v *job.View) {
		v.Rings[0].GPUOrder = []job.GPU{{Host: "x", GPU: 0}, {Host: "b", GPU: 0}}
	})
	n.refuses("node a is not of job k8s-0b6f")
	none := held("ring-3")
	none.Status.Allocation = nil
	claim(none)
	if r, err := n.prepare(time.Minute); err == nil {
		t.Errorf("prepared without a ring: %v", r)
	}
	claim(held("ring-5")) // given another ring; its old job is still there
	asked := make(chan *dra.NodePrepareResourceResponse, 1)
	go func() {
		r, err := n.prepare(time.Minute)
		if err != nil {
			t.Error(err)
		}
		asked <- r
	}()
	for range 2 {
		<-n.planner.looks
	}
	n.planner.change(func(v *job.View) { // the controller has given that back, and asked for the other
		v.Wish = &job.Wish{TP: 4, Rings: 1, Ring: 5, Nodes: v.Wish.Nodes}
		v.Rings = []job.Ring{{Ring: 5, Nodes: []string{"a", "b"}, GPUOrder: []job.GPU{{Host: "a", GPU: 0}, {Host: "a", GPU: 1}}}}
	})
	if r := <-asked; r.GetError() != "" || r.Devices[0].PoolName != "ring-5" {
		t.Errorf("prepared: %v", r)
	}
	n.planner.change(func(v *job.View) { v.ID = "gone" })
	n.planner.mu.Lock()
	n.planner.away = &proto.Error{Code: proto.Denied, Reason: "no certificate"}
	n.planner.mu.Unlock()
	n.refuses("no certificate")
}

// Goal: a pod that shares circuits has the ranks of its node once they have light.
// Method: a claim for circuits; the job is one of rings first, then of circuits.
func TestPodsOfCircuitsHaveRanks(t *testing.T) {
	n := newNode(t)
	claim := held("core")
	claim.Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "ringlight", Parameters: runtime.RawExtension{Raw: []byte(`{"servers":2}`)}}}}}
	if _, err := n.kube.ResourceV1().ResourceClaims("default").Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	asked := make(chan *dra.NodePrepareResourceResponse, 1)
	go func() {
		r, err := n.prepare(time.Minute)
		if err != nil {
			t.Error(err)
		}
		asked <- r
	}()
	for range 2 {
		<-n.planner.looks
	}
	n.planner.change(func(v *job.View) {
		v.Wish, v.Rings = &job.Wish{Circuits: &job.Circuits{Servers: 2}, Nodes: []job.Name{"a", "b"}}, nil
	})
	r := <-asked
	if r.GetError() != "" || r.Devices[0].PoolName != "core" {
		t.Fatalf("prepared: %v", r)
	}
	text, err := os.ReadFile(filepath.Join(n.root, "cdi", "ringlight-"+uid+".json"))
	if err != nil || !strings.Contains(string(text), `"RINGLIGHT_POSITIONS=2,1"`) || strings.Contains(string(text), "RINGLIGHT_RING") {
		t.Errorf("CDI file: %s, %v", text, err)
	}
}

// Goal: a plugin may end at any moment; the kubelet has the next one do the rest.
// Method: it ends while a claim waits for light, and between preparing and giving up.
func TestPluginMayEnd(t *testing.T) {
	n := newNode(t)
	n.planner.change(func(v *job.View) { v.State = job.Forming })
	broken := make(chan error, 1)
	go func() {
		_, err := n.prepare(time.Minute)
		broken <- err
	}()
	<-n.planner.looks
	n.end()
	if <-broken == nil {
		t.Error("prepared by a plugin that ended")
	}
	if left := n.left(); len(left) > 0 {
		t.Errorf("left of a claim that was not prepared: %v", left)
	}
	n.planner.change(func(v *job.View) { v.State = job.Ready })
	n.begin()
	r, err := n.prepare(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	before := n.container(r)
	n.end()
	n.begin()
	if r, err = n.prepare(time.Minute); err != nil {
		t.Fatal(err)
	}
	if after := n.container(r); !slices.Equal(before.Process.Env, after.Process.Env) {
		t.Errorf("%v, before %v", after.Process.Env, before.Process.Env)
	}
	n.end()
	n.begin()
	n.unprepare(claims...)
	if left := n.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
