package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/sim/live"
)

// sealFlags say how simulated agents seal, and whom they believe.
type sealFlags struct{ mode, trust, reports, keys string }

func (f *sealFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.mode, "seal", string(guard.Off), "off, warn or enforce: a planner's message that no trusted key has sealed is read, read and logged, or not read")
	fs.StringVar(&f.trust, "trust", "", "trust document of ocsctl pki, with -seal")
	fs.StringVar(&f.reports, "reports", "plain", "plain or sealed: whether agents seal what they report, with the keys in -keys")
	fs.StringVar(&f.keys, "keys", "", "folder with the nodes' keys, as ocsctl pki node writes them")
}

// guards makes a guard for each agent, where there are to be some. An agent without one
// takes seals off all the same, and says so.
func (f *sealFlags) guards(fabric string) (func(proto.NodeID) (live.Guard, error), error) {
	cfg := guard.Config{Mode: guard.Mode(f.mode), Fabric: fabric, Role: proto.RoleNode, TrustFile: f.trust, Reports: f.reports == guard.SealedReports,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if err := guard.CheckKeys(cfg.Mode, f.trust, f.reports, f.keys != "" || !cfg.Reports); err != nil {
		return nil, err
	}
	return func(n proto.NodeID) (live.Guard, error) {
		if !cfg.Mode.On() {
			return live.Guard{Features: guard.Features(cfg.Mode, cfg.Reports)}, nil
		}
		c := cfg
		if c.Reports {
			c.KeyFile = filepath.Join(f.keys, fmt.Sprintf("%s-n-%d.key", fabric, n))
		}
		g, err := guard.New(c)
		return live.Guard{Guard: g, Features: guard.Features(c.Mode, c.Reports)}, err
	}, nil
}
