#!/usr/bin/env bash
# What seals cost: sign and verify on this machine and under user-mode QEMU on arm64
# and arm, each as a ratio to amd64 and to a SHA-256 of the same message on the same
# machine; bytes of a desired state; 10,000 of them sealed, and through brokers; what a start reads, and
# a built agent from exec to its first sign of life (STARTS, 15x of each).
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go=${GO:-go}
for arch in amd64 arm64 arm; do
  case $arch in
  amd64) qemu= ;;
  arm64) qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { echo "arm64: skipped, no user-mode QEMU"; continue; } ;;
  arm) qemu=$(command -v qemu-arm-static || command -v qemu-arm) || { echo "arm: skipped, no user-mode QEMU"; continue; } ;;
  esac
  CGO_ENABLED=0 GOARCH=$arch GOARM=7 "$go" test -c -o "$dir/seal.$arch" ./proto/seal
  what='Sign|Verify|Hash'
  [ $arch != amd64 ] || what=.
  (cd proto/seal && $qemu "$dir/seal.$arch" -test.run '^$' -test.bench "$what" -test.benchtime "${BENCHTIME:-0.5s}") >"$dir/$arch" || { cat "$dir/$arch"; exit 1; }
  grep ^Benchmark "$dir/$arch" | sed "s/^/$arch /"
done
cat "$dir"/amd64 "$dir"/arm64 "$dir"/arm 2>/dev/null | awk '
  /^goarch:/ { a = $2 }
  /^Benchmark(Sign|Verify|Hash)/ { sub(/-[0-9]+$/, "", $1); t[a, substr($1, 10)] = $3; seen[a] = 1 }
  END { split("amd64 arm64 arm", as)
    for (i = 1; i <= 3; i++) if (as[i] in seen) { a = as[i]
      printf "%-5s verify %.3f ms, %.1f of amd64; a SHA-256 %.1f of amd64; verify by SHA-256 %.0f; verify by sign %.1f\n", a, t[a, "Verify"] / 1e6, t[a, "Verify"] / t["amd64", "Verify"], t[a, "Hash"] / t["amd64", "Hash"], t[a, "Verify"] / t[a, "Hash"], t[a, "Verify"] / t[a, "Sign"] } }'
# 10,000 states from a planner's link to who reads them all, through the embedded broker and mosquitto.
"$go" test ./planner/server -run '^$' -bench '^BenchmarkPush$' -benchtime "${PUSHES:-1x}" | sed -n 's/^BenchmarkPush/push /p'
"$go" test ./planner/server -run '^$' -bench '^BenchmarkStart$' -benchtime "${STARTS:-15x}" | sed -n 's/^BenchmarkStart/start /p'
