package plugin

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"ringlight/planner/job"
)

// planner has one job, whose light comes when it is told.
type planner struct {
	mu    sync.Mutex
	v     job.View
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
	return &v, nil
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

// Goal: a kubelet that registers the plugin has a claim prepared only once its ring
// has light, with the order of light in files and environment, and nothing of it is
// left afterwards.
// Method: the test is the kubelet, over the sockets; the job has no light at first;
// everything is asked for twice.
func TestKubeletHasPodsWaitForLight(t *testing.T) {
	root, err := os.MkdirTemp("", "dra") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	for _, d := range []string{"plugins", "reg"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", UID: "0b6f"},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "ring", Driver: "ringlight", Pool: "ring-3", Device: "ring"}}}}}}
	p := &planner{looks: make(chan struct{}), v: job.View{ID: "k8s-0b6f", Generation: 5, State: job.Forming, Rings: []job.Ring{{Ring: 3, Nodes: []string{"a", "b"},
		GPUOrder: []job.GPU{{Host: "a", GPU: 1}, {Host: "b", GPU: 0}, {Host: "b", GPU: 1}, {Host: "a", GPU: 0}}}}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a bound on a hang, on any machine
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(ctx, Config{Driver: "ringlight", Cluster: "k8s", Node: "a", Kube: fake.NewClientset(claim), Planner: p, CDI: filepath.Join(root, "cdi"),
			Plugins: filepath.Join(root, "plugins"), Registry: filepath.Join(root, "reg"), Files: filepath.Join(root, "files"), Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()

	register := registration.NewRegistrationClient(dial(t, filepath.Join(root, "reg", "ringlight-reg.sock")))
	info, err := register.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if info.Type != registration.DRAPlugin || info.Name != "ringlight" || !slices.Contains(info.SupportedVersions, dra.DRAPluginService) {
		t.Fatalf("registers as %+v", info)
	}
	if _, err := register.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Fatal(err)
	}
	kubelet := dra.NewDRAPluginClient(dial(t, info.Endpoint))
	ask := &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{{Namespace: "default", Name: "c", Uid: "0b6f"}}}
	prepared := make(chan *dra.NodePrepareResourceResponse, 1)
	running.Go(func() {
		r, err := kubelet.NodePrepareResources(ctx, ask)
		if err != nil {
			t.Error(err)
			cancel()
			return
		}
		prepared <- r.Claims["0b6f"]
	})
	for range 3 { // it looks, and looks again
		select {
		case <-p.looks:
		case r := <-prepared:
			t.Fatalf("prepared without light: %v", r)
		case <-ctx.Done():
			t.Fatal("the planner is not asked")
		}
	}
	p.mu.Lock()
	p.v.State = job.Ready
	p.mu.Unlock()
	first := <-prepared
	again, err := kubelet.NodePrepareResources(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*dra.NodePrepareResourceResponse{first, again.Claims["0b6f"]} {
		if r.GetError() != "" || len(r.GetDevices()) != 1 || !slices.Equal(r.Devices[0].CdiDeviceIds, []string{"ringlight/ring=0b6f"}) || r.Devices[0].PoolName != "ring-3" {
			t.Fatalf("prepared: %v", r)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "cdi", "ringlight-0b6f.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s spec
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	e := s.Devices[0].Edits
	for _, want := range []string{"RINGLIGHT_JOB=k8s-0b6f", "RINGLIGHT_RING=3", "RINGLIGHT_TP=4", "RINGLIGHT_POSITIONS=3,0", "NCCL_ALGO=Ring"} {
		if !slices.Contains(e.Env, want) {
			t.Errorf("no %s in %v", want, e.Env)
		}
	}
	ranks, err := os.ReadFile(filepath.Join(e.Mounts[0].Host, "ranks"))
	if err != nil || !strings.Contains(string(ranks), "3 a 0 0 3\n") {
		t.Errorf("ranks: %s, %v", ranks, err)
	}

	p.mu.Lock() // a kubelet that asks at a node the ring does not have
	p.v.Rings = []job.Ring{{Ring: 3, Nodes: []string{"x", "b"}}}
	p.mu.Unlock()
	if r, err := kubelet.NodePrepareResources(ctx, ask); err != nil || !strings.Contains(r.Claims["0b6f"].GetError(), "not in ring 3") {
		t.Errorf("a pod on a node out of its ring: %v, %v", r, err)
	}
	for range 2 {
		r, err := kubelet.NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: ask.Claims})
		if err != nil || r.Claims["0b6f"].GetError() != "" {
			t.Fatalf("given up: %v, %v", r, err)
		}
	}
	for _, d := range []string{"cdi", "files"} {
		if left, err := os.ReadDir(filepath.Join(root, d)); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", d, left, err)
		}
	}
}
