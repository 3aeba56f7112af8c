package bench

import (
	"context"
	"encoding/json"
	"fmt"
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
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"ringlight/bridge/dra/controller"
	"ringlight/bridge/dra/plugin"
	"ringlight/planner/jobapi/client"
)

// kubelets stand for those of all nodes: each speaks to its plugin by gRPC as a
// kubelet does, and keeps the pods' states. They run no container.
type kubelets struct {
	t    *testing.T
	kube kubernetes.Interface
	dir  string
	run  func(ctx context.Context, node string) error // a plugin
	// judge faults what is wrong about a pod that is to run with what it was told.
	judge func(p *corev1.Pod, claim *resourceapi.ResourceClaim, env map[string]string)

	one                sync.Mutex // a plugin is restarted at a time
	mu                 sync.Mutex
	node               map[string]dra.DRAPluginClient
	stop               map[string]func()
	busy               map[string]bool       // pods that are being started or ended; true: heard of again meanwhile
	has                map[string]*dra.Claim // by pod: what was asked for, and not yet given up
	uses               map[string]string     // by ring and node: the claim that a running pod there has
	refused            map[string]string     // by pod: why its plugin did not let it run when it was asked last
	started            int
	restarts, prepared int // of plugins, and claims handed out anew after them
	wrong              []string
}

// startKubelets makes nodes, plugins and kubelets.
func startKubelets(ctx context.Context, t *testing.T, c *cluster, account kubernetes.Interface, planner *client.Client, nodes []string) *kubelets {
	t.Helper()
	k := &kubelets{t: t, kube: c.kube, node: map[string]dra.DRAPluginClient{}, stop: map[string]func(){}, dir: c.dir, busy: map[string]bool{}, has: map[string]*dra.Claim{}, uses: map[string]string{}, refused: map[string]string{}}
	k.judge = k.onRing
	k.run = func(ctx context.Context, n string) error {
		root := filepath.Join(c.dir, n)
		return plugin.Run(ctx, plugin.Config{Driver: controller.Driver, Cluster: "k8s", Node: n, Kube: account, Planner: planner, CDI: filepath.Join(root, "cdi"),
			Plugins: filepath.Join(root, "p"), Registry: filepath.Join(root, "r"), Files: filepath.Join(root, "files"), Log: slog.New(slog.DiscardHandler)})
	}
	for _, n := range nodes {
		root := filepath.Join(c.dir, n)
		for _, d := range []string{"p", "r"} {
			if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		have := corev1.ResourceList{corev1.ResourceCPU: *quantity("64"), corev1.ResourceMemory: *quantity("64Gi"), corev1.ResourcePods: *quantity("110"), "example.com/gpu": *quantity("4")}
		if _, err := c.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: map[string]string{"kubernetes.io/hostname": n, "ringlight": "node"}},
			Status: corev1.NodeStatus{Capacity: have, Allocatable: have, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		k.serve(ctx, n)
	}
	pods := informers.NewSharedInformerFactory(c.kube, 0).Core().V1().Pods().Informer()
	look := func(x any) {
		if p, ok := x.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			k.see(ctx, p)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, x any) { look(x) }}); err != nil {
		t.Fatal(err)
	}
	go pods.RunWithContext(ctx)
	return k
}

// serve starts the plugin of a node, and registers it as a kubelet does that begins.
func (k *kubelets) serve(ctx context.Context, n string) {
	plugged, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := k.run(plugged, n); err != nil {
			k.t.Errorf("plugin of %s: %v", n, err)
		}
	}()
	var conns []*grpc.ClientConn
	dial := func(socket string) *grpc.ClientConn {
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			k.t.Error(err)
		}
		conns = append(conns, conn)
		return conn
	}
	info, err := registration.NewRegistrationClient(dial(filepath.Join(k.dir, n, "r", controller.Driver+"-reg.sock"))).GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		if ctx.Err() == nil {
			k.t.Errorf("plugin of %s does not register: %v", n, err)
		}
		stop()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.node[n] = dra.NewDRAPluginClient(dial(info.Endpoint))
	k.stop[n] = func() {
		stop()
		<-done
		for _, c := range conns {
			c.Close()
		}
	}
}

// restart ends the plugin of a node, and its kubelet forgets what it was told: it registers
// the plugin anew, and asks for the claims of the pods that run there, as one does that has
// lost its checkpoint. Each must be handed out as it is, or said to wait for light.
func (k *kubelets) restart(ctx context.Context, n string) {
	k.one.Lock()
	defer k.one.Unlock()
	k.mu.Lock()
	stop := k.stop[n]
	k.mu.Unlock()
	stop()
	k.serve(ctx, n)
	pods, err := k.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n})
	if err != nil {
		if ctx.Err() == nil {
			k.fault("kubelet of %s: %v", n, err)
		}
		return
	}
	k.mu.Lock()
	k.restarts++
	k.mu.Unlock()
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		claim, err := k.claims(ctx, p)
		if err != nil {
			continue // it has ended
		}
		r, err := k.plugin(n).NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{claim}})
		if err != nil || r.Claims[claim.Uid].GetError() != "" {
			continue // its ring is short of light, or it has ended: asked again by a kubelet
		}
		if env, err := k.given(n, r.Claims[claim.Uid].Devices[0].CdiDeviceIds[0]); err == nil && env["RINGLIGHT_JOB"] != "k8s-"+claim.Uid {
			k.fault("%s: after a restart it is told %v", p.Name, env)
		}
		// A pod may have been ended while it was asked for: then what was written anew goes.
		if now, err := k.kube.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{}); err != nil || now.UID != p.UID || now.DeletionTimestamp != nil {
			_, _ = k.plugin(n).NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{claim}}) // what is left is found at the end
		} else {
			k.mu.Lock()
			k.prepared++
			k.mu.Unlock()
		}
	}
}

func (k *kubelets) plugin(node string) dra.DRAPluginClient {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.node[node]
}

// see does what a kubelet does with a pod that is bound to it.
func (k *kubelets) see(ctx context.Context, p *corev1.Pod) {
	ending := p.DeletionTimestamp != nil
	if !ending && p.Status.Phase == corev1.PodRunning {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, busy := k.busy[string(p.UID)]
	if k.busy[string(p.UID)] = busy; busy {
		return
	}
	go func() {
		again := true
		for again && ctx.Err() == nil {
			now, err := k.kube.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err) || err == nil && now.UID != p.UID: // taken away by force: what it had is given up all the same
				again = !k.giveUp(ctx, p)
			case err != nil: // asked again
			case now.DeletionTimestamp != nil:
				again = !k.end(ctx, now)
			case now.Status.Phase != corev1.PodRunning:
				k.begin(ctx, now)
			default: // it runs; who deletes it is heard of
				k.mu.Lock()
				if !k.busy[string(p.UID)] {
					delete(k.busy, string(p.UID))
					k.mu.Unlock()
					return
				}
				k.busy[string(p.UID)] = false
				k.mu.Unlock()
			}
			if again && !sleep(ctx, 100*time.Millisecond) {
				return
			}
		}
		k.mu.Lock()
		delete(k.busy, string(p.UID))
		k.mu.Unlock()
	}()
}

func (k *kubelets) claims(ctx context.Context, p *corev1.Pod) (*dra.Claim, error) {
	name := ""
	if of := p.Spec.ResourceClaims[0].ResourceClaimName; of != nil {
		name = *of
	} else if len(p.Status.ResourceClaimStatuses) == 1 && p.Status.ResourceClaimStatuses[0].ResourceClaimName != nil {
		name = *p.Status.ResourceClaimStatuses[0].ResourceClaimName // by a template
	}
	c, err := k.kube.ResourceV1().ResourceClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &dra.Claim{Namespace: p.Namespace, Name: name, Uid: string(c.UID)}, nil
}

// begin prepares a pod's claim and lets it run, once the plugin says that it may.
func (k *kubelets) begin(ctx context.Context, p *corev1.Pod) {
	claim, err := k.claims(ctx, p)
	if err != nil {
		return
	}
	k.mu.Lock()
	k.has[string(p.UID)] = claim
	k.mu.Unlock()
	r, err := k.plugin(p.Spec.NodeName).NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{claim}})
	why := r.GetClaims()[claim.Uid].GetError()
	if err != nil {
		why = err.Error()
	}
	k.mu.Lock()
	k.refused[p.Name] = why
	k.mu.Unlock()
	if why != "" {
		return // a kubelet asks again
	}
	env, err := k.given(p.Spec.NodeName, r.Claims[claim.Uid].Devices[0].CdiDeviceIds[0])
	if err != nil {
		k.fault("%s: %v", p.Name, err)
		return
	}
	// The claim is read again: it may have been taken away meanwhile.
	now, err := k.kube.ResourceV1().ResourceClaims(p.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || now.Status.Allocation == nil {
		return
	}
	if !slices.Contains(now.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values, p.Spec.NodeName) {
		k.fault("%s: on node %s, its claim has %v", p.Name, p.Spec.NodeName, now.Status.Allocation.NodeSelector)
	}
	if env["RINGLIGHT_JOB"] != "k8s-"+claim.Uid || len(strings.Split(env["RINGLIGHT_POSITIONS"], ",")) != 4 {
		k.fault("%s: told %v", p.Name, env)
	}
	k.judge(p, now, env)
	k.mu.Lock()
	k.started++
	k.mu.Unlock()
	p.Status.Phase = corev1.PodRunning
	_, _ = k.kube.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}) // tried again when it is seen again
}

// onRing says what is wrong about the ring of a pod that is to run.
func (k *kubelets) onRing(p *corev1.Pod, claim *resourceapi.ResourceClaim, env map[string]string) {
	if ring, has := "ring-"+env["RINGLIGHT_RING"], claim.Status.Allocation.Devices.Results[0].Pool; has != ring {
		k.fault("%s: its claim has %s, its pod is on %s", p.Name, has, ring)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for where, other := range k.uses { // any order
		ring, _, _ := strings.Cut(where, " ")
		if ring == env["RINGLIGHT_RING"] && other != string(claim.UID) {
			k.wrong = append(k.wrong, fmt.Sprintf("ring %s has pods of claims %s and %s", ring, other, claim.UID))
		}
	}
	k.uses[env["RINGLIGHT_RING"]+" "+p.Spec.NodeName] = string(claim.UID)
}

// end gives up a pod's claim and takes the pod away.
func (k *kubelets) end(ctx context.Context, p *corev1.Pod) bool {
	if _, err := k.claims(ctx, p); err != nil {
		k.fault("%s: its claim went before it: %v", p.Name, err)
		return true
	}
	now := int64(0)
	return k.giveUp(ctx, p) && k.kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) == nil
}

// giveUp has the plugin take away what a pod was given, if anything.
func (k *kubelets) giveUp(ctx context.Context, p *corev1.Pod) bool {
	k.mu.Lock()
	claim := k.has[string(p.UID)]
	k.mu.Unlock()
	if claim == nil {
		return true
	}
	r, err := k.plugin(p.Spec.NodeName).NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{claim}})
	if err != nil || r.Claims[claim.Uid].GetError() != "" {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.has, string(p.UID))
	for where, uid := range k.uses { // any order
		if _, node, _ := strings.Cut(where, " "); uid == claim.Uid && node == p.Spec.NodeName {
			delete(k.uses, where)
		}
	}
	return true
}

// given reads what a container runtime would give a container.
func (k *kubelets) given(node, device string) (map[string]string, error) {
	_, name, _ := strings.Cut(device, "=")
	text, err := os.ReadFile(filepath.Join(k.dir, node, "cdi", controller.Driver+"-"+name+".json"))
	if err != nil {
		return nil, err
	}
	var spec struct {
		Devices []struct {
			ContainerEdits struct{ Env []string }
		}
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, e := range spec.Devices[0].ContainerEdits.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return env, nil
}

func (k *kubelets) fault(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}
