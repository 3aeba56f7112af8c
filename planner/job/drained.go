package job

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ringlight/proto"
)

// Ports of routers that run FRR, drained. A link is drained as RFC 8326 has it, by both
// its routers: what either hears over it gets the community graceful-shutdown and the
// lowest preference, so that neither sends by it, nor who hears it from them, wherever
// there is another way; no route is withdrawn before that is used. FRR has that for a
// neighbour by itself since 8.5; a route map of ours does it in any. A map that is there
// is called by ours, and is in its place again afterwards.

const (
	drainMap   = "ringlight-drain"  // where there was none; else with its name behind a dash
	drainReads = "ringlight-routes" // before what the kernel forwards by
	// Of each table, as a port may be of a VRF, a line a route.
	drainRoutes = "ip -o -4 route show table all && ip -o -6 route show table all"
	// Those that lead no packet on, or a job's own, which is not moved: policies and marks.
	drainOthers = `^(local|broadcast|multicast|anycast|ff00::/8) | proto (kernel|pbr|195)( |$)| table (local|137[56][0-9]{6})( |$)`
)

var drainFamilies = []string{"ipv4 unicast", "ipv6 unicast"}

// AskDrains has a router of FRR say what maps its ports have, and what it forwards by.
func AskDrains() string {
	return "\necho ringlight-read && vtysh -c 'show running-config' && echo " + drainReads + " && " + drainRoutes + " && echo " + readEnd + "\n"
}

// frrPort is a port as a configuration of FRR has it.
type frrPort struct {
	bgp   string            // the line with which its router begins; "": no neighbour is there
	group string            // of peers
	maps  map[string]string // of what comes in, by family
	of    map[string]string // of its group
}

// frrPortOf reads it off a running configuration.
func frrPortOf(config, port string) (p frrPort) {
	p.maps, p.of = map[string]string{}, map[string]string{}
	member := regexp.MustCompile(`^neighbor ` + regexp.QuoteMeta(port) + ` (?:interface )?(?:v6only )?(?:peer-group (\S+)|interface|remote-as)`)
	incoming := regexp.MustCompile(`^neighbor (\S+) route-map (\S+) in$`)
	head, family := "", ""
	groups := map[string]map[string]string{}
	for line := range strings.SplitSeq(config, "\n") {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "router bgp "):
			if p.bgp != "" {
				return p
			}
			head, family, groups = word, "", map[string]map[string]string{}
		case line != "" && line[0] != ' ' && line[0] != '!':
			head = ""
		case strings.HasPrefix(word, "address-family "):
			family = strings.TrimPrefix(word, "address-family ")
		}
		if head == "" {
			continue
		}
		if m := member.FindStringSubmatch(word); m != nil {
			p.bgp = head
			if m[1] != "" {
				p.group = m[1]
				if groups[p.group] == nil {
					groups[p.group] = map[string]string{}
				}
				p.of = groups[p.group]
			}
		}
		if m := incoming.FindStringSubmatch(word); m != nil && m[1] == port {
			p.maps[family] = m[2]
		} else if m != nil {
			if groups[m[1]] == nil {
				groups[m[1]] = map[string]string{}
			}
			groups[m[1]][family] = m[2]
		}
	}
	return p
}

func (p *frrPort) drained(family string) bool {
	return p.maps[family] == drainMap || strings.HasPrefix(p.maps[family], drainMap+"-")
}

// PushDrains has a router of FRR, which said what it holds, drain ports or use them
// again, and say so; while routes lead by one that it drains it waits, for some seconds.
func PushDrains(ports []PortDrain, holds string) string {
	config, _, _ := strings.Cut(afterLine(holds, "ringlight-read"), drainReads)
	var maps, peers, gone, drained []string
	for _, d := range ports {
		p := frrPortOf(config, d.Port)
		if d.Drained {
			drained = append(drained, d.Port)
		}
		if p.bgp == "" {
			continue
		}
		peers = append(peers, p.bgp)
		for _, family := range drainFamilies {
			peers = append(peers, " address-family "+family)
			switch former, is := strings.CutPrefix(p.maps[family], drainMap+"-"); {
			case d.Drained == p.drained(family):
			case d.Drained:
				name, call := drainMap, ""
				if m := cmp.Or(p.maps[family], p.of[family]); m != "" {
					name, call = drainMap+"-"+m, " call "+m+"\n"
				}
				maps = append(maps, "route-map "+name+" permit 10\n"+call+" set community graceful-shutdown additive\n set local-preference 0\nexit")
				peers = append(peers, "  neighbor "+d.Port+" route-map "+name+" in")
			default:
				gone = append(gone, p.maps[family])
				peers = append(peers, "  no neighbor "+d.Port+" route-map "+p.maps[family]+" in")
				if is && former != p.of[family] {
					peers = append(peers, "  neighbor "+d.Port+" route-map "+former+" in")
				}
			}
			peers = append(peers, " exit-address-family")
		}
		peers = append(peers, "exit")
	}
	slices.Sort(maps)
	slices.Sort(gone)
	for _, name := range slices.Compact(gone) {
		users := strings.Count(config, " route-map "+name+" in\n")
		for _, line := range peers {
			if strings.HasSuffix(line, " route-map "+name+" in") {
				users += map[bool]int{true: -1, false: 1}[strings.HasPrefix(line, "  no ")]
			}
		}
		if users == 0 { // without the map a neighbour's routes are refused
			peers = append(peers, "no route-map "+name)
		}
	}
	text := strings.Join(append(slices.Compact(maps), peers...), "\n")
	wait := ""
	if len(drained) > 0 {
		wait = fmt.Sprintf("n=0; while [ $n -lt 50 ] && { %s; } | grep -vE '%s' | grep -qE ' dev (%s)( |$)'; do n=$((n+1)); sleep 0.1; done\n", drainRoutes, drainOthers, strings.Join(drained, "|"))
	}
	return "set -e\nfile=$(mktemp)\ntrap 'rm -f $file' EXIT\ncat >$file <<'EOF'\n" + text + "\nEOF\nvtysh -f $file >/dev/null\n" + wait + AskDrains()
}

// afterLine is what comes after the last line that is a word.
func afterLine(text, word string) string {
	if at := strings.LastIndex("\n"+text, "\n"+word+"\n"); at >= 0 {
		return ("\n" + text)[at+len(word)+2:]
	}
	return ""
}

// CheckDrain says why a router of FRR does not drain a port, or does not use it again, by
// what it said: a link is drained when no route leads by it.
func CheckDrain(d PortDrain, answer string) error {
	says := func(format string, args ...any) error {
		return &proto.Error{Code: proto.Conflict, Field: "port", Limit: map[bool]string{true: "drained", false: "in use"}[d.Drained], Reason: fmt.Sprintf(format, args...)}
	}
	config, routes, ok := strings.Cut(afterLine(answer, "ringlight-read"), drainReads+"\n")
	if !ok || !regexp.MustCompile(`(?m)^`+readEnd+`\s*$`).MatchString(routes) {
		return says("the answer has no end: %.120q", answer)
	}
	p := frrPortOf(config, d.Port)
	for _, family := range drainFamilies {
		if p.bgp != "" && p.drained(family) != d.Drained {
			return says("%s of %s: the map of what comes in is %q", family, d.Port, p.maps[family])
		}
	}
	if !d.Drained {
		return nil
	}
	n, first, others := 0, "", regexp.MustCompile(drainOthers)
	for line := range strings.SplitSeq(routes, "\n") {
		if strings.Contains(line+" ", " dev "+d.Port+" ") && !others.MatchString(line) {
			prefix, _, _ := strings.Cut(line, " ")
			n, first = n+1, cmp.Or(first, prefix)
		}
	}
	if n > 0 {
		return says("%s by %s, the first to %s: is there another way?", proto.Count(n, "route"), d.Port, first)
	}
	return nil
}
