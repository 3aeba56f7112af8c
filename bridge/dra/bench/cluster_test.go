package bench

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"

	"ringlight/planner/jobapi/client"
	"ringlight/sim/freeport"
)

const admin = "admin-of-a-cluster-that-lives-for-minutes"

// cluster is a control plane of real programs, without kubelets.
type cluster struct {
	dir  string
	cfg  *rest.Config
	kube *kubernetes.Clientset
}

// start runs a program until the test ends; what it says goes to a file.
func start(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, filepath.Base(name)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() }) // it may have ended
	return c
}

// until waits for something to be so.
func until(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(within); !ok(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", within, what)
		}
	}
}

// startCluster brings up etcd and the three programs of a control plane.
func startCluster(t *testing.T, bin, dir string) *cluster {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keyFile, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv")
	for name, text := range map[string][]byte{keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), tokens: []byte(admin + `,admin,admin,"system:masters"` + "\n")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store, peer, api := "http://"+freeport.Address(), "http://"+freeport.Address(), freeport.Address()
	start(t, dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync")
	start(t, dir, filepath.Join(bin, "kube-apiserver"), "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", strings.TrimPrefix(api, "127.0.0.1:"), "--cert-dir", filepath.Join(dir, "certs"),
		"--service-account-issuer", "https://bench", "--service-account-key-file", keyFile, "--service-account-signing-key-file", keyFile,
		"--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC", "--token-auth-file", tokens, "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition")
	c := &cluster{dir: dir, cfg: &rest.Config{Host: "https://" + api, BearerToken: admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 500, Burst: 1000}}
	if c.kube, err = kubernetes.NewForConfig(c.cfg); err != nil {
		t.Fatal(err)
	}
	until(t, "the API server", 5*time.Minute, func() bool {
		_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	own := c.kubeconfig(t, "masters", admin)
	start(t, dir, filepath.Join(bin, "kube-controller-manager"), "--kubeconfig", own, "--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000",
		"--controllers", "resourceclaim-controller,job-controller,statefulset-controller,garbage-collector-controller,device-taint-eviction-controller")
	start(t, dir, filepath.Join(bin, "kube-scheduler"), "--kubeconfig", own, "--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000")
	return c
}

// startBench runs a planner and the agents of a fabric, which `ocsctl fabric new` writes,
// a control plane, and for each node a plugin and a kubelet; controllers are to be started.
func startBench(ctx context.Context, t *testing.T, nodes int, fabric ...string) *bench {
	t.Helper()
	bin, own := os.Getenv("RINGLIGHT_KUBERNETES"), os.Getenv("RINGLIGHT_BIN")
	if bin == "" || own == "" {
		t.Skip("RINGLIGHT_KUBERNETES and RINGLIGHT_BIN name no programs: make bench-kubernetes")
	}
	dir, err := os.MkdirTemp("", "kube") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("RINGLIGHT_KEEP") == "" {
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	b := &bench{t: t, socket: filepath.Join(dir, "power")}
	for i := range nodes {
		b.names = append(b.names, fmt.Sprintf("n%02d", i))
	}
	b.startFabric(dir, own, fabric)
	b.c = startCluster(t, bin, dir)
	b.c.install(t)
	b.said = watchEvents(ctx, t, b.c.kube)
	plugins := *b.c.cfg
	plugins.BearerToken = b.c.account(t, "ocs-dra-plugin")
	b.k = startKubelets(ctx, t, b.c, kubernetes.NewForConfigOrDie(&plugins), b.planner, b.names)
	account := b.c.kubeconfig(t, "controller", b.c.account(t, "ocs-dra-controller"))
	b.control = func() *exec.Cmd {
		return start(t, dir, filepath.Join(own, "ocs-dra"), "controller", "-kubeconfig", account, "-planner", "unix:"+filepath.Join(dir, "http"), "-lease", "ringlight", "-serve", "127.0.0.1:0")
	}
	return b
}

// startFabric runs a planner and the agents of all nodes.
func (b *bench) startFabric(dir, own string, fabric []string) {
	t, path, names := b.t, filepath.Join(dir, "fabric.json"), filepath.Join(dir, "names")
	if err := os.WriteFile(names, []byte(strings.Join(b.names, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(own, "ocsctl"), append([]string{"fabric", "new", "-names", names, "-o", path}, fabric...)...).CombinedOutput(); err != nil {
		t.Fatalf("ocsctl fabric new: %v: %s", err, out)
	}
	broker := freeport.Address()
	var at *exec.Cmd
	run := func() {
		at = start(t, dir, filepath.Join(own, "ocs-planner"), "run", "-fabric-file", path, "-state", filepath.Join(dir, "planner.db"), "-listen", broker, "-http", "unix:"+filepath.Join(dir, "http"))
	}
	run()
	start(t, dir, filepath.Join(own, "ocs-sim"), "agents", "-fabric-file", path, "-modules", "1", "-broker", "mqtt://"+broker, "-control", "unix:"+b.socket)
	var err error
	if b.planner, err = client.New(client.Config{URL: "unix:" + filepath.Join(dir, "http"), Retry: 2 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	b.again = func() *exec.Cmd {
		old := at
		go func() { _ = old.Wait(); run() }() // when it is dead
		return old
	}
}

// kubeconfig writes one for a token.
func (c *cluster) kubeconfig(t *testing.T, name, token string) string {
	t.Helper()
	path := filepath.Join(c.dir, name+".kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, c.cfg.Host, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// account is a token of a service account, with the rights that the manifests give it.
func (c *cluster) account(t *testing.T, name string) string {
	t.Helper()
	hour := int64(3600)
	r, err := c.kube.CoreV1().ServiceAccounts("ringlight").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// objects are those of a file of the manifests that users are given, or of any file.
func objects(t *testing.T, name string) (out []*unstructured.Unstructured) {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join("..", "manifests", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		if err := d.Decode(&o); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, &o)
	}
}

// apply has the API server take a manifest, as kubectl apply --server-side with
// strict validation.
func (c *cluster) apply(t *testing.T, names ...string) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(c.cfg))
	if err != nil {
		t.Fatal(err)
	}
	mapper, any := restmapper.NewDiscoveryRESTMapper(groups), dynamic.NewForConfigOrDie(c.cfg)
	for _, name := range names {
		for _, o := range objects(t, name) {
			m, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
			if err != nil {
				t.Fatal(err)
			}
			to := dynamic.ResourceInterface(any.Resource(m.Resource))
			if m.Scope.Name() == "namespace" {
				ns := o.GetNamespace()
				if ns == "" {
					ns = "default"
				}
				to = any.Resource(m.Resource).Namespace(ns)
			}
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			force := true
			if _, err := to.Patch(t.Context(), o.GetName(), "application/apply-patch+yaml", text, metav1.PatchOptions{FieldManager: "bench", Force: &force, FieldValidation: "Strict"}); err != nil {
				t.Fatalf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// power takes a simulated board's supply, or gives it back.
func power(t *testing.T, socket, node string, on bool) {
	t.Helper()
	line := "power off " + node
	if on {
		line = "power on " + node
	}
	if answer, err := boards(socket, line); err != nil {
		t.Fatalf("%s: %s, %v", line, answer, err)
	}
}

// boards asks the simulated boards.
func boards(socket, line string) (answer []byte, err error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, line); err != nil {
		return nil, err
	}
	if answer, err = io.ReadAll(c); err == nil && bytes.Contains(answer, []byte("error")) {
		err = errors.New("refused")
	}
	return answer, err
}

// tail is the end of what a program said.
func tail(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name+".log")) // for a person who reads a failure
	return string(text[max(0, len(text)-2000):])
}

// sleep waits, and says whether the test goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
