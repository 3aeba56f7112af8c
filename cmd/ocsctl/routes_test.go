package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/planner/job"
)

// routerFile is what two leaves and a server are told of job a.
const routerFile = `#!/bin/sh -e
nft -f - <<'EOF'
table ip ringlight-a {}
delete table ip ringlight-a
table ip ringlight-a {
	chain prerouting {
		type filter hook prerouting priority mangle;
		ip saddr . ip daddr { 10.0.0.1 . 10.0.0.9 } meta mark set 0x52000000 accept
	}
}
EOF
ip route replace default via 100.64.0.1 dev up0 onlink table 1375731712
ip rule show | grep -q 'fwmark 0x52000000 ' || ip rule add fwmark 0x52000000 lookup 1375731712
`

// tools are an nft and an ip that keep what they are told in a folder of the router's.
var tools = map[string]string{
	"nft": `#!/bin/sh
d="$STATE/$ROUTER"; mkdir -p "$d"
case "$1 $2" in
"-f -") sed -n '/^table ip ringlight-a {$/,/^}$/p' > "$d/table" ;;
"list tables") if [ -s "$d/table" ]; then echo "table ip ringlight-a"; fi ;;
"list table") cat "$d/table" ;;
"delete table") rm "$d/table" ;;
*) exit 9 ;;
esac
`,
	"ip": `#!/bin/sh
d="$STATE/$ROUTER"; mkdir -p "$d"
case "$1 $2" in
"rule add") shift 2; echo "32765:	from all $*" >> "$d/rules" ;;
"rule show") cat "$d/rules" 2>/dev/null || true ;;
"route replace") echo "default via 100.64.0.1 dev up0 table 1375731712 onlink" > "$d/routes" ;;
"route show") cat "$d/routes" 2>/dev/null || true ;;
*) exit 9 ;;
esac
`,
}

// routerPlanner wants routes of a on two leaves and a server, and nothing of a on a
// spine any more; it keeps what it is told.
func routerPlanner(t *testing.T, want map[string]string) (url string, told map[string]job.Routed) {
	told = map[string]job.Routed{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/routers", func(w http.ResponseWriter, _ *http.Request) {
		var all struct {
			News    uint64       `json:"news"`
			Routers []job.Router `json:"routers"`
		}
		for _, name := range []string{"leaf0", "leaf1", "spine0"} {
			all.Routers = append(all.Routers, job.Router{Router: name, Jobs: []job.RouterJob{{Job: "a", Want: want[name]}}})
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	mux.HandleFunc("GET /v1/jobs/a/files/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(job.DigestHeader, "d1")
		fmt.Fprint(w, routerFile)
	})
	mux.HandleFunc("PUT /v1/routers/{router}/jobs/a", func(w http.ResponseWriter, r *http.Request) {
		var got job.Routed
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Error(err)
		}
		told[r.PathValue("router")] = got
		fmt.Fprint(w, "{}")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, told
}

// Goal: routes push says of a router that it holds its routes when the router itself says
// so, and of none else: not of one whose command fails, hangs, says nothing or something
// else, or was ended on its way.
// Method: commands in place of devices; the good one keeps what it is told in files.
func TestRoutesArePushedAndReadBack(t *testing.T) {
	bin := t.TempDir()
	for name, text := range tools { // any order
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("STATE", t.TempDir())
	want := map[string]string{"leaf0": "d1", "leaf1": "d1"}
	url, told := routerPlanner(t, want)
	push := func(command string, more ...string) error {
		clear(told)
		args := append([]string{"-http", url, "-once", "-exec", command}, more...)
		return routesPush(context.Background(), args, io.Discard)
	}
	for command, says := range map[string]string{ // any order: each by itself
		"exit 3":                           "exit status 3",
		"echo no such host >&2; exit 1":    "no such host",
		"cat > /dev/null":                  "has no end",
		"cat":                              "chain",
		"echo ringlight-end":               "chain",
		`sed 's/^ip route.*/exit 4/' | sh`: "exit status 4",
	} {
		err := push(command)
		if got := told["leaf0"]; err == nil || got.Has != "" || !strings.Contains(got.Says, says) {
			t.Errorf("%s: %v, the planner hears %+v", command, err, got)
		}
	}
	begun := time.Now()
	if err := push("sleep 100", "-within", "50ms", "-only", "leaf1"); err == nil || !strings.Contains(told["leaf1"].Says, "no answer within 50ms") || len(told) != 1 || time.Since(begun) > 50*time.Second {
		t.Errorf("one that hangs: %v %+v after %v", err, told, time.Since(begun))
	}
	for range 2 {
		if err := push("sh"); err != nil || told["leaf0"] != (job.Routed{Has: "d1"}) || told["leaf1"] != (job.Routed{Has: "d1"}) || told["spine0"] != (job.Routed{}) || len(told) != 3 {
			t.Errorf("%v, the planner hears %+v", err, told)
		}
	}
	delete(want, "leaf0")
	if err := push("sh"); err != nil || told["leaf0"] != (job.Routed{}) || len(told) != 3 {
		t.Errorf("taken away: %v, the planner hears %+v", err, told)
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("STATE"), "leaf0", "table")); err == nil {
		t.Error("leaf0 has it still")
	}
	want["leaf0"] = "d2"
	if err := push("sh"); err == nil || len(told) != 2 {
		t.Errorf("routes that changed meanwhile are nobody's: %v %+v", err, told)
	}
	for _, args := range [][]string{{"-exec", "sh", "-dialect", "junos"}, {"-exec", "sh", "-only", "["}, {}, {"-exec", "sh", "-within", "0s"}, {"x"}} {
		if err := routesPush(context.Background(), append([]string{"-http", url, "-once"}, args...), io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

// Goal: a switch's own words say the same as the file, and a class or entry that lacks
// or is too much is found.
func TestSwitchSaysWhatItHolds(t *testing.T) {
	const file = "! job a\nip access-list ringlight-a-1\n   10 permit ip host 10.0.0.1 host 10.0.0.9\nclass-map type pbr match-any ringlight-a-1\n   10 match ip access-group ringlight-a-1\npolicy-map type pbr ringlight\n   class ringlight-a-1\n      set nexthop 100.64.0.1\n"
	const config = "hostname s1\n!\nip access-list other\n   10 permit ip any any\n!\n" +
		"ip access-list ringlight-a-1\n   10 permit ip host 10.0.0.1 host 10.0.0.9\n!\nclass-map type pbr match-any ringlight-a-1\n   10 match ip access-group ringlight-a-1\n!\n" +
		"policy-map type pbr ringlight\n   10 class ringlight-b-1\n      set nexthop 100.64.0.7\n   !\n   20 class ringlight-a-1\n      set nexthop 100.64.0.1\n!\nend\n"
	if err := job.CheckRoutes("eos", "a", file, config); err != nil {
		t.Error(err)
	}
	for _, cut := range []string{"host 10.0.0.9", "   10 match ip access-group ringlight-a-1\n", "   20 class ringlight-a-1\n", "      set nexthop 100.64.0.1\n", "end\n"} {
		if job.CheckRoutes("eos", "a", file, strings.Replace(config, cut, "", 1)) == nil {
			t.Errorf("without %q it is all there", cut)
		}
	}
	words, err := job.PushRoutes("eos", "a", "", config)
	if err != nil || job.CheckRoutes("eos", "a", "", config) == nil {
		t.Errorf("%v", err)
	}
	for _, line := range []string{"policy-map type pbr ringlight\n   no class ringlight-a-1\n", "no class-map type pbr match-any ringlight-a-1\nno ip access-list ringlight-a-1\n"} {
		if !strings.Contains(words, line) || strings.Contains(words, "ringlight-b") || strings.Contains(words, "no ip access-list other") {
			t.Errorf("%q lacks %q", words, line)
		}
	}
}
