package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"ringlight/bridge/dra/controller"
	"ringlight/planner/job"
	"ringlight/proto"
)

const (
	// patience bounds how long a kubelet's call is held. chosen: below the 45 s
	// after which a kubelet gives a call up; it asks again.
	patience = 20 * time.Second
	// between two looks at a job that has no light yet.
	between = 100 * time.Millisecond
)

// HandOut is what is told of a claim that was handed out, or could not be.
const HandOut = "claim"

// Job is the planner.
type Job interface {
	Get(ctx context.Context, id string) (*job.View, error)
	File(ctx context.Context, id, name string, s job.Split, generation uint64) ([]byte, error)
}

// Config of a plugin.
type Config struct {
	Driver   string
	Cluster  string // as the controller's
	Node     string // its name, in the cluster and in the fabric
	Kube     kubernetes.Interface
	Planner  Job
	CDI      string // folder that the container runtime reads CDI files from
	Plugins  string // folder of the kubelet for plugins' own sockets
	Registry string // and for those that register
	Files    string // folder for what pods read
	Log      *slog.Logger
	Told     func(what string, err error) // that it serves, and of each HandOut how it ended; nil: nobody asks
}

type plugin struct {
	Config
	writing sync.Mutex
}

// Run serves the kubelet until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	sockets := filepath.Join(cfg.Plugins, cfg.Driver)
	for _, dir := range []string{sockets, cfg.CDI, cfg.Files} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	p := &plugin{Config: cfg}
	h, err := kubeletplugin.Start(ctx, p, kubeletplugin.DriverName(cfg.Driver), kubeletplugin.KubeClient(cfg.Kube), kubeletplugin.NodeName(cfg.Node),
		kubeletplugin.PluginDataDirectoryPath(sockets), kubeletplugin.RegistrarDirectoryPath(cfg.Registry),
		// A claim that waits for light holds up no other. Two calls for one claim write the same.
		kubeletplugin.Serialize(false), kubeletplugin.HealthService(false))
	if err != nil {
		return err
	}
	if cfg.Told != nil {
		cfg.Told("start", nil)
	}
	cfg.Log.Info("serves the kubelet", "node", cfg.Node, "sockets", sockets)
	<-ctx.Done()
	h.Stop()
	return nil
}

// PrepareResourceClaims waits for the light of each claim's ring.
func (p *plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := p.prepare(ctx, claim)
		out[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
		if p.Told != nil {
			p.Told(HandOut, err)
		}
		if err != nil {
			p.Log.Warn("claim not prepared; the kubelet asks again", "claim", claim.Namespace+"/"+claim.Name, "err", err)
		} else {
			p.Log.Info("claim prepared", "claim", claim.Namespace+"/"+claim.Name)
		}
	}
	return out, nil
}

// prepare hands out one claim.
func (p *plugin) prepare(ctx context.Context, claim *resourceapi.ResourceClaim) (devices []kubeletplugin.Device, err error) {
	h := controller.HeldBy(p.Driver, claim)
	if h == nil {
		return nil, errors.New("no ring and no circuits are allocated to the claim")
	}
	v, err := p.ready(ctx, controller.JobOf(p.Cluster, claim), h)
	if err != nil {
		return nil, err
	}
	name, err := p.write(ctx, claim.UID, v)
	if err != nil {
		return nil, err
	}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver == p.Driver {
			devices = append(devices, kubeletplugin.Device{Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device, CDIDeviceIDs: []string{name}})
		}
	}
	return devices, nil
}

// ready waits for light on every link of a job. A claim that was given another
// ring has its old job for a moment.
func (p *plugin) ready(ctx context.Context, id string, h *controller.Held) (v *job.View, err error) {
	for {
		v, err = p.Planner.Get(ctx, id)
		switch wire := (*proto.Error)(nil); {
		case err == nil && !h.Is(v):
			err = fmt.Errorf("the claim has %v, and job %s was asked for another: it is given back first", h, id)
		case err == nil && v.State == job.Ready:
			return v, nil
		case err == nil:
			err = fmt.Errorf("waits for light: job %s is %s: %s", id, v.State, v.Cause)
		case !errors.As(err, &wire) || wire.Code != proto.NotFound:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(between):
		}
	}
}

// UnprepareResourceClaims takes away what was written for claims.
func (p *plugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	out := map[types.UID]error{}
	for _, c := range claims {
		out[c.UID] = p.remove(c.UID)
		p.Log.Info("claim given up", "claim", c.String(), "err", out[c.UID])
	}
	return out, nil
}

// HandleError is told what fails in the background; this plugin publishes nothing there.
func (p *plugin) HandleError(_ context.Context, err error, msg string) {
	p.Log.Warn(msg, "err", err)
}

// WatchHealthStatus is not served: a ring that suffers is tainted by the controller.
func (p *plugin) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}
