package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// keyed makes a folder with keys of a planner, a broker and four nodes.
func keyed(t *testing.T) (folder *pki.Folder, broker pki.Issued) {
	t.Helper()
	folder, err := pki.Init(filepath.Join(t.TempDir(), "pki"), "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	request := pki.Request{Names: []proto.Holder{{Fabric: "f1", Kind: proto.HolderPlanner, ID: "a"}}, Role: proto.RolePlanner, Days: 1}
	if _, err := folder.Issue(request); err != nil {
		t.Fatal(err)
	}
	request.Names, request.Role = nil, proto.RoleNode
	for n := range 4 {
		request.Names = append(request.Names, proto.Topics{Fabric: "f1"}.NodeHolder(proto.NodeID(n)))
	}
	if _, err := folder.Issue(request); err != nil {
		t.Fatal(err)
	}
	if broker, err = folder.Broker(pki.Request{Days: 1, Hosts: []string{"127.0.0.1"}}, "b"); err != nil {
		t.Fatal(err)
	}
	return folder, broker
}

// Goal: each simulated agent comes and seals with its own pair, so that the planner tells
// nodes apart and one may not speak for another. Method: four agents with -keys at a broker
// with rights by name, all are heard; then the pair of node 2 is that of node 1, at a broker
// that lets in whom the authority certifies: the planner's guard reads nothing of node 2.
func TestAgentsHaveKeysOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		stolen, named bool
		online        int
		alarm         string
	}{
		"their own": {named: true, online: 4},
		"another's": {stolen: true, online: 3, alarm: "f1/n/1 has no word on ocs/v1/f1/n/2/"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, own := keyed(t)
			ca, trust := folder.Files()
			document, err := os.ReadFile(trust)
			if err != nil {
				t.Fatal(err)
			}
			names, err := seal.ReadTrust(document)
			if err != nil {
				t.Fatal(err)
			}
			to := server.BrokerConfig{Listen: "127.0.0.1:0", CAFile: ca, CertFile: own.CertFile, KeyFile: own.KeyFile}
			if c.named {
				to.Trust = func() *seal.Trust { return names }
			}
			broker, err := server.StartBrokerWith(to)
			if err != nil {
				t.Fatal(err)
			}
			defer broker.Close()
			if c.stolen {
				for _, kind := range []string{".pem", ".key"} {
					text, err := os.ReadFile(filepath.Join(folder.Dir, "f1-n-1"+kind))
					if err == nil {
						err = os.WriteFile(filepath.Join(folder.Dir, "f1-n-2"+kind), text, 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			p := fabric.DefaultParams()
			p.Nodes, p.TP = 4, 16
			f, err := fabric.New(p)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			state := filepath.Join(t.TempDir(), "p.db")
			seen, ended := make(chan bool, 1), make(chan error, 2)
			go func() {
				ended <- server.Run(ctx, server.Config{Fabric: f, Broker: broker.URL(), State: state, CAFile: ca,
					CertFile: filepath.Join(folder.Dir, "f1-planner-a.pem"), KeyFile: filepath.Join(folder.Dir, "f1-planner-a.key"), Log: slog.New(slog.DiscardHandler),
					Seals: server.Seals{Mode: guard.Enforce, TrustFile: trust, Kept: state + ".trust", Reports: true},
					Observe: func(p *planner.Planner) {
						named := slices.ContainsFunc(p.Alarms.List(), func(a proto.AlarmStatus) bool {
							return a.ID == "2/unsealed" && strings.Contains(a.Why, c.alarm)
						})
						if o := p.Overview(); o.Online == c.online && named == (c.alarm != "") {
							select {
							case seen <- true:
							default:
							}
						}
						if p.Overview().Online > c.online {
							t.Error("more nodes than have keys")
						}
					}})
			}()
			go func() {
				ended <- agents(ctx, []string{"-nodes", "4", "-tp", "16", "-modules", "1", "-broker", broker.URL(), "-ca", ca, "-keys", folder.Dir,
					"-seal", "enforce", "-reports", "sealed", "-trust", trust}, quiet)
			}()
			select {
			case <-seen:
			case err := <-ended:
				t.Fatal("ended: ", err)
			}
			cancel()
			for range 2 {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Goal: a folder that lacks a pair is refused before anything begins, by the file's name.
// Method: one file taken away, a pair that is none, and flags that say something else.
func TestMissingKeysAreNamed(t *testing.T) {
	folder, _ := keyed(t)
	ca, trust := folder.Files()
	file := func(name string) string { return filepath.Join(folder.Dir, name) }
	for _, c := range []struct {
		gone, from string   // the file, and what lies in its place; "": nothing
		with       []string // flags
		named      string
	}{
		{"f1-n-3.pem", "", nil, "f1-n-3.pem"},
		{"f1-n-0.key", "", nil, "f1-n-0.key"},
		{"f1-n-2.key", "f1-n-1.key", nil, "f1-n-2.pem"},
		{"", "", []string{"-nodes", "5"}, "f1-n-4.pem"},
		{"", "", []string{"-cert", file("f1-n-1.pem"), "-key", file("f1-n-1.key")}, "-cert and -key"},
		{"", "", []string{"-ca", "", "-broker", defaultBroker}, "keys: nothing would use them"},
		{"f1-n-3.key", "", []string{"-ca", "", "-broker", defaultBroker, "-seal", "enforce", "-trust", trust, "-reports", "sealed"}, "f1-n-3.key"},
	} {
		aside := file(c.gone) + ".aside"
		if c.gone != "" {
			if err := os.Rename(file(c.gone), aside); err != nil {
				t.Fatal(err)
			}
		}
		if c.from != "" {
			text, err := os.ReadFile(file(c.from))
			if err == nil {
				err = os.WriteFile(file(c.gone), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"agents", "-nodes", "4", "-tp", "16", "-modules", "1", "-broker", "mqtts://127.0.0.1:1", "-ca", ca, "-keys", folder.Dir}
		if code, _, errs := run(append(args, c.with...)); code != exitUsage || !strings.Contains(errs, c.named) {
			t.Errorf("%s %q: exit code %d: %s", c.gone, c.with, code, errs)
		}
		if c.gone != "" {
			if err := os.Rename(aside, file(c.gone)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
