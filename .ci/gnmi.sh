#!/usr/bin/env bash
# The planner's gNMI under others' clients: gnmi_cli and the collector of
# github.com/openconfig/gnmi, unmodified, with keys of ocsctl pki, while a node of 16
# simulated ones loses its power. Then strangers: half-open connections and streams, slow
# readers, requests that are none; and SUBSCRIBERS (1000) streams, the planner's step and
# memory beside none.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD version=$(awk '$1 == "github.com/openconfig/gnmi" { print $2 }' go.mod)
export PATH=$here/bin:$PATH
work=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
for c in gnmi_cli gnmi_collector; do
  [ -x "bin/judge/$c-$version" ] && continue
  mkdir -p bin/judge
  GOBIN=$work ${GO:-go} install "github.com/openconfig/gnmi/cmd/$c@$version" 2>"$work/why" || { tail -1 "$work/why"; echo "gnmi: skipped, $c cannot be had here"; exit 0; }
  mv "$work/$c" "bin/judge/$c-$version"
done
cli=$here/bin/judge/gnmi_cli-$version collector=$here/bin/judge/gnmi_collector-$version
cd "$work"
fail() { echo "gnmi: $*"; tail -5 planner.log agents.log 2>/dev/null; exit 1; }

ocsctl pki init -dir pki -fabric f1 -domain cluster.example >/dev/null
ocsctl pki planner a -host 127.0.0.1 >/dev/null
ocsctl pki node 0-15 >/dev/null
ocsctl pki operator alice -role operate >/dev/null; ocsctl pki operator bob -role view >/dev/null
ocsctl fabric new -nodes 16 -gpus 4 -k 2 -tp 28 -spares 2 -o fabric.json >/dev/null
port=$((20000 + $$ % 20000))
keys="-ca pki/ca.pem -seal enforce -trust pki/trust.cose -reports sealed"
ocs-planner run -fabric-file fabric.json -listen 127.0.0.1:$port -http 127.0.0.1:$((port + 1)) -gnmi 127.0.0.1:$((port + 2)) $keys -cert pki/f1-planner-a.pem -key pki/f1-planner-a.key -state p.db >planner.log 2>&1 &
planner=$!
until grep -q '^gnmi' planner.log; do kill -0 $planner || fail "no planner"; sleep .2; done
ocs-sim agents -nodes 16 -gpus 4 -k 2 -tp 28 -fabric-file fabric.json -broker mqtts://127.0.0.1:$port $keys -keys pki -control unix:ctl >agents.log 2>&1 &
as() { local who=$1; shift; "$cli" -a 127.0.0.1:$((port + 2)) -ca_crt pki/ca.pem -client_crt pki/f1-op-$who.pem -client_key pki/f1-op-$who.key -server_name 127.0.0.1 "$@"; }
path() { local p= w; for w in ${1//\// }; do case $w in *\[*) p+="elem:{name:\"${w%%\[*}\" key:{key:\"$(cut -d[ -f2 <<<"$w" | cut -d= -f1)\" value:\"$(cut -d= -f2 <<<"$w" | tr -d ])\"}} " ;; *) p+="elem:{name:\"$w\"} " ;; esac; done; echo "path:{$p}"; }
get() { as bob -get -proto "$(path "$1") encoding:JSON_IETF"; }
power() { (exec 3<>/dev/null; python3 - "$1" "$2" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect("ctl"); s.sendall(("power %s %s\n" % (sys.argv[1], sys.argv[2])).encode()); s.recv(200)
END
); }

for _ in {1..100}; do get fabric/state 2>/dev/null | grep -q 'in-service\\":2' && break; sleep .3; done
get fabric/state | grep -q 'in-service\\":2' || fail "two rings did not come into service"
as bob -capabilities | grep -q '"ringlight-fabric"' && echo "ok      gnmi_cli: capabilities"
get 'fabric/nodes/node[id=7]' | grep -q 'path-state' && echo "ok      gnmi_cli: get of a node"
as bob -q fabric/rings -qt once | grep -q in_service && echo "ok      gnmi_cli: once"
[ "$(as bob -q fabric/state/online -qt polling -pi 300ms -c 3 | grep -c '16')" = 3 ] && echo "ok      gnmi_cli: polled three times"

# A node dies: what streams are told, how late, and whether an event is missing.
as bob -q fabric/events,fabric/rings,fabric/nodes -qt streaming -dt single -u -l -ts raw -sd 6s >stream 2>&1 & stream=$!
sleep 1.5; power off 3; wait $stream || grep -q DeadlineExceeded stream || fail "the stream ended: $(tail -1 stream)" # its own
awk -F, '
  $1 ~ /^fabric\/events\/event\/[0-9]+\/state\/number$/ { split($1, p, "/"); n = p[4]; if (last && n != last + 1) { print "event " n " after " last; bad = 1 } last = n; events++
    l = $NF; gsub(/[^0-9.a-zµ]/, "", l); ms = l ~ /µs/ ? l / 1000 : l ~ /ms/ ? l + 0 : l * 1000; if (ms > worst) worst = ms }
  /ring-state/ && /degraded/ { degraded = 1 }
  END { if (!events || !degraded) { print events + 0 " events, degraded " degraded + 0; exit 1 }
    if (worst > 100) { print "told after " worst " ms"; exit 1 }
    printf "ok      gnmi_cli: a node dies: %d events without a hole, each told at most %.0f ms after its time; ring degraded\n", events, worst; exit bad }' stream || { head -3 stream; fail "stream"; }

# Acts: who may, who may not, and what the audit chain has of it.
side='elem:{name:"fabric"} elem:{name:"nodes"} elem:{name:"node" key:{key:"id" value:"9"}} elem:{name:"sides"} elem:{name:"side" key:{key:"name" value:"right"}} elem:{name:"config"} elem:{name:"request"}'
lock="update:{path:{$side} val:{string_val:\"lockout\"}}"
as bob -set -proto "$lock" >denied 2>&1 && fail "a viewer set a side"
grep -q 'PermissionDenied.*role view' denied || { cat denied; fail "a viewer was not denied"; }
echo "ok      gnmi_cli: set of a side denied to a viewer"
as alice -set -proto "$lock" >/dev/null || fail "an operator may not set a side"
for _ in {1..30}; do get 'fabric/nodes/node[id=9]/sides/side[name=right]' | grep -q 'request\\":\\"lockout' && break; sleep .1; done
get 'fabric/nodes/node[id=9]/sides/side[name=right]' | grep -q 'request\\":\\"lockout' || fail "the side is not locked out"
as alice -set -proto "delete:{$side}" >/dev/null
ocsctl audit list -broker mqtts://127.0.0.1:$port -ca pki/ca.pem -cert pki/f1-op-bob.pem -key pki/f1-op-bob.key >audit
[ "$(grep -c 'f1/op/alice' audit)" -ge 2 ] || { cat audit; fail "the audit chain has no act of alice"; }
! grep -q 'f1/op/bob.*lockout' audit || fail "the audit chain has an act of bob"
echo "ok      gnmi_cli: set of a side by an operator, taken back, in the audit chain as f1/op/alice"

cd "$here"
RINGLIGHT_GNMI=127.0.0.1:$((port + 2)) RINGLIGHT_GNMI_HTTP=http://127.0.0.1:$((port + 1)) RINGLIGHT_GNMI_KEYS=$work/pki RINGLIGHT_GNMI_CONTROL=$work/ctl RINGLIGHT_GNMI_COLLECTOR=$collector RINGLIGHT_SUBSCRIBERS=${SUBSCRIBERS:-1000} ${GO:-go} test -count=1 -v -run "${ONLY:-Collector|Strangers|ManySubscribers}" ./planner/gnmi >"$work/strangers" || { cat "$work/strangers"; fail "strangers"; }
sed -n 's/^ *[a-z]*_test.go:[0-9]*: //p' "$work/strangers"

# Circuits, of a core with eight switches: a job is set, and its circuits are there by light.
cd "$work"
ocsctl fabric new -name c1 -pods 2 -leaves 2 -spines 2 -spine-ports 4 -o core.json >/dev/null
ocs-planner run -fabric-file core.json -listen 127.0.0.1:$((port + 3)) -gnmi 127.0.0.1:$((port + 4)) -state c.db >core.log 2>&1 &
ocs-sim agents -fabric-file core.json -broker mqtt://127.0.0.1:$((port + 3)) >>agents.log 2>&1 &
core() { "$cli" -a 127.0.0.1:$((port + 4)) -insecure "$@"; }
wish='update: {path: {elem: {name: "fabric"} elem: {name: "jobs"} elem: {name: "job" key: {key: "name" value: "big"}} elem: {name: "config"} elem: {name: "wish"}} val: {string_val: "{\"circuits\": {\"gpus_total\": 64}}"}}'
for _ in {1..60}; do core -set -proto "$wish" >/dev/null 2>&1 && break; sleep .5; done
lit() { core -t switch-0 -q sonic-ocs/OCS_CROSS_CONNECT_TABLE -qt once | grep -B3 enabled | grep -o '[0-9]*A-[0-9]*B' | sort -u | tr '\n' ' ' || true; }
for _ in {1..60}; do was=$(lit); [ -n "$was" ] && break; sleep .5; done
[ -n "$was" ] || fail "no circuit of the job has light"
echo "ok      gnmi_cli: set of a job of circuits, at switch-0 with light: $was"
core -set -proto "prefix: {target: \"switch-0\"} update: {path: {elem: {name: \"sonic-ocs\"} elem: {name: \"OCS_PORT\"} elem: {name: \"OCS_PORT_LIST\" key: {key: \"simplex_port_id\" value: \"${was%%-*}\"}} elem: {name: \"config_status\"}} val: {string_val: \"force_blocked\"}}" >/dev/null || fail "a port is not taken out"
moved() { now=$(lit); [[ -n $now && " $now" != *" ${was%%-*}-"* ]]; }
for _ in {1..60}; do moved && break; sleep .5; done
moved || fail "port ${was%%-*} is out, and with light are: $now"
echo "ok      gnmi_cli: set of port ${was%%-*} to force_blocked, then with light: $now"
circuit() { echo "{elem: {name: \"sonic-ocs\"} elem: {name: \"OCS_CROSS_CONNECT\"} elem: {name: \"OCS_CROSS_CONNECT_LIST\" key: {key: \"cross_connect_id\" value: \"$1\"}}}"; }
add() { core -set -proto "prefix: {target: \"switch-0\"} update: {path: $(circuit "$1") val: {json_ietf_val: \"{\\\"a_side\\\":\\\"${1%-*}\\\",\\\"b_side\\\":\\\"${1#*-}\\\"}\"}}"; }
made=${now%% *}
add "${made%-*}-8B" >said 2>&1 && fail "a port of the planner's was taken"
grep -q "FailedPrecondition.*port ${made%-*} is the planner's" said || { cat said; fail "a port of the planner's is not refused by name"; }
core -set -proto "prefix: {target: \"switch-0\"} update: {path: {elem: {name: \"sonic-ocs\"} elem: {name: \"OCS_PORT\"} elem: {name: \"OCS_PORT_LIST\" key: {key: \"simplex_port_id\" value: \"${was%%-*}\"}} elem: {name: \"config_status\"}} val: {string_val: \"normal\"}}" >/dev/null || fail "a port is not let in"
core -set -proto 'delete: {elem: {name: "fabric"} elem: {name: "jobs"} elem: {name: "job" key: {key: "name" value: "big"}}}' >/dev/null || fail "the job is not released"
for _ in {1..60}; do [ -z "$(lit)" ] && break; sleep .5; done
has() { now=$(lit); [[ " $now" == *" $1 "* ]]; }
one=${was%% *}
for _ in {1..20}; do add "$one" >said 2>&1 && break; sleep .5; done
for _ in {1..60}; do has "$one" && break; sleep .5; done
has "$one" || { cat said; fail "circuit $one was set, and with light are: $now"; }
sleep 5; has "$one" || fail "circuit $one does not last: $now"
core -set -proto "prefix: {target: \"switch-0\"} delete: $(circuit "$one")" >/dev/null || fail "circuit $one is not taken away"
for _ in {1..60}; do has "$one" || break; sleep .5; done
! has "$one" || fail "circuit $one was deleted, and with light are: $now"
ocsctl audit list -broker mqtt://127.0.0.1:$((port + 3)) >audit; grep -q "connect switch 0 $one" audit || { cat audit; fail "the audit chain has no circuit"; }
echo "ok      gnmi_cli: port ${made%-*} of a job's circuit refused by name; without the job circuit $one set by hand, its light, 5 s later too; deleted; in the audit chain"
kill $planner; wait $planner || fail "the planner did not end well"
echo "ok      the planner ends when it is told"
