#!/usr/bin/env bash
# A switch agent's RESTCONF under a tool that is not ours: sonic-mgmt's module
# ocs_cross_connect.py of DIR, unmodified, through ansible-core, with ocs-sonic as show and
# config; judged by the power at the board's outputs. Where DIR has sonic-ocs.yang,
# sonic-extension.yang and sonic-ocs-states.yang, and there is yanglint, it reads what is
# served, and refuses what is spoilt.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD dir=${DIR:-}
skip() { echo "sonic-ocs: skipped, $1"; exit 0; }
[ -f "$dir/ocs_cross_connect.py" ] || skip "DIR names no folder with ansible/library/ocs_cross_connect.py of sonic-net/sonic-mgmt"
command -v ansible >/dev/null || skip "no ansible (package ansible-core)"
dir=$(realpath "$dir")
work=$(mktemp -d); trap 'kill $agent 2>/dev/null || true; rm -rf "$work"' EXIT
cat >"$work/switch.json" <<END
{"node": 2, "broker": "", "state": "$work/state", "socket": "$work/agent.sock", "restconf": "127.0.0.1:15443", "scpi": "127.0.0.1:15444",
 "board": {"kind": "sim", "ports": 16}}
END
bin/ocs-agent run -config "$work/switch.json" 2>"$work/log" & agent=$!
until [ -S "$work/agent.sock" ]; do kill -0 $agent; sleep .2; done
ln -s "$here/bin/ocs-sonic" "$work/show"; ln -s "$here/bin/ocs-sonic" "$work/config"
export PATH=$work:$PATH RINGLIGHT_RESTCONF=127.0.0.1:15443 ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_NOCOLOR=1

# lit: the outputs with more than -15 dBm, by number.
lit() {
  exec 3<>/dev/tcp/127.0.0.1/15444
  echo ':pmon:pow? (@17:32)' >&3; head -1 <&3 | tr -d '()\r' | tr , '\n' | awk '$1 > -15 { printf "%s%d", n++ ? " " : "", NR }'
  exec 3>&-
}
# wish WHAT CROSS_CONNECTS CHANGED LIT: the module is asked for these, says so, and this is lit.
wish() {
  local said light
  said=$(ansible localhost -c local -M "$dir" -m ocs_cross_connect -a "{\"cross_connects\": $2, \"verify_delay\": 1}") || { echo "$said"; echo "sonic-ocs: $1: refused"; cat "$work/log"; exit 1; }
  for _ in {1..50}; do light=$(lit); [ "$light" = "$4" ] && break; sleep .2; done
  grep -q "\"changed\": $3" <<<"$said" && [ "$light" = "$4" ] || { echo "$said"; echo "sonic-ocs: $1: lit $light, want $4, changed $3"; exit 1; }
  echo "ok      $1: changed $3, lit outputs $light"
}
# What mirrors do that nobody has told anything is anybody's guess: the first change parks them, one after the other.
wish "two links" '{"1": "2", "3": "4"}' true "1 2 3 4"
wish "the same" '{"1": "2", "3": "4"}' false "1 2 3 4"
wish "a wish in their way" '{"2": "3"}' true "2 3"
wish "beside it" '{"5": "16"}' true "2 3 5 16"
if ansible localhost -c local -M "$dir" -m ocs_cross_connect -a '{"cross_connects": {"7": "17"}, "verify_delay": 1}' >"$work/no"; then
  echo "sonic-ocs: a port that is not there is taken"; exit 1
fi
grep -q '1A to 16A' "$work/no" || { cat "$work/no"; exit 1; }
[ "$(lit)" = "2 3 5 16" ] || { echo "sonic-ocs: a refused wish left $(lit)"; exit 1; }
echo "ok      a port that is not there: refused, nothing moves"

command -v yanglint >/dev/null || { echo "yang: skipped, no yanglint (package libyang-tools)"; exit 0; }
for m in sonic-ocs:sonic-ocs sonic-ocs-states:sonic-ocs-states ringlight-records:ringlight-records; do
  y=$dir/${m%:*}.yang
  [ -f "$y" ] || y=hal/sonic/${m%:*}.yang
  [ -f "$y" ] || { echo "yang: skipped, no $(basename "$y") in DIR"; continue; }
  curl -sf "http://127.0.0.1:15443/restconf/data/$m" >"$work/$m.json"
  yanglint -p "$dir" "$y" "$work/$m.json" || { echo "sonic-ocs: yanglint refuses what $m serves"; exit 1; }
  n=0
  for spoil in 's/"simplex_port_id":"1A"/"simplex_port_id":7/' 's/"label"/"lable"/' 's/"oper_status":"[a-z]*"/"oper_status":"shiny"/' 's/"status":"[a-z]*"/"status":"shiny"/' \
    's/"config_status":"normal"/"config_status":"odd"/' 's/"loss_dB":"[0-9.]*"/"loss_dB":"much"/' 's/"frequency_THz":"[0-9.]*"/"frequency_THz":"red"/' 's/"cross_connect_id"/"id"/' 's/_LIST"/_ROWS"/' 's/^{/[/' \
    's/"unit":"us"/"unit":"s"/' 's/"quantity":"/"quantity":"x/' 's/"min":[-0-9]*/"min":0.5/' 's/"avg":/"mean":/' 's/"max":[-0-9]*/"max":3000000000/' 's/"samples":[0-9]*/"samples":-1/' 's/"suspect":[a-z]*/"suspect":"perhaps"/' \
    's/"a_side_status":"[a-z]*"/"a_side_status":"shiny"/' 's/"a_side_status":"[a-z]*"/"a_side_status":7/' 's/"b_side_status":"[a-z]*"/"b_side_status":"failed"/'; do
    sed "$spoil" "$work/$m.json" >"$work/spoilt.json"
    cmp -s "$work/$m.json" "$work/spoilt.json" && continue
    n=$((n + 1))
    if yanglint -p "$dir" "$y" "$work/spoilt.json" 2>/dev/null; then echo "sonic-ocs: yanglint takes $spoil"; exit 1; fi
  done
  echo "ok      yanglint takes what $m serves and refuses $n spoilt ones"
done
