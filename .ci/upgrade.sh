#!/usr/bin/env bash
# Agents of the release before this one - UPGRADE_FROM, a tag or a commit of this
# repository - become today's and go back, each a process of its own: by themselves, or
# started by hand where the planner says that they cannot. Nodes lose their power and
# spares step in meanwhile, the planner is killed and is once of the release before. A
# release that sets its optics up anew at its start must be stopped at the first node.
# The boards' own record judges. NODES (64).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mosquitto >/dev/null || PATH=$PATH:/usr/sbin
command -v mosquitto >/dev/null || { echo "upgrade: skipped, no mosquitto"; exit 0; }
from=$(git rev-parse -q --verify "${UPGRADE_FROM:?}^{commit}" 2>/dev/null) || { echo "upgrade: skipped, $UPGRADE_FROM is not in this checkout's history"; exit 0; }
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
mkdir "$dir"/{src,old,new,bad}
git archive "$from" | tar -x -C "$dir/src"
export CGO_ENABLED=0
old=$(git describe --tags --always "$from")
(cd "$dir/src" && go build -trimpath -ldflags "-s -w -X main.version=$old" -o "$dir/old/" ./cmd/ocs-agent ./cmd/ocs-planner)
cp bin/ocs-agent "$dir/new/"
go build -trimpath -ldflags "-s -w -X main.version=bad" -o "$dir/bad/agent" ./cmd/ocs-agent
# It begins as if the board were new: it knows nothing of what was, and makes a bundle dark.
cat >"$dir/bad/ocs-agent" <<'S'
#!/bin/sh
real=$(dirname "$(readlink -f "$0")")/agent
if [ "$1" = run ]; then shift; "$real" path set 0 dark "$@" -state "$(mktemp -d)"; set -- run "$@"; fi
exec "$real" "$@"
S
chmod +x "$dir/bad/ocs-agent"
"${GO:-go}" test ./sim/procs -count 1 -timeout 0 -v -run 'TestProcesses$' -args -bin "$PWD/bin" -broker "$(command -v mosquitto)" -upgrade "$dir" -nodes "${NODES:-64}"
