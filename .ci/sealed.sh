#!/usr/bin/env bash
# All messages sealed, and the broker itself the attacker: sim/hostile is the
# broker of a planner and 64 simulated nodes, with all that was ever said and a node's
# key besides. What it says, what it does with what is genuine, and how it is judged:
# docs/attacks.md. SCALE (1) of a million messages, BYPASSES (200) quietly and as many
# under the attack, RATE (6000) a second; 0: bypasses quietly and nothing else. SEAL=warn judges and reads all the same: the
# planted defect. Agents run before all others where that is allowed, as they do on a
# controller of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
port=${PORT:-18949}; url=mqtts://127.0.0.1:$port k=$dir/pki
echo "commit $(git describe --always --dirty)  $(go version | cut -d' ' -f3)  $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
{ bin/ocsctl pki init -dir "$k"; bin/ocsctl pki planner a -dir "$k"; bin/ocsctl pki issuer a -dir "$k"; bin/ocsctl pki node 0-63 -dir "$k"; bin/ocsctl pki broker b -host 127.0.0.1 -dir "$k"
  bin/ocsctl pki token 63 -dir "$k" -out "$k"; for who in alice bob; do bin/ocsctl pki operator $who -role operate -dir "$k"; done; } >/dev/null
bin/ocsctl fabric new -name f1 -nodes 64 -gpus 4 -k 3 -tp 32 -spares 16 >"$dir/fabric.json"
"${GO:-go}" test -c -o "$dir/stranger" ./sim/hostile
"$dir/stranger" -test.run 'TestStranger$' -test.timeout 0 -fabric f1 -listen "127.0.0.1:$port" -listen-cert "$k/f1-broker-b.pem" -listen-key "$k/f1-broker-b.key" -scale "${SCALE:-1}" -rate "${RATE:-6000}" -bypasses "${BYPASSES:-200}" -only sealed -control "$dir/boards.sock" \
  -stolen-node 9 -stolen-key "$k/f1-n-9.key" -trust "$k/trust.cose" -token "$k/f1-enrol-63.token" -cert "$k/f1-op-bob.pem" -key "$k/f1-op-bob.key" >"$dir/stranger.out" 2>&1 & stranger=$!
seal=(-ca "$k/ca.pem" -seal "${SEAL:-enforce}" -trust "$k/trust.cose" -reports sealed)
bin/ocs-planner run -broker "$url" -fabric-file "$dir/fabric.json" -state "$dir/planner.db" "${seal[@]}" -cert "$k/f1-planner-a.pem" -key "$k/f1-planner-a.key" -issuer "$k/f1-issuer-a.pem" >"$dir/planner.log" 2>&1 & planner=$!
first=(); ! nice -n -15 true 2>/dev/null || first=(nice -n -15)
"${first[@]}" bin/ocs-sim agents -json -broker "$url" -fabric-file "$dir/fabric.json" -modules 1 -control "unix:$dir/boards.sock" "${seal[@]}" -keys "$k" >"$dir/agents.out" 2>"$dir/agents.log" & agents=$!
rc=0
wait $stranger || rc=$?
cat "$dir/stranger.out"
for who in planner agents; do
  kill -0 ${!who} 2>/dev/null || { echo "$who: ended"; tail -5 "$dir/$who.log"; exit 1; }
  mib=$(( $(sed -n 's/^VmHWM:[ \t]*\([0-9]*\) kB/\1/p' /proc/${!who}/status) / 1024 ))
  echo "$who: $mib MiB at most, log $(( $(stat -c %s "$dir/$who.log") / 1024 )) KiB"
  [ $mib -lt 256 ] || rc=1
done
[ -z "${KEEP:-}" ] || cp "$dir"/*.log "$dir"/*.out "$KEEP"
exit $rc
