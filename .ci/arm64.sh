#!/usr/bin/env bash
# The static arm64 agent under user-mode QEMU, on its own simulated board:
# calibrate a bundle from nothing, switch every path, print the ledger.
set -euo pipefail
cd "$(dirname "$0")/.."
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { echo "arm64: skipped, no user-mode QEMU"; exit 0; }
agent=bin/linux-arm64/ocs-agent
[ -x "$agent" ] || make -s cross-linux-arm64
echo "arm64: $("$qemu" --version | head -1)"
"$qemu" "$agent" selftest
