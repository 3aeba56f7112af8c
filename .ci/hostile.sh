#!/usr/bin/env bash
# A stranger without credentials at the embedded broker of 64 simulated nodes:
# every attack of sim/hostile, the planner a process with 512 descriptors,
# beside it a fabric of circuits on the same broker with a planner of its own,
# and a production agent on its own, with 128. Rings and answers are the
# planner's, the light is the boards' own record, the memory the kernel's, and
# more than 256 MiB of it is a failure. SCALE (1) of the counts, FLOOD (60s) of the long ones.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "${SEAL:-}" ] || exec .ci/sealed.sh # all messages sealed, and the broker the attacker
dir=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
port=${PORT:-18947}; url=mqtt://127.0.0.1:$port
bin/ocsctl fabric new -o "$dir/fabric.json"
( ulimit -n 512; exec bin/ocs-planner run -fabric-file "$dir/fabric.json" -listen 127.0.0.1:$port -state "$dir/planner.db" ) >"$dir/planner.log" 2>&1 & planner=$!
bin/ocs-sim agents -json -broker "$url" -modules "${MODULES:-2}" >"$dir/agents.out" 2>"$dir/agents.log" & agents=$!
bin/ocsctl fabric new -name c1 -pods 4 -spines 4 -servers 2 -o "$dir/core.json"
bin/ocs-planner run -broker "$url" -fabric-file "$dir/core.json" -state "$dir/core.db" >"$dir/core.log" 2>&1 & core=$!
bin/ocs-sim agents -json -broker "$url" -fabric-file "$dir/core.json" >"$dir/switches.out" 2>"$dir/switches.log" & switches=$!
echo '{"fabric":"alone","node":1,"state":"'"$dir"'/alone","socket":"'"$dir"'/alone.sock","board":{"kind":"sim","gpus":4,"bundles":2,"modules":1}}' >"$dir/alone.json"
( ulimit -n 128; exec bin/ocs-agent run -config "$dir/alone.json" ) >"$dir/alone.log" 2>&1 & alone=$!
peak() { sed -n 's/^VmHWM:[ \t]*\([0-9]*\) kB/\1/p' /proc/$1/status; }
begin=$SECONDS
rc=0
"${GO:-go}" test ./sim/hostile -count 1 -timeout 0 -v -run 'TestStranger$' -args -broker "$url" -scale "${SCALE:-1}" -flood "${FLOOD:-60s}" -core c1 -socket "$dir/alone.sock" ${ONLY:+-only "$ONLY"} | tee "$dir/stranger.out" || rc=$?
for who in planner agents core switches alone; do
  kill -0 ${!who} 2>/dev/null || { echo "$who: ended"; tail -5 "$dir/$who.log"; exit 1; }
  mib=$(( $(peak ${!who}) / 1024 ))
  echo "$who: $mib MiB at most, log $(( $(stat -c %s "$dir/$who.log") / 1024 )) KiB"
  [ $mib -lt 256 ] || rc=1
done
echo "$(( SECONDS - begin )) s"
kill -TERM $agents; wait $agents || true
echo "light: $(tail -1 "$dir/agents.out")"
[ -z "${KEEP:-}" ] || cp "$dir"/*.log "$KEEP"
exit $rc
