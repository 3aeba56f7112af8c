#!/usr/bin/env bash
# One fleet, one seed, three machines: amd64, amd64 with fused multiply-add
# (GOAMD64=v3) and arm64 under user-mode QEMU must give the same trace, bit
# for bit; the flow simulator the same ends of all jobs; the comparison of
# systems the same JSON. HASH_ARGS names another fleet, FLOW_ARGS other jobs,
# COMPARE_ARGS another comparison.
set -euo pipefail
cd "$(dirname "$0")/.."
args=${HASH_ARGS:-"-nodes 100 -gpus 4 -k 3 -tp 32 -modules 1 -catalogue 4 -hours 1 -fault-rate 20 -seed 1"}
flows=${FLOW_ARGS:-"-patterns ring,halving-doubling,double-binary-tree,all-to-all -jobs 40 -all-to-all-jobs 10 -iterations 2 -sets 1 -live 0 -seed 1"}
compare=${COMPARE_ARGS:-"-jobs 300 -runs 1 -loads 0.6,0.9 -fault-rates 0,4 -seed 1"}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export CGO_ENABLED=0

build() { # build NAME VARIABLES...: ocs-sim for one machine
  env GOOS=linux "${@:2}" "${GO:-go}" build -trimpath -o "$out/$1" ./cmd/ocs-sim
}
first=
first_flows=
first_compare=
run() { # run NAME COMMAND...: the hashes of the fleet, the flows and the comparison, against the first ones
  local start=$SECONDS json hash
  # shellcheck disable=SC2086
  json=$("${@:2}" fleet $args -json 2>"$out/log") || { echo "hash: $1: $(tail -1 "$out/log")"; exit 1; }
  hash=$(sed 's/.*"trace_sha256":"\([0-9a-f]*\)".*/\1/' <<<"$json")
  echo "hash: $1: $hash, $((SECONDS - start)) s"
  [ "${first:=$hash}" = "$hash" ] || { echo "hash: $1 differs"; exit 1; }
  start=$SECONDS
  # shellcheck disable=SC2086
  json=$("${@:2}" study flows $flows -json 2>"$out/log") || { echo "hash: $1: $(tail -1 "$out/log")"; exit 1; }
  hash=$(grep -o '"trace_sha256":"[0-9a-f]*"' <<<"$json" | sha256sum | cut -d' ' -f1)
  echo "hash: $1: flows $hash, $((SECONDS - start)) s"
  [ "${first_flows:=$hash}" = "$hash" ] || { echo "hash: $1: flows differ"; exit 1; }
  start=$SECONDS
  # shellcheck disable=SC2086
  hash=$("${@:2}" study compare $compare -json 2>"$out/log" | sha256sum | cut -d' ' -f1) || { echo "hash: $1: $(tail -1 "$out/log")"; exit 1; }
  echo "hash: $1: compare $hash, $((SECONDS - start)) s"
  [ "${first_compare:=$hash}" = "$hash" ] || { echo "hash: $1: comparisons differ"; exit 1; }
}

echo "hash: ocs-sim fleet $args"
echo "hash: ocs-sim study flows $flows"
echo "hash: ocs-sim study compare $compare"
if [ "$("${GO:-go}" env GOHOSTARCH)" = amd64 ]; then
  build amd64 GOARCH=amd64 GOAMD64=v1
  run amd64 "$out/amd64"
  if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then
    build amd64-v3 GOARCH=amd64 GOAMD64=v3
    run amd64-v3 "$out/amd64-v3"
  else echo "hash: amd64-v3: skipped, this processor has no fused multiply-add"; fi
else
  echo "hash: amd64, amd64-v3: skipped, this machine is no amd64"
fi
build arm64 GOARCH=arm64
if [ "$("${GO:-go}" env GOHOSTARCH)" = arm64 ]; then
  run arm64 "$out/arm64"
elif qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64); then
  run "arm64 ($("$qemu" --version | sed -n '1s/.*version \([0-9.]*\).*/QEMU \1/p'))" "$qemu" "$out/arm64"
else
  echo "hash: arm64: skipped, no user-mode QEMU"
fi
