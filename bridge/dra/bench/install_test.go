package bench

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Goal: one command installs all, and controller and plugin have a key each: who gets at
// a node has the one that only reads.
// Method: the manifests and keys in a folder, as kubectl renders them; whose secret each
// pod mounts, and what is in it.
func TestOneCommandInstallsAll(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl here")
	}
	dir := manifests(t)
	text, err := exec.Command(kubectl, "kustomize", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	kinds, secrets := map[string]int{}, map[string]string{}
	pods := map[string]*corev1.PodTemplateSpec{}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		if err := d.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds[o.GetKind()]++
		var err error
		switch o.GetKind() {
		case "Secret":
			var s corev1.Secret
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s)
			secrets[s.Name] = string(s.Data["cert.pem"]) + " " + string(s.Data["key.pem"]) + " " + string(s.Data["ca.pem"])
		case "Deployment":
			var x appsv1.Deployment
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &x, true)
			pods["controller"] = &x.Spec.Template
		case "DaemonSet":
			var x appsv1.DaemonSet
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &x, true)
			pods["plugin"] = &x.Spec.Template
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for kind, n := range map[string]int{"DeviceClass": 2, "Namespace": 1, "ServiceAccount": 2, "ClusterRole": 2, "ClusterRoleBinding": 2, "Role": 1, "RoleBinding": 1, "Deployment": 1, "DaemonSet": 1, "Secret": 2, "ConfigMap": 1} {
		if kinds[kind] != n {
			t.Errorf("%d of %s, want %d", kinds[kind], kind, n)
		}
	}
	for name, p := range pods {
		var mounted []string
		for _, v := range p.Spec.Volumes {
			if v.Secret != nil {
				mounted = append(mounted, secrets[v.Secret.SecretName])
			}
		}
		if want := name + ".pem " + name + ".key ca.pem"; len(mounted) != 1 || mounted[0] != want {
			t.Errorf("%s has %q, want %q", name, mounted, want)
		}
		env := p.Spec.Containers[0].Env[0]
		if env.Name != "PLANNER" || !strings.HasPrefix(env.ValueFrom.ConfigMapKeyRef.Name, "ringlight-planner-") || !slices.Contains(p.Spec.Containers[0].Args, "$(PLANNER)") {
			t.Errorf("%s: its planner is %+v of %v", name, env, p.Spec.Containers[0].Args)
		}
	}
}

// manifests is a folder of them with keys, as an admin has it.
func manifests(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "manifests"))); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.pem", "controller.pem", "controller.key", "plugin.pem", "plugin.key"} {
		if err := os.WriteFile(filepath.Join(dir, "keys", name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// install is the one command of the page, where there is a kubectl; else its files by hand.
func (c *cluster) install(t *testing.T) {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("no kubectl here: the manifests are applied one by one")
		c.apply(t, "class.yaml", "rbac.yaml", "driver.yaml")
		return
	}
	out, err := exec.Command(kubectl, "--kubeconfig", c.kubeconfig(t, "masters", admin), "apply", "-k", manifests(t)).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl apply -k: %v: %s", err, out)
	}
	t.Logf("kubectl apply -k: %s", strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; "))
}
