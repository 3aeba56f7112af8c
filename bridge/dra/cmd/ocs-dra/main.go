// Command ocs-dra gives the rings of a planner to the pods of a Kubernetes cluster.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"ringlight/bridge/dra/controller"
	"ringlight/bridge/dra/plugin"
	"ringlight/cmd/cli"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
)

// version is set by the build.
var version = "unknown"

func main() {
	(&cli.Program{Name: "ocs-dra", Version: version,
		Short: "gives the rings of a planner to the pods of a Kubernetes cluster",
		Commands: []cli.Command{
			{Name: "controller", Short: "slices for rings, jobs for claims, labels for nodes; one in a cluster", Run: runController},
			{Name: "plugin", Short: "serve the kubelet of one node", Run: runPlugin},
		}}).Main()
}

// common is what both need.
type common struct {
	planner                     client.Config
	kubeconfig, driver, cluster string
	serve                       string
	log                         *slog.Logger
}

func (c *common) register(fs *flag.FlagSet) {
	fs.StringVar(&c.planner.URL, "planner", "http://127.0.0.1:18880", "where the planner serves jobs: http://, https:// or unix:`PATH`; copies with commas")
	fs.StringVar(&c.planner.CAFile, "ca", "", "file with the planner's certificate authority, PEM")
	fs.StringVar(&c.planner.CertFile, "cert", "", "file with a client certificate, PEM")
	fs.StringVar(&c.planner.KeyFile, "key", "", "file with the certificate's key, PEM")
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "file; none: the account of the pod that this runs in")
	fs.StringVar(&c.driver, "driver", controller.Driver, "name of the driver in slices and classes")
	fs.StringVar(&c.cluster, "cluster", "k8s", "what the names of its jobs begin with; clusters that share a planner have different ones")
	fs.StringVar(&c.serve, "serve", "", "`ADDRESS` for /healthz, /readyz and /metrics, such as :8081; none: nowhere")
}

var clusters = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,27}$`)

// open makes the clients, and serves how the work goes.
func (c *common) open(ctx context.Context, t cli.Terminal) (*rest.Config, kubernetes.Interface, *client.Client, *health, error) {
	if !clusters.MatchString(c.cluster) { // with the number of a claim a job's name has at most 64
		return nil, nil, nil, nil, cli.Usage("cluster", "1 to 27 letters, digits and . _ -", "%.80q", c.cluster)
	}
	c.log = slog.New(slog.NewTextHandler(t.Err, nil))
	klog.SetSlogLogger(c.log)
	planner, err := client.New(c.planner)
	if err != nil {
		return nil, nil, nil, nil, cli.AsUsage(err)
	}
	cfg, err := rest.InClusterConfig()
	if c.kubeconfig != "" {
		cfg, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	}
	if err != nil {
		return nil, nil, nil, nil, cli.Usage("kubeconfig", "a file, or a pod with an account", "%v", err)
	}
	cfg.QPS, cfg.Burst = 100, 200 // chosen: a fabric that comes up writes every slice and label at once
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	h := newHealth(c)
	_, err = h.serve(ctx, c.serve, c.log)
	return cfg, kube, planner, h, err
}

func runController(ctx context.Context, args []string, t cli.Terminal) error {
	var c common
	fs := cli.NewFlags("controller")
	c.register(fs)
	every := fs.Duration("every", 500*time.Millisecond, "time between two looks at the planner")
	labels := fs.String("labels", job.LabelDomain, "`DOMAIN` that the keys of nodes' labels begin with")
	lease := fs.String("lease", "", "`NAMESPACE` of the lease that one of several holds while it works; none: this is the only one")
	if _, err := cli.ParseNone(fs, args, `Keeps a ResourceSlice for each ring, a job for each claim that was given one,
labels on nodes, and answers Kueue's AdmissionChecks, until interrupted.

example: ocs-dra controller -planner unix:/run/ringlight/http.sock`); err != nil {
		return err
	}
	if *every < 50*time.Millisecond || *every > 2*time.Second {
		return cli.Usage("every", "50ms to 2s", "%v", *every)
	}
	if wrong := validation.IsDNS1123Subdomain(*labels); len(wrong) > 0 {
		return cli.Usage("labels", wrong[0], "%.80q", *labels)
	}
	cfg, kube, planner, h, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	queue, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return h.lead(ctx, kube, *lease, "ocs-dra-"+c.cluster, c.log, func(ctx context.Context) error {
		return controller.Run(ctx, controller.Config{Driver: c.driver, Labels: *labels, Cluster: c.cluster, Kube: kube, Queue: queue, Planner: planner.As(controller.Owner(c.cluster)), Every: *every, Log: c.log, Told: h.told})
	})
}

func runPlugin(ctx context.Context, args []string, t cli.Terminal) error {
	var c common
	fs := cli.NewFlags("plugin")
	c.register(fs)
	host, _ := os.Hostname() // "" is refused below
	node := fs.String("node", host, "name of this node, in the cluster and in the fabric")
	cdi := fs.String("cdi", "/var/run/cdi", "folder that the container runtime reads CDI files from")
	kubelet := fs.String("kubelet", "/var/lib/kubelet", "the kubelet's folder")
	files := fs.String("files", "/run/ringlight/claims", "folder for what pods read, the same on the host")
	if _, err := cli.ParseNone(fs, args, `Holds a pod until its ring has light, and hands it the order of its GPUs, until
interrupted. In its container all folders have the names of the host.

example: ocs-dra plugin -node n07 -planner https://planner:18880 -ca ca.pem -cert node.pem -key node.key`); err != nil {
		return err
	}
	if *node == "" {
		return cli.Usage("node", "a node's name", "none is given, and this host has none")
	}
	_, kube, planner, h, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	return h.lead(ctx, kube, "", "", c.log, func(ctx context.Context) error {
		return plugin.Run(ctx, plugin.Config{Driver: c.driver, Cluster: c.cluster, Node: *node, Kube: kube, Planner: planner, CDI: *cdi,
			Plugins: *kubelet + "/plugins", Registry: *kubelet + "/plugins_registry", Files: *files, Log: c.log, Told: h.told})
	})
}
