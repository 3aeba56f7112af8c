#!/usr/bin/env bash
# How long a newcomer takes: this commit cloned into a fresh folder, an empty HOME, the
# module cache as it is, docs/quickstart.md typed as it stands. Minutes and commands to
# the first ring, the first `why`, the first metric.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null; chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOMODCACHE="${GOMODCACHE:-$(go env GOMODCACHE)}" GOFLAGS=-modcacherw HOME=$work/home GOPATH=$work/home/go GOCACHE=$work/home/cache
port=${PORT:-18830}; export RINGLIGHT_BROKER=mqtt://127.0.0.1:$port
mkdir "$work/home"
begun=$(date +%s%N) commands=0
typed() { commands=$((commands + 1)); } # before each line that is typed
reached() { # reached WHAT: wall clock and processor time of what has ended
  times >"$work/times"
  printf '%-13s %5.1f min, %d commands (processor: %s)\n' "$1" "$(awk "BEGIN { print ($(date +%s%N) - $begun) / 6e10 }")" "$commands" "$(sed -n '2s/ .*//p' "$work/times")"
}

echo "$(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
typed; git clone -q "$here" "$work/ringlight"
typed; cd "$work/ringlight"
typed; make -s build; reached 'built'
typed; bin/ocs-planner run -listen "127.0.0.1:$port" -http 127.0.0.1:0 -state planner.db >planner.log 2>&1 &
typed; bin/ocs-sim agents -modules 2 -broker "$RINGLIGHT_BROKER" >agents.log 2>&1 &
typed; until bin/ocsctl ring list 2>/dev/null | grep -q in_service; do sleep 0.2; done; reached 'first ring'
typed; bin/ocsctl why 3 | sed -n 1,2p; reached 'first why'
typed; curl -sf "$(sed -n 's/^view *//p' planner.log)/metrics" | grep '^ringlight_rings'; reached 'first metric'
