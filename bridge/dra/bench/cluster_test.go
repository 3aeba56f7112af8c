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
	"fmt"
	"io"
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
)

const admin = "admin-of-a-cluster-that-lives-for-minutes"

// cluster is a control plane of real programs, without kubelets.
type cluster struct {
	dir  string
	cfg  *rest.Config
	kube *kubernetes.Clientset
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
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
	store, peer, api := fmt.Sprintf("http://127.0.0.1:%d", freePort(t)), fmt.Sprintf("http://127.0.0.1:%d", freePort(t)), freePort(t)
	start(t, dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync")
	start(t, dir, filepath.Join(bin, "kube-apiserver"), "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(api), "--cert-dir", filepath.Join(dir, "certs"),
		"--service-account-issuer", "https://bench", "--service-account-key-file", keyFile, "--service-account-signing-key-file", keyFile,
		"--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC", "--token-auth-file", tokens, "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition")
	c := &cluster{dir: dir, cfg: &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", api), BearerToken: admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 500, Burst: 1000}}
	if c.kube, err = kubernetes.NewForConfig(c.cfg); err != nil {
		t.Fatal(err)
	}
	until(t, "the API server", 5*time.Minute, func() bool {
		_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	own := c.kubeconfig(t, "masters", admin)
	start(t, dir, filepath.Join(bin, "kube-controller-manager"), "--kubeconfig", own, "--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000",
		"--controllers", "resourceclaim-controller,job-controller,garbage-collector-controller,device-taint-eviction-controller")
	start(t, dir, filepath.Join(bin, "kube-scheduler"), "--kubeconfig", own, "--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000")
	return c
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

// objects are those of a file of the manifests that users are given.
func objects(t *testing.T, name string) (out []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "manifests", name))
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
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || strings.Contains(string(answer), "error") {
		t.Fatalf("%s: %s, %v", line, answer, err)
	}
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
