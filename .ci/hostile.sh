#!/usr/bin/env bash
# A stranger without credentials at the embedded broker of 64 simulated nodes:
# every attack of ocs-sim hostile, the planner a process with 512 descriptors.
# Rings and answers are the planner's, the light is the boards' own record, the
# memory the kernel's. SCALE (1) of the counts, FLOOD (60s) of the long ones.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
port=${PORT:-18947}; url=mqtt://127.0.0.1:$port
( ulimit -n 512; exec bin/ocs-planner run -listen 127.0.0.1:$port -state "$dir/planner.db" ) >"$dir/planner.log" 2>&1 & planner=$!
bin/ocs-sim agents -broker "$url" -modules "${MODULES:-2}" >"$dir/agents.out" 2>"$dir/agents.log" & agents=$!
peak() { sed -n 's/^VmHWM:[ \t]*\([0-9]*\) kB/\1/p' /proc/$1/status; }
begin=$SECONDS
rc=0
bin/ocs-sim hostile -broker "$url" -scale "${SCALE:-1}" -flood "${FLOOD:-60s}" ${ONLY:+-only "$ONLY"} || rc=$?
kill -0 $planner 2>/dev/null || { echo "planner: ended"; tail -5 "$dir/planner.log"; exit 1; }
echo "planner: $(( $(peak $planner) / 1024 )) MiB at most, log $(( $(stat -c %s "$dir/planner.log") / 1024 )) KiB; agents: log $(( $(stat -c %s "$dir/agents.log") / 1024 )) KiB; $(( SECONDS - begin )) s"
kill -TERM $agents; wait $agents || true
echo "light: $(tail -1 "$dir/agents.out")"
[ -z "${KEEP:-}" ] || cp "$dir"/*.log "$KEEP"
exit $rc
