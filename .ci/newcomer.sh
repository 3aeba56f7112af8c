#!/usr/bin/env bash
# How long a newcomer takes: this commit cloned into a fresh folder, an empty HOME, the
# module cache as it is, docs/quickstart.md typed as it stands. Minutes and commands to
# the first ring, the first `why`, the first metric. CLEAN=1: in a fresh Debian with
# what README asks for and nothing else, modules from this machine's cache as from a
# proxy (ROOT: a folder for it, kept; needs debootstrap, systemd-container, root).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOMODCACHE="${GOMODCACHE:-$(go env GOMODCACHE)}"
port=${PORT:-18830}

if [ -n "${CLEAN:-}" ]; then
  for c in debootstrap systemd-nspawn; do command -v $c >/dev/null || { echo "newcomer: skipped, no $c"; exit 0; }; done
  [ "$(id -u)" = 0 ] || { echo "newcomer: skipped, a root folder wants root"; exit 0; }
  root=${ROOT:-$work/root} with=make,git,curl,ca-certificates
  suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME" || echo stable)
  [ -x "$root/usr/bin/git" ] || debootstrap --variant=minbase --include=$with "$suite" "$root" >"$work/log" 2>&1 ||
    { echo "newcomer: skipped, debootstrap: $(tail -1 "$work/log")"; exit 0; }
  go mod download
  git clone -q "$here" "$work/src"
  echo "a fresh Debian $suite, minimal, with $with and $(go version | cut -d' ' -f3); modules from this machine's cache, compiled there"
  for d in src go modules; do mkdir -p "$root/$d"; done
  systemd-nspawn -q --register=no --keep-unit --volatile=overlay -D "$root" --bind-ro="$work/src:/src" --bind-ro="$(go env GOROOT):/go" \
    --bind-ro="$GOMODCACHE/cache/download:/modules" -E PATH=/usr/bin:/bin:/go/bin -E GOPROXY=file:///modules -E GOSUMDB=off -E GOTOOLCHAIN=local \
    -E GOMODCACHE=/root/modules -E PORT="$port" bash /src/.ci/newcomer.sh </dev/null && exit
  rc=$?; echo "newcomer: failed, or no container can be had here"; exit $rc
fi

export GOFLAGS=-modcacherw HOME=$work/home GOPATH=$work/home/go GOCACHE=$work/home/cache RINGLIGHT_BROKER=mqtt://127.0.0.1:$port
mkdir "$work/home"
git config --global --add safe.directory "$here/.git"
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
typed; bin/ocsctl fabric new -o fabric.json
typed; bin/ocs-planner run -fabric-file fabric.json -listen "127.0.0.1:$port" -http 127.0.0.1:0 -state planner.db >planner.log 2>&1 &
typed; bin/ocs-sim agents -modules 2 -broker "$RINGLIGHT_BROKER" >agents.log 2>&1 &
typed; until bin/ocsctl ring list 2>/dev/null | grep -q in_service; do sleep 0.2; done; reached 'first ring'
typed; bin/ocsctl why 3 | sed -n 1,2p; reached 'first why'
typed; curl -sf "$(sed -n 's/^view *//p' planner.log)/metrics" | grep '^ringlight_rings'; reached 'first metric'
