#!/usr/bin/env bash
# Wall clock from a line's edge to the write that answers it, on this machine:
# idle, while the process makes garbage that the runtime collects (alloc), or the agent
# (garbage; apart: with threads as they are), while it checks seals in eight goroutines and
# has one processor, which fails where that is noticed, and while every processor is busy
# with other processes (stress-ng where there is one), with what the machine gives of real
# time and without.
#
#   .ci/latency.sh      RUNS=300
set -euo pipefail
cd "$(dirname "$0")/.."
RUNS=${RUNS:-300}
mkdir -p bin
${GO:-go} test -c -o bin/latency.test ./agent
echo "commit $(git describe --always --dirty)  $(${GO:-go} version)  $(uname -sr)  $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $(nproc) processors"

burners=()
trap 'for p in "${burners[@]}"; do kill "$p" 2>/dev/null || true; done' EXIT
busy() {
  local i
  if command -v stress-ng >/dev/null; then
    stress-ng --quiet --cpu "$(nproc)" --vm 1 --vm-bytes 64M --io 1 & burners+=($!)
    return
  fi
  for ((i = 0; i < 2 * $(nproc); i++)); do (while :; do :; done) & burners+=($!); done
  (while :; do dd if=/dev/zero of=/dev/null bs=1M count=2000 status=none; done) & burners+=($!)
}
# once LOAD NAME COMMAND...
once() {
  local load=$1 name=$2; shift 2
  RINGLIGHT_COSTS=latency-$load-$name.json RINGLIGHT_LATENCY=$RUNS RINGLIGHT_LOAD=$load timeout 170 "$@" ./latency.test -test.run TestLatencyOfAnAnswer -test.v -test.timeout 160s | grep '^latency' || echo "latency: $load: failed"
}
plain=(env)
command -v setpriv >/dev/null && plain=(setpriv --bounding-set=-sys_nice,-ipc_lock --inh-caps=-sys_nice,-ipc_lock)
cd bin
if seals=$(RINGLIGHT_LATENCY=$RUNS RINGLIGHT_LOAD=verify8 timeout 170 taskset -c 0 ./latency.test -test.run TestLatencyOfAnAnswer -test.v -test.timeout 160s); then
  grep '^latency' <<<"$seals"
else
  echo "$seals"; exit 1
fi
for load in idle alloc garbage apart busy garbage apart; do
  [ $load = busy ] && busy
  once $load realtime env
  once $load plain "${plain[@]}"
done
for p in "${burners[@]}"; do kill "$p" 2>/dev/null || true; done
echo "the simulator assumes a wake-up of p50 25 p99 60 us, edge to write entered p50 51 us, 139 at most; with what was measured:"
${GO:-go} build -o ocs-sim ../cmd/ocs-sim
for c in ${DEMOS-idle-realtime busy-realtime}; do
  [ ! -f "latency-$c.json" ] || echo "$c  $(timeout 170 ./ocs-sim demo -wide -costs "latency-$c.json" | grep 'days  ' || echo failed)"
done
