#!/usr/bin/env bash
# Resident memory of an agent that runs on its simulated board and, for what
# it costs on hardware, on a board in another process over a socket.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
rss() { awk '/^VmRSS/{printf "%.1f MiB", $2/1024}' "/proc/$1/status"; }
echo '{"board":{"kind":"sim","seed":1}}' >"$dir/sim.json"
bin/ocs-sim board -config "$dir/sim.json" -listen "unix:$dir/board.sock" >/dev/null 2>&1 &
for _ in $(seq 50); do [ -S "$dir/board.sock" ] && break; sleep 0.1; done
echo "{\"board\":{\"kind\":\"socket\",\"path\":\"$dir/board.sock\"}}" >"$dir/agent.json"
bin/ocs-agent run -config "$dir/agent.json" -state "$dir/a" >/dev/null 2>&1 & pid=$!
sleep 3; kill -0 "$pid" 2>/dev/null && echo "ocs-agent, board in another process: resident $(rss "$pid")"
bin/ocs-agent run -config "$dir/sim.json" -state "$dir/b" >/dev/null 2>&1 & pid=$!
sleep 3; kill -0 "$pid" 2>/dev/null && echo "ocs-agent, simulated board inside:   resident $(rss "$pid")"
