package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// frrSays is what a router of FRR 8.4.4 says: ocs0 is of a group whose routes come by a
// map, ocs1 has that map itself, ocs2 has none.
const frrSays = `noise
ringlight-read
Building configuration...

Current configuration:
!
frr version 8.4.4
!
router bgp 65002
 neighbor core peer-group
 neighbor core remote-as external
 neighbor ocs0 interface peer-group core
 neighbor ocs1 interface remote-as external
 neighbor ocs2 interface remote-as external
 !
 address-family ipv4 unicast
  redistribute connected
  neighbor core route-map own in
  neighbor ocs1 route-map own in
 exit-address-family
exit
!
router bgp 65003 vrf red
 neighbor ocs3 interface remote-as external
exit
!
end
ringlight-routes
10.99.0.1 nhid 8 via inet6 fe80::1 dev down0 proto bgp metric 20
10.99.0.6 nhid 16 proto bgp metric 20 \	nexthop via inet6 fe80::2 dev ocs0 weight 1 \	nexthop via inet6 fe80::3 dev ocs2 weight 1 
10.99.0.7 nhid 10 via inet6 fe80::2 dev ocs0 proto bgp metric 20 
10.99.0.8 nhid 12 via inet6 fe80::4 dev ocs3 table 10 proto bgp metric 20 
default via 169.254.0.2 dev ocs1 table 1375862785 onlink 
default nhid 20 via 10.1.1.2 dev ocs1 table 10000 proto pbr metric 20 
local 10.1.0.1 dev ocs0 table local proto kernel scope host src 10.1.0.1 
broadcast 10.1.0.255 dev ocs0 table local proto kernel scope link src 10.1.0.1 
broadcast 10.1.3.255 dev ocs3 table 10 proto kernel scope link src 10.1.3.1 
local fe80::9 dev ocs3 table 10 proto none metric 0 pref medium
fe80::/64 dev ocs0 proto kernel metric 256 pref medium
fe80::/64 dev ocs1 proto kernel metric 256 pref medium
multicast ff00::/8 dev ocs0 table local proto kernel metric 256 pref medium
ff00::/8 dev ocs3 table 10 metric 256 pref medium
ringlight-end
`

// applied is what a configuration has after words for it: enough of FRR for these.
func applied(says, words string) string {
	_, words, _ = strings.Cut(words, "<<'EOF'\n")
	words, _, _ = strings.Cut(words, "\nEOF\n")
	router, family := "", ""
	for line := range strings.SplitSeq(words, "\n") {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(word, "router bgp"):
			router = line + "\n"
		case strings.HasPrefix(word, "address-family"):
			family = line + "\n"
		}
		set := strings.HasPrefix(word, "neighbor")
		if !set && !strings.HasPrefix(word, "no neighbor") {
			continue
		}
		before, block, _ := strings.Cut(says, router)
		block, after, _ := strings.Cut(block, "\nexit\n")
		if block += "\n"; !strings.Contains(block, family) {
			block += family + " exit-address-family\n"
		}
		head, body, _ := strings.Cut(block, family)
		body, tail, _ := strings.Cut(body, " exit-address-family\n")
		port := strings.Fields(strings.TrimPrefix(word, "no "))[1]
		body = regexp.MustCompile(`(?m)^  neighbor `+port+` route-map \S+ in\n`).ReplaceAllString(body, "")
		if set {
			body += line + "\n"
		}
		says = before + router + head + family + body + " exit-address-family\n" + strings.TrimSuffix(tail, "\n") + "\nexit\n" + after
	}
	return says
}

// Goal: a port is drained when both families have our map and no route leads by it, and
// in use when neither has; a map that was there is called meanwhile, and in its place
// again afterwards; a router that does not end what it says has said nothing.
// Method: ports with a map of their own, of their group, with none, and of another VRF.
func TestPortsOfFRRAreDrained(t *testing.T) {
	routeless := regexp.MustCompile(`(?m)^.*dev ocs\d (weight|.*proto bgp).*\n`).ReplaceAllString(frrSays, "")
	for port, call := range map[string]string{"ocs0": "call own", "ocs1": "call own", "ocs2": "", "ocs3": ""} { // any order: each by itself
		on, off := PortDrain{Port: port, Drained: true}, PortDrain{Port: port}
		if err := CheckDrain(off, frrSays); err != nil {
			t.Errorf("%s is in use: %v", port, err)
		}
		if err := CheckDrain(on, routeless); err == nil {
			t.Errorf("%s has no map", port)
		}
		words := PushDrains([]PortDrain{on}, routeless)
		if strings.Contains(words, "call") != (call != "") || !strings.Contains(words, call) || !strings.Contains(words, "grep -qE ' dev ("+port+")( |$)'") || port == "ocs3" && !strings.Contains(words, "router bgp 65003 vrf red\n") {
			t.Errorf("%s: %s", port, words)
		}
		then := applied(routeless, words)
		if err := CheckDrain(on, then); err != nil {
			t.Errorf("%s: %v\n%s", port, err, then)
		}
		if again := PushDrains([]PortDrain{on}, then); strings.Contains(again, "route-map") {
			t.Errorf("%s is drained: %s", port, again)
		}
		back := PushDrains([]PortDrain{off}, then)
		after := applied(then, back)
		if err := CheckDrain(off, after); err != nil || CheckDrain(on, after) == nil {
			t.Errorf("%s: %v\n%s", port, err, after)
		}
		if strings.Count(after, "route-map own in") != strings.Count(frrSays, "route-map own in") || strings.Contains(after, drainMap) || !strings.Contains(back, "\nno route-map "+drainMap) {
			t.Errorf("%s: not as it was: %s\n%s", port, back, after)
		}
	}
	drained := applied(frrSays, PushDrains([]PortDrain{{Port: "ocs0", Drained: true}, {Port: "ocs2", Drained: true}}, frrSays))
	if err := CheckDrain(PortDrain{Port: "ocs0", Drained: true}, drained); err == nil || !strings.Contains(err.Error(), "2 routes by ocs0, the first to 10.99.0.6") {
		t.Errorf("%v", err)
	}
	if one := PushDrains([]PortDrain{{Port: "ocs0"}}, drained); strings.Contains(one, "no route-map "+drainMap+"\n") {
		t.Errorf("ocs2 has it still: %s", one)
	}
	for port, says := range map[string]string{"ocs3": "1 route by ocs3, the first to 10.99.0.8", "ocs1": ""} { // any order: each by itself
		on := PortDrain{Port: port, Drained: true}
		if err := CheckDrain(on, applied(frrSays, PushDrains([]PortDrain{on}, frrSays))); (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", port, err)
		}
	}
	bare := strings.ReplaceAll(frrSays, "  neighbor ocs1 route-map own in\n", "")
	bare = applied(bare, PushDrains([]PortDrain{{Port: "ocs2", Drained: true}}, bare))
	if swap := PushDrains([]PortDrain{{Port: "ocs2"}, {Port: "ocs1", Drained: true}}, bare); !strings.Contains(swap, "neighbor ocs1 route-map "+drainMap+" in\n") || strings.Contains(swap, "\nno route-map") {
		t.Errorf("ocs1 has it now: %s", swap)
	}
	for _, text := range []string{"", strings.TrimSuffix(routeless, "ringlight-end\n"), strings.Replace(routeless, "ringlight-routes\n", "", 1)} {
		if CheckDrain(PortDrain{Port: "ocs9"}, text) == nil {
			t.Errorf("not all was said: %.60q", text)
		}
	}
	if err := CheckDrain(PortDrain{Port: "ocs9", Drained: true}, routeless); err != nil {
		t.Errorf("no neighbour, no route: %v", err)
	}
}

// Goal: a router is waited for 5 s at most, however many ports it drains, and nothing is
// left on it, also where FRR refuses.
// Method: the words run by a shell, with commands in FRR's, the kernel's and sleep's place.
func TestDrainWordsLeaveNothing(t *testing.T) {
	bin, temp := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"vtysh": `[ "$1" = -c ] || exit $REFUSES`,
		"ip":    "[ $2 = -6 ] || printf '10.0.0.0/8 dev ocs1 proto bgp \\n10.0.0.0/8 dev ocs2 table 10 proto bgp\\n'",
		"sleep": "echo >>" + filepath.Join(bin, "slept"),
	} { // any order: files
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(refuses string, ports ...PortDrain) error {
		cmd := exec.Command("sh")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+temp, "REFUSES="+refuses)
		cmd.Stdin = strings.NewReader(PushDrains(ports, frrSays))
		out, err := cmd.CombinedOutput()
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("refuses %s: %v is left", refuses, left)
		}
		t.Logf("refuses %s: %v\n%s", refuses, err, out)
		return err
	}
	both := []PortDrain{{Port: "ocs2", Drained: true}, {Port: "ocs1", Drained: true}}
	if run("3", both...) == nil {
		t.Error("a refusal is not told")
	}
	if _, err := os.Stat(filepath.Join(bin, "slept")); err == nil {
		t.Error("what was refused is waited for")
	}
	if err := run("0", both...); err != nil {
		t.Error(err)
	}
	if slept, _ := os.ReadFile(filepath.Join(bin, "slept")); len(slept) != 50 {
		t.Errorf("%d tenths of a second", len(slept))
	}
}
