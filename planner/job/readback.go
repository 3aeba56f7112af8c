package job

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"ringlight/proto"
)

// Routes on a device: the words on its standard input that have it say what it holds of
// a job, those that change that, and what of an answer is not as it must be. What a
// device was told counts for nothing, what it says then does.

// readEnd ends an answer: without it the device has not said all.
const readEnd = "ringlight-end"

// device is a dialect in which routers are told.
type device struct {
	read  func(job string) string                             // has it say what it holds
	write func(job, text, holds string) string                // has it hold a file's routes; "": none
	rules func(job, text string) (map[string][]string, error) // by block, in the order that counts
}

var devices = map[string]device{
	"linux": {read: linuxRead, write: linuxWrite, rules: linuxRules},
	"frr":   {read: frrRead, write: frrWrite, rules: frrRules},
	"eos":   {read: func(string) string { return "enable\nterminal length 0\nshow running-config\n" }, write: eosWrite, rules: eosRules},
}

func deviceOf(dialect string) (device, error) {
	d, ok := devices[dialect]
	if !ok {
		return d, proto.Wrong("dialect", "linux, frr or eos", "%.40q", dialect)
	}
	return d, nil
}

// AskRoutes has a device say what it holds of a job.
func AskRoutes(dialect, job string) (string, error) {
	d, err := deviceOf(dialect)
	if err != nil {
		return "", err
	}
	return d.read(job), nil
}

// PushRoutes has a device that said what it holds of a job hold a file's routes, "" for
// none, and say so.
func PushRoutes(dialect, job, text, holds string) (string, error) {
	d, err := deviceOf(dialect)
	if err != nil {
		return "", err
	}
	return d.write(job, text, holds) + d.read(job), nil
}

// CheckRoutes says how what a device said that it holds of a job differs from a file's
// routes, "" for none.
func CheckRoutes(dialect, job, text, answer string) error {
	d, err := deviceOf(dialect)
	if err != nil {
		return err
	}
	differs := func(format string, args ...any) error {
		return &proto.Error{Code: proto.Conflict, Field: "routes", Limit: "the routes of the job's file, and no others of it", Reason: fmt.Sprintf(format, args...)}
	}
	if end := regexp.MustCompile(`(?m)^(` + readEnd + `|end)\s*$`); !end.MatchString(answer) {
		return differs("the answer has no end: %.120q", answer)
	}
	want, err := d.rules(job, text)
	if err != nil {
		return err
	}
	has, err := d.rules(job, answer)
	if err != nil {
		return differs("%v", err)
	}
	for _, block := range sortedBlocks(want, has) {
		w, h := want[block], has[block]
		for n := range max(len(w), len(h)) {
			switch {
			case n >= len(h):
				return differs("%s: %d of %d are there, not %.120q", block, len(h), len(w), w[n])
			case n >= len(w):
				return differs("%s: %.120q is there and not wanted", block, h[n])
			case w[n] != h[n]:
				return differs("%s: %.120q, wanted is %.120q", block, h[n], w[n])
			}
		}
	}
	return nil
}

func sortedBlocks(of ...map[string][]string) (out []string) {
	for _, m := range of {
		out = slices.AppendSeq(out, maps.Keys(m)) // any order: sorted below
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func linuxRead(job string) string {
	table := "ringlight-" + job
	return fmt.Sprintf(`
echo ringlight-read &&
nft list tables && { ! nft list tables | grep -qx 'table ip %[1]s' || nft list table ip %[1]s; } &&
ip rule show && { ip route show table all | grep ' table 137[56]' || true; } && echo %[2]s
`, table, readEnd)
}

// linuxWrite: a file is a script of its own, which takes away what was there. Rules and
// tables of ports are of all jobs, and lead nothing anywhere that has no mark.
func linuxWrite(job, text, _ string) string {
	if text != "" {
		return text
	}
	return fmt.Sprintf("table='ip ringlight-%s'\nif nft list tables | grep -qx \"table $table\"; then nft delete table $table; fi\n", job)
}

var (
	nftChain = regexp.MustCompile(`^\s*chain (\S+) \{$`)
	nftRule  = regexp.MustCompile(`^(iifname "[^"]+" )?(ip saddr \. ip daddr|ip saddr|ip daddr) (\{[^}]*\}|[0-9.]+(?: \. [0-9.]+)?) (meta mark set 0x[0-9a-f]+ )?accept$`)
	ipRule   = regexp.MustCompile(`fwmark (0x[0-9a-f]+) lookup (\d+)`)
	ipRoute  = regexp.MustCompile(`default via (\S+) dev (\S+)(?: proto \S+)?(?: onlink)? table (\d+)`)
)

// linuxRules reads a job's table of nftables, and the rules and routes that its marks
// lead to, off a script or off what a device said.
func linuxRules(job, text string) (map[string][]string, error) {
	out := map[string][]string{}
	_, answer, read := strings.Cut(text, "ringlight-read\n")
	if read {
		text = answer
	}
	head := "\ntable ip ringlight-" + job + " {\n"
	at := strings.LastIndex("\n"+text, head)
	if at < 0 {
		return out, nil
	}
	body := ("\n" + text)[at+len(head):]
	end := strings.Index(body, "\n}")
	if end < 0 {
		return nil, fmt.Errorf("table ringlight-%s has no end", job)
	}
	chain, marks, rest := "", map[string]bool{}, ""
	for line := range strings.SplitSeq(body[:end], "\n") {
		if m := nftChain.FindStringSubmatch(line); m != nil {
			chain = "chain " + m[1]
			out[chain] = []string{}
			continue
		}
		rest = strings.TrimSpace(rest + " " + strings.TrimSpace(line))
		switch {
		case rest == "" || rest == "}" || strings.HasPrefix(rest, "type "):
			rest = ""
			continue
		case strings.Count(rest, "{") > strings.Count(rest, "}"):
			continue // a set goes on in the next line
		}
		m := nftRule.FindStringSubmatch(rest)
		if m == nil || chain == "" {
			return nil, fmt.Errorf("%s: a rule that is not ours: %.80q", chain, rest)
		}
		var set []string
		for e := range strings.SplitSeq(strings.Trim(m[3], "{} "), ",") {
			set = append(set, strings.TrimSpace(e))
		}
		slices.Sort(set)
		out[chain] = append(out[chain], m[1]+m[2]+" "+strings.Join(set, ",")+" "+m[4])
		if mark := strings.TrimSpace(strings.TrimPrefix(m[4], "meta mark set ")); mark != "" {
			marks[mark] = true
		}
		rest = ""
	}
	for _, m := range ipRule.FindAllStringSubmatch(text, -1) {
		if marks[m[1]] {
			out["ip rule"] = append(out["ip rule"], m[1]+" "+m[2])
			for _, r := range ipRoute.FindAllStringSubmatch(text, -1) {
				if r[3] == m[2] {
					out["ip route"] = append(out["ip route"], strings.Join(r[1:], " "))
				}
			}
		}
	}
	for _, block := range []string{"ip rule", "ip route"} {
		slices.Sort(out[block])
		out[block] = slices.Compact(out[block])
	}
	return out, nil
}

func frrRead(string) string {
	return "\necho ringlight-read && vtysh -c 'show running-config' && echo " + readEnd + "\n"
}

// frrWrite takes what a device holds of a job away first: a sequence keeps what of an
// old match a new one does not name.
func frrWrite(job, text, holds string) string {
	var b strings.Builder
	b.WriteString("set -e\nfile=$(mktemp)\ncat >$file <<'EOF'\n")
	of, _ := frrRules(job, holds)
	for _, block := range sortedBlocks(of) {
		b.WriteString("no " + block + "\n")
	}
	b.WriteString(text + "EOF\nvtysh -f $file\nrm $file\n")
	return b.String()
}

// frrRules are the lines of a job's maps, by map and sequence.
func frrRules(job, text string) (map[string][]string, error) {
	head := regexp.MustCompile(`^pbr-map ringlight-` + regexp.QuoteMeta(job) + `(-(up|down|ocs|port|if)\d+)? seq \d+$`)
	return blocks(text, head, true), nil
}

// blocks are those of a configuration whose heads match, with their lines; sorted:
// their order does not count.
func blocks(text string, head *regexp.Regexp, sorted bool) map[string][]string {
	out := map[string][]string{}
	block := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \r")
		switch {
		case strings.HasPrefix(line, " ") && block != "":
			out[block] = append(out[block], strings.TrimSpace(line))
		case head.MatchString(line):
			block = line
			out[block] = []string{}
		default:
			block = ""
		}
	}
	if sorted {
		for _, lines := range out { // any order: each by itself
			slices.Sort(lines)
		}
	}
	return out
}

// eosHead begins what a switch holds of a job, and of policies of all jobs.
func eosHead(job string) *regexp.Regexp {
	name := `ringlight-` + regexp.QuoteMeta(job) + `-\d+`
	return regexp.MustCompile(`^(ip access-list ` + name + `|class-map type pbr match-any ` + name + `|policy-map type pbr ringlight(-port\d+)?)$`)
}

// eosRules are a job's lists and classes, and of policies its classes.
func eosRules(job, text string) (map[string][]string, error) {
	class := regexp.MustCompile(`^class ringlight-` + regexp.QuoteMeta(job) + `-\d+$`)
	sequence := regexp.MustCompile(`^\d+ (class )`)
	out := map[string][]string{}
	for block, lines := range blocks(text, eosHead(job), false) { // any order: each by itself
		if !strings.HasPrefix(block, "policy-map") {
			out[block] = lines
			continue
		}
		mine := ""
		for _, line := range lines {
			line = sequence.ReplaceAllString(line, "$1")
			switch {
			case class.MatchString(line):
				mine = block + " " + line
				out[mine] = []string{}
			case strings.HasPrefix(line, "class "):
				mine = ""
			case mine != "" && line != "!":
				out[mine] = append(out[mine], line)
			}
		}
	}
	return out, nil
}

// eosWrite takes what a switch holds of a job away first, classes of policies before
// what they match.
func eosWrite(job, text, holds string) string {
	var b strings.Builder
	b.WriteString("enable\nconfigure\n")
	of, _ := eosRules(job, holds)
	var lists []string
	for _, block := range sortedBlocks(of) {
		if policy, class, ok := strings.Cut(block, " class "); ok && strings.HasPrefix(block, "policy-map") {
			fmt.Fprintf(&b, "%s\n   no class %s\n   exit\n", policy, class)
		} else {
			lists = append(lists, block)
		}
	}
	for _, block := range lists { // in order: class-map before ip access-list, which it uses
		b.WriteString("no " + block + "\n")
	}
	b.WriteString(text + "end\n")
	return b.String()
}
