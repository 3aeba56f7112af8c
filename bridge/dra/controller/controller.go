package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"ringlight/planner/job"
)

// Driver is the name that slices and classes call this driver by.
const Driver = "ringlight"

// manager owns the fields that the controller writes.
const manager = "ocs-dra"

// Jobs is the planner.
type Jobs interface {
	Topology(ctx context.Context) (*job.Topology, error)
	List(ctx context.Context) ([]*job.View, error)
	Put(ctx context.Context, id string, w *job.Wish) (*job.View, error)
	Release(ctx context.Context, id string) (*job.View, error)
}

// Config of a controller.
type Config struct {
	Driver  string
	Labels  string // the domain that the keys of nodes' labels begin with; empty: job.LabelDomain
	Cluster string // what the names of its jobs begin with, and their owner: clusters that share a planner have different ones
	Kube    kubernetes.Interface
	Planner Jobs
	Every   time.Duration // between two looks at the planner
	Log     *slog.Logger
	Queue   dynamic.Interface            // of Kueue's objects; nil: there is no queue to admit to
	Told    func(what string, err error) // of each look at something, how it ended; nil: nobody asks
}

type controller struct {
	Config
	events record.EventRecorder
	claims resourcelisters.ResourceClaimLister
	nodes  corelisters.NodeLister
	pods   corelisters.PodLister
	slices *resourceslice.Controller
}

// Run keeps both of the same mind until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	cfg.Labels = cmp.Or(cfg.Labels, job.LabelDomain)
	c := &controller{Config: cfg}
	heard := informers.NewSharedInformerFactory(cfg.Kube, 0)
	claims := heard.Resource().V1().ResourceClaims()
	c.claims, c.nodes, c.pods = claims.Lister(), heard.Core().V1().Nodes().Lister(), heard.Core().V1().Pods().Lister()
	words := record.NewBroadcaster()
	defer words.Shutdown()
	words.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cfg.Kube.CoreV1().Events("")})
	c.events = words.NewRecorder(scheme.Scheme, corev1.EventSource{Component: manager})
	wake := make(chan struct{}, 1)
	poke := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	if _, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { poke() }, UpdateFunc: func(any, any) { poke() }, DeleteFunc: func(any) { poke() }}); err != nil {
		return err
	}
	heard.StartWithContext(ctx)
	defer heard.Shutdown()
	for kind, ok := range heard.WaitForCacheSync(ctx.Done()) { // any order
		if !ok {
			return fmt.Errorf("%v: no list of them before the end", kind)
		}
	}
	var publishing sync.WaitGroup
	// Slices wait for nobody: however many claims there are, they are as old as a look.
	publishing.Go(func() { c.keep(ctx, "slices", c.publish, nil) })
	if c.Queue != nil {
		publishing.Go(func() { c.keep(ctx, "queue", c.admit, nil) })
	}
	c.keep(ctx, "claims", c.pass, wake)
	publishing.Wait()
	if c.slices != nil {
		c.slices.Stop()
	}
	return nil
}

// keep does something now and then, and at once when it is woken. What it fails of is
// told once, and that it does not any more.
func (c *controller) keep(ctx context.Context, what string, do func(context.Context) error, wake <-chan struct{}) {
	look := time.Tick(c.Every)
	for failed := ""; ; {
		said := ""
		err := do(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			said = err.Error()
		}
		if c.Told != nil {
			c.Told(what, err)
		}
		switch {
		case said == failed:
		case said == "":
			c.Log.Info("in step with the planner again", "what", what)
		default:
			c.Log.Warn("not in step with the planner; tried again", "what", what, "err", said)
		}
		failed = said
		select {
		case <-ctx.Done():
			return
		case <-look:
		case <-wake:
		}
	}
}

// pass looks at claims and nodes once.
func (c *controller) pass(ctx context.Context) error {
	t, err := c.Planner.Topology(ctx)
	if err != nil {
		return err
	}
	jobs, err := c.Planner.List(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.settle(ctx, t, jobs), c.label(ctx, t))
}

// publish lets the slices be as the rings are; what is equal is not written.
func (c *controller) publish(ctx context.Context) error {
	t, err := c.Planner.Topology(ctx)
	if err != nil {
		return err
	}
	rings := &resourceslice.DriverResources{Pools: Rings(t, c.ours)}
	if c.slices != nil {
		c.slices.Update(rings)
		return nil
	}
	// Not before the first answer: slices of an earlier life stand until then.
	c.slices, err = resourceslice.StartController(ctx, resourceslice.Options{DriverName: c.Driver, KubeClient: c.Kube, Resources: rings,
		ErrorHandler: func(_ context.Context, err error, msg string) { c.Log.Warn("slices: "+msg, "err", err) }})
	return err
}

// label lets the labels of nodes be as the topology is.
func (c *controller) label(ctx context.Context, t *job.Topology) error {
	var errs []error
	keys := job.LabelKeys(c.Labels)
	for host, want := range t.Labels(c.Labels) { // any order
		n, err := c.nodes.Get(host)
		if apierrors.IsNotFound(err) {
			continue // the fabric may have more nodes than the cluster
		} else if err != nil {
			return err
		}
		have := map[string]string{}
		for k, v := range n.Labels { // any order
			if slices.Contains(keys, k) {
				have[k] = v
			}
		}
		if maps.Equal(have, want) {
			continue
		}
		_, err = c.Kube.CoreV1().Nodes().Apply(ctx, coreapply.Node(host).WithLabels(want), metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			errs = append(errs, fmt.Errorf("labels of node %s: %w", host, err))
		}
	}
	return errors.Join(errs...)
}
