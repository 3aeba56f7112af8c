package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// frrDir is where distributions have the daemons of FRR.
const frrDir = "/usr/lib/frr"

// LacksRouters is why no leaf or spine can be a router here, nil: they can.
func LacksRouters() error {
	for _, d := range []string{"zebra", "bgpd"} {
		if _, err := os.Stat(filepath.Join(frrDir, d)); err != nil {
			return fmt.Errorf("testbed: needs FRR: %w", err)
		}
	}
	if _, err := exec.LookPath("vtysh"); err != nil {
		return errors.New("testbed: needs vtysh, of FRR")
	}
	if _, err := user.Lookup("frr"); err != nil {
		return fmt.Errorf("testbed: needs the user of FRR: %w", err)
	}
	return nil
}

// routers are the leaves and spines of pods as routers: zebra and bgpd of FRR in each
// one's namespace, with a neighbour on every port, unnumbered, and an AS number of each,
// so that there is a way round by any of them.
type routers struct {
	b   *Bed
	dir string // of their sockets, one folder each
}

// firstAS is the first of the private numbers of four bytes.
const firstAS int64 = 4_200_000_000

// StartRouters has every device of a core route by BGP, and gives the command that is a
// shell on router $ROUTER.
func (b *Bed) StartRouters() (shell string, err error) {
	frr, err := user.Lookup("frr")
	if err != nil {
		return "", err
	}
	r := &routers{b, filepath.Join(os.TempDir(), b.owner.name("frr"))}
	b.router = r
	uid, _ := strconv.Atoi(frr.Uid) // numbers, on Linux
	gid, _ := strconv.Atoi(frr.Gid)
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return "", err
	}
	for n, d := range b.made {
		if strings.HasPrefix(d, "node") {
			continue
		}
		at := filepath.Join(r.dir, d)
		if err := os.Mkdir(at, 0o755); err != nil {
			return "", err
		}
		if err := os.Chown(at, uid, gid); err != nil {
			return "", err
		}
		if err := ip(b.NS(d), "addr add "+routerAddress(n)+"/32 dev lo"); err != nil {
			return "", err
		}
		for name, text := range map[string]string{"zebra.conf": "hostname " + d + "\n", "bgpd.conf": r.config(n, d),
			"vtysh": fmt.Sprintf("#!/bin/sh\nexec %s --vty_socket %s \"$@\"\n", "/usr/bin/vtysh", at)} { // any order
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o755); err != nil {
				return "", err
			}
		}
		for _, daemon := range []string{"zebra", "bgpd"} {
			if err := r.run(d, daemon); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf(`PATH="%s/$ROUTER:$PATH" ip netns exec "%s$ROUTER" sh`, r.dir, strings.TrimSuffix(b.NS("x"), "x")), nil
}

// run starts a daemon of a device.
func (r *routers) run(device, daemon string) error {
	at := filepath.Join(r.dir, device)
	cmd := exec.Command(filepath.Join(frrDir, daemon), "-d", "-F", "datacenter", "--vty_socket", at, "-z", filepath.Join(at, "zserv"),
		"-i", filepath.Join(at, daemon+".pid"), "-f", filepath.Join(at, daemon+".conf"), "-P", "0")
	var out []byte
	err := within(r.b.NS(device), func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err != nil {
		return fmt.Errorf("testbed: %s of %s: %w: %s", daemon, device, err, out)
	}
	return nil
}

// signal is sent to a device's bgpd.
func (r *routers) signal(device string, s syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(r.dir, device, "bgpd.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

func routerAddress(n int) string { return fmt.Sprintf("10.%d.%d.1", 64+n/256, n%256) }

// config is bgpd's of the n-th device.
func (r *routers) config(n int, device string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "hostname %s\nrouter bgp %d\n bgp router-id %s\n no bgp ebgp-requires-policy\n no bgp network import-check\n bgp bestpath as-path multipath-relax\n", device, firstAS+int64(n), routerAddress(n))
	for _, port := range r.ports(device) {
		fmt.Fprintf(&b, " neighbor %s interface remote-as external\n", port)
	}
	b.WriteString(" address-family ipv4 unicast\n  redistribute connected\n exit-address-family\nexit\n")
	return b.String()
}

// ports are the names of all of a device: cables, and those at which light ends.
func (r *routers) ports(device string) (out []string) {
	c := r.b.fabric.Core
	if strings.HasPrefix(device, "leaf") {
		return numbered("up", c.Uplinks())
	}
	out = numbered("down", c.LeavesPerPod*c.LeafLinks)
	for _, p := range r.b.optics.ports {
		if p.Device == device {
			out = append(out, p.Name)
		}
	}
	return out
}

// established are the ports of a device over which a neighbour is heard.
func (r *routers) established(device string) (map[string]bool, error) {
	text, err := exec.Command(filepath.Join(r.dir, device, "vtysh"), "-c", "show bgp ipv4 unicast summary json").Output()
	if err != nil {
		return nil, fmt.Errorf("testbed: vtysh of %s: %w", device, err)
	}
	var said struct {
		Peers map[string]struct{ State string }
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("testbed: vtysh of %s: %w", device, err)
	}
	out := map[string]bool{}
	for port, p := range said.Peers { // any order: a set
		out[port] = p.State == "Established"
	}
	return out, nil
}

// settled: a neighbour is heard over every port of spines that has light both ways, and
// over every cable.
func (r *routers) settled() bool {
	light := map[string][]string{}
	for i, p := range r.b.optics.ports {
		if to := r.b.relay.ports[i].to.Load(); to != nowhere && r.b.relay.ports[to].to.Load() == int32(i) {
			light[p.Device] = append(light[p.Device], p.Name)
		}
	}
	for _, d := range r.b.made {
		if !strings.HasPrefix(d, "pod") {
			continue
		}
		up, err := r.established(d)
		light[d] = append(light[d], numbered("down", r.b.fabric.Core.LeavesPerPod*r.b.fabric.Core.LeafLinks)...)
		if err != nil || slices.ContainsFunc(light[d], func(port string) bool { return !up[port] }) {
			return false
		}
	}
	return true
}

// leave takes their folder away, when their namespaces are gone and they with them.
func (r *routers) leave() error { return os.RemoveAll(r.dir) }
