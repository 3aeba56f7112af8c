#!/usr/bin/env bash
# The agent's file against what a controller's flash has for it: 10 MB on arm64. Where
# it is more, packages are listed by how much they grew since the table beside this was
# written (UPDATE=1 writes it). arm (v7) is printed only: 32-bit code is larger.
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${BUDGET:-10000000} table=.ci/agent-size.txt
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT

packages() { # bytes of code and data by package: symbols are what make cross leaves out
  GOOS=linux GOARCH=arm64 ${GO:-go} build -trimpath -tags nohost -o "$dir/agent" ./cmd/ocs-agent
  ${GO:-go} tool nm -size "$dir/agent" | awk '
    $3 ~ /^[tTrRdD]$/ && $2 < 1e7 {
      n = substr($0, index($0, " " $3 " ") + 3); sub(/^(type:)?\.?(eq\.|hash\.)?[*(]*/, "", n); sub(/\[.*/, "", n)
      if (!match(n, /^[a-z]([^\/]*\/)*[^.\/]*\./)) { p["other"] += $2; next }
      p[substr(n, 1, RLENGTH - 1)] += $2
    }
    END { for (k in p) if (p[k] >= 1024) printf "%-50s %7d\n", k, p[k] }' | LC_ALL=C sort
}
if [ "${UPDATE:-}" ]; then packages >"$table"; fi

for arch in arm64 arm; do
  printf 'ocs-agent, linux/%-6s %9d bytes of %d\n' "$arch" "$(stat -c %s bin/linux-$arch/ocs-agent)" "$budget"
done
if [ "$(stat -c %s bin/linux-arm64/ocs-agent)" -gt "$budget" ]; then
  echo "budget: the arm64 agent is too large. Grew since $table was written (code and data, bytes):"
  packages | awk 'NR == FNR { was[$1] = $2; next } $2 - was[$1] >= 256 { printf "%9d  %s\n", $2 - was[$1], $1 }' "$table" - | sort -rn | head -25
  exit 1
fi
