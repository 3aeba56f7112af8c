package planner

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// confirm says to the planner what a router was read back to hold.
func (w *coreWorld) confirm(router, id string, got job.Routed) proto.OpReply {
	text, err := json.Marshal(got)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.ask(proto.OpRequest{Noun: proto.NounRouted, Name: router + "/" + id, Text: proto.Part(text), Author: "test"})
}

// routerWorld is a core whose routers confirm, with a job that has its light.
func routerWorld(t *testing.T, core *fabric.Core, wish string) *coreWorld {
	t.Helper()
	core.Routers = []fabric.Tier{fabric.TierLeaves, fabric.TierSpines}
	if core.Direct != nil {
		core.Routers = []fabric.Tier{fabric.TierServers}
	}
	w := startedWorld(t, core)
	if r := w.put("a", wish); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	if v := w.job("a"); v.State != job.Forming || v.Confirmed != v.Links || v.Routers == 0 || v.RoutersConfirmed != 0 || !strings.Contains(v.Cause, "have not confirmed") {
		t.Fatalf("all has light, and no router said anything: %+v", v)
	}
	return w
}

// Goal: where a core names its routers, a job is ready when each was read back to hold
// its routes, over restarts too; one that does not is named with its words, and is an
// alarm; what a job that is over may have left is owed, and keeps the next from ready.
// Method: every kind of core; a router that is silent, wrong, late, and one that lost its
// routes.
func TestJobIsReadyWithItsRoutes(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			w := routerWorld(t, k.core(), k.some)
			routers := w.p.Jobs.Routers()
			last := routers[len(routers)-1]
			for _, r := range routers[:len(routers)-1] {
				if a := w.confirm(r.Router, "a", job.Routed{Has: r.Jobs[0].Want}); a.Code != proto.OK {
					t.Fatalf("%+v", a)
				}
			}
			if v := w.job("a"); v.State != job.Forming || v.Cause != "routes: "+last.Router+" has not confirmed" {
				t.Errorf("%+v", v)
			}
			if r := w.confirm(last.Router, "a", job.Routed{Has: "0123"}); r.Code != proto.Conflict || r.Field != "has" || r.Limit != last.Jobs[0].Want {
				t.Errorf("others than wanted: %+v", r)
			}
			if r := w.confirm(last.Router, "a", job.Routed{Says: "no such port: up9"}); r.Code != proto.OK {
				t.Errorf("%+v", r)
			}
			if v := w.job("a"); v.State != job.Forming || v.Cause != "routes: "+last.Router+": no such port: up9" {
				t.Errorf("%+v", v)
			}
			alarms := w.ask(proto.OpRequest{Noun: proto.NounAlarms}).Alarms
			if !slices.ContainsFunc(alarms, func(a proto.AlarmStatus) bool {
				return a.Check == "routes" && a.Subject == last.Router && strings.Contains(a.Why, "up9")
			}) {
				t.Errorf("no alarm: %+v", alarms)
			}
			w.start()
			w.run(2 * time.Second)
			if v := w.job("a"); v.State != job.Forming || v.RoutersConfirmed != len(routers)-1 {
				t.Errorf("after a restart: %+v", v)
			}
			w.confirm(last.Router, "a", job.Routed{Has: last.Jobs[0].Want})
			if v := w.job("a"); v.State != job.Ready || v.Cause != "" {
				t.Fatalf("%+v", v)
			}
			gen := w.job("a").Generation
			w.start()
			w.run(2 * time.Second)
			if v := w.job("a"); v.State != job.Ready || v.Generation != gen {
				t.Errorf("ready, and after a restart %+v", v)
			}
			w.confirm(last.Router, "a", job.Routed{Says: "it has none"})
			if v := w.job("a"); v.State != job.Degraded || !strings.Contains(v.Cause, last.Router) {
				t.Errorf("a router that lost its routes: %+v", v)
			}
			w.owes(routers, k.some)
		})
	}
}

// owes: routes of a released job are to be taken away before those of another count.
func (w *coreWorld) owes(routers []job.Router, wish string) {
	t := w.t
	t.Helper()
	w.release("a")
	w.start()
	w.run(time.Second)
	for _, r := range w.p.Jobs.Routers() {
		if len(r.Jobs) != 1 || r.Jobs[0].Want != "" || r.Jobs[0].Held {
			t.Errorf("after the end: %+v", r)
		}
	}
	w.put("b", wish)
	w.run(2 * time.Second)
	for _, r := range w.p.Jobs.Routers() {
		if len(r.Jobs) != 2 || r.Jobs[0].Job != "a" {
			t.Fatalf("first what is over: %+v", r)
		}
		if a := w.confirm(r.Router, "b", job.Routed{Has: r.Jobs[1].Want}); a.Code != proto.Conflict || a.Field != "router" {
			t.Errorf("%+v", a)
		}
		if v := w.job("b"); v.State == job.Ready {
			t.Errorf("%+v", v)
		}
		if a := w.confirm(r.Router, "a", job.Routed{Has: "aa"}); a.Code != proto.Conflict {
			t.Errorf("%+v", a)
		}
		w.confirm(r.Router, "a", job.Routed{})
		w.confirm(r.Router, "a", job.Routed{})
		w.confirm(r.Router, "b", job.Routed{Has: r.Jobs[1].Want})
	}
	if v := w.job("b"); v.State != job.Ready || v.RoutersConfirmed != len(routers) {
		t.Errorf("%+v", v)
	}
	for _, x := range []struct {
		router, id string
		text       string
		code       proto.Code
	}{{"leaf999", "b", `{"has":"aa"}`, proto.NotFound}, {"leaf0", "..", `{}`, proto.Invalid}, {routers[0].Router, "b", `{"held":true}`, proto.Invalid}, {"", "b", `{}`, proto.Invalid}} {
		if r := w.ask(proto.OpRequest{Noun: proto.NounRouted, Name: x.router + "/" + x.id, Text: proto.Part(x.text)}); r.Code != x.code {
			t.Errorf("%+v: %+v", x, r)
		}
	}
}

// Goal: a fabric that names no routers has ready jobs without any, and a place that is
// given back, or one that changes, takes routes with it.
func TestRoutesFollowTheJob(t *testing.T) {
	w := startedWorld(t, smallCore())
	w.put("a", circuitKinds[0].some)
	w.run(2 * time.Second)
	if v := w.job("a"); v.State != job.Ready || v.Routers != 0 || len(w.p.Jobs.Routers()) != 0 {
		t.Errorf("%+v", v)
	}
	w = routerWorld(t, smallCore(), `{"hold_ms":30000,"circuits":{"tp":4,"pp":2,"dp":10}}`)
	w.run(40 * time.Second)
	if v := w.job("a"); !strings.Contains(w.heard("a"), "forming, waiting") {
		t.Errorf("not ready in time: %+v %s", v, w.heard("a"))
	}
}

// inNamespace runs words as a router would that has a shell.
func inNamespace(t *testing.T, name, words string) string {
	t.Helper()
	cmd := exec.Command("ip", "netns", "exec", name, "sh")
	cmd.Stdin = strings.NewReader(words)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s: %v", name, err)
	}
	return string(out)
}

// Goal: real kernels take what the files say, say so themselves, and what is not so, not
// all, or another's is found.
// Method: a network namespace for each device of a job of each kind of core; nftables and
// iproute2, and FRR's own daemons where they are; damage done behind our back.
// Run by RINGLIGHT_NETNS=1, as root.
func TestRoutersOfRealKernels(t *testing.T) {
	if os.Getenv("RINGLIGHT_NETNS") == "" {
		t.Skip("RINGLIGHT_NETNS=1 runs it, as root with iproute2, nftables and FRR")
	}
	for _, k := range circuitKinds {
		w := routerWorld(t, k.core(), k.some)
		v := w.job("a")
		for n, r := range w.p.Jobs.Routers() {
			text, _, err := v.File("routes_"+r.Router+".linux", job.Split{})
			if err != nil {
				t.Fatal(err)
			}
			inKernel(t, fmt.Sprintf("ringlight-%d", n), r.Router, string(text))
			if text, _, err = v.File("routes_"+r.Router+".frr", job.Split{}); err == nil && n == 0 {
				inFRR(t, r.Router, string(text))
			}
		}
	}
}

// inKernel judges one device.
func inKernel(t *testing.T, ns, router, text string) {
	sh := func(format string, args ...any) {
		if out, err := exec.Command("sh", "-ec", fmt.Sprintf(format, args...)).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", router, err, out)
		}
	}
	sh("ip netns add %[1]s; ip -n %[1]s link set lo up", ns)
	defer sh("ip netns del %s", ns)
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`default via \S+ dev (\S+)`).FindAllStringSubmatch(text, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			sh("ip -n %s link add %s type ifb; ip -n %s link set %s up", ns, m[1], ns, m[1])
		}
	}
	say := func(words string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return inNamespace(t, ns, words)
	}
	ask := func() string { return say(job.AskRoutes("linux", "a")) }
	holds := ask()
	if err := job.CheckRoutes("linux", "a", "", holds); err != nil {
		t.Errorf("%s: it holds nothing: %v", router, err)
	}
	if err := job.CheckRoutes("linux", "a", text, holds); err == nil {
		t.Errorf("%s: nothing was told, and all is there", router)
	}
	for range 2 { // told again is the same
		if err := job.CheckRoutes("linux", "a", text, say(job.PushRoutes("linux", "a", text, holds))); err != nil {
			t.Fatalf("%s: %v", router, err)
		}
	}
	for _, damage := range []string{
		"nft flush chain ip ringlight-a prerouting",
		"nft add rule ip ringlight-a prerouting ip saddr 10.9.9.9 accept",
		"nft -a list chain ip ringlight-a prerouting | sed -n 's/.*handle \\([0-9]*\\)$/\\1/p' | tail -1 | xargs nft delete rule ip ringlight-a prerouting handle",
		"nft delete table ip ringlight-a",
		"ip rule del fwmark $(ip rule show | sed -n 's/.*fwmark \\(0x52[0-9a-f]*\\) .*/\\1/p' | head -1)",
		"ip route flush table $(ip rule show | sed -n 's/.*fwmark 0x52.* lookup \\([0-9]*\\).*/\\1/p' | head -1)",
	} {
		if strings.Contains(damage, "ip ru") && !strings.Contains(text, "ip rule add") {
			continue
		}
		inNamespace(t, ns, damage+"\n")
		if err := job.CheckRoutes("linux", "a", text, ask()); err == nil {
			t.Errorf("%s: after %s all is there", router, damage)
		}
		if err := job.CheckRoutes("linux", "a", text, say(job.PushRoutes("linux", "a", text, ask()))); err != nil {
			t.Errorf("%s: after %s: %v", router, damage, err)
		}
	}
	half := strings.Replace(text, "EOF\nip route", "EOF\nexit 3\nip route", 1) // it was ended on its way
	inNamespace(t, ns, "nft delete table ip ringlight-a; ip rule flush; ip rule add lookup main pref 32766; "+half)
	if err := job.CheckRoutes("linux", "a", text, ask()); err == nil && strings.Contains(text, "ip route") {
		t.Errorf("%s: half of it is all", router)
	}
	if gone := say(job.PushRoutes("linux", "a", "", ask())); job.CheckRoutes("linux", "a", "", gone) != nil || job.CheckRoutes("linux", "a", text, gone) == nil {
		t.Errorf("%s: taken away: %s", router, gone)
	}
	for _, answer := range []string{"", "ringlight-end", "garbage\n", strings.TrimSuffix(strings.TrimSpace(holds), "ringlight-end")} {
		if job.CheckRoutes("linux", "a", text, answer) == nil {
			t.Errorf("%s: %q counts as all", router, answer)
		}
	}
	if job.CheckRoutes("linux", "a", "", "") == nil {
		t.Errorf("%s: saying nothing is holding nothing", router)
	}
}

// inFRR judges one device by FRR's own configuration: its daemons in a namespace of
// their own, where the device's ports are.
func inFRR(t *testing.T, router, text string) {
	if _, err := exec.LookPath("vtysh"); err != nil {
		t.Log("no vtysh: FRR is not judged")
		return
	}
	ports := ""
	for _, m := range regexp.MustCompile(`(?m)set nexthop \S+ (\S+)$`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(ports+" ", m[1]+" ") {
			ports += " " + m[1]
		}
	}
	begin := "set -e; ip netns add ringlight-frr; ip -n ringlight-frr link set lo up; for p in " + ports + "; do ip -n ringlight-frr link add $p type ifb; ip -n ringlight-frr link set $p up; done; " +
		"for d in zebra pbrd; do ip netns exec ringlight-frr /usr/lib/frr/$d -d -A 127.0.0.1 >/dev/null 2>&1; done; sleep 1"
	if out, err := exec.Command("sh", "-c", begin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer exec.Command("sh", "-c", "kill $(cat /var/run/frr/pbrd.pid /var/run/frr/zebra.pid); ip netns del ringlight-frr").Run()
	say := func(words string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh")
		cmd.Stdin = strings.NewReader(words)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	ask := func() string { return say(job.AskRoutes("frr", "a")) }
	if err := job.CheckRoutes("frr", "a", "", ask()); err != nil {
		t.Fatalf("%s: zebra, pbrd and vtysh must run: %v", router, err)
	}
	for range 2 {
		if err := job.CheckRoutes("frr", "a", text, say(job.PushRoutes("frr", "a", text, ask()))); err != nil {
			t.Fatalf("%s: %v", router, err)
		}
	}
	seq := regexp.MustCompile(`(?m)^pbr-map \S+ seq \d+$`).FindString(text)
	for _, damage := range []string{"no " + seq, strings.Replace(seq, "seq 1", "seq 699", 1) + "' -c 'match src-ip 10.9.9.9/32"} {
		if out, err := exec.Command("sh", "-c", "vtysh -c 'configure terminal' -c '"+damage+"'").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if job.CheckRoutes("frr", "a", text, ask()) == nil {
			t.Errorf("%s: after %s all is there", router, damage)
		}
	}
	if err := job.CheckRoutes("frr", "a", text, say(job.PushRoutes("frr", "a", text, ask()))); err != nil {
		t.Errorf("%s: mended: %v", router, err)
	}
	if err := job.CheckRoutes("frr", "a", "", say(job.PushRoutes("frr", "a", "", ask()))); err != nil {
		t.Errorf("%s: taken away: %v", router, err)
	}
}
