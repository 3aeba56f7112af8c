#!/usr/bin/env bash
# An agent of a simulated board, its optics on a bus of dbus-daemon's, read by busctl: every
# module and port is there, the agent killed leaves nothing that looks well, no bus is no
# error. Then size and memory. BMCWEB and MAPPER: programs of openbmc/bmcweb, built without
# authentication and TLS, and openbmc/phosphor-objmgr; what they make of it is asked by redfishtool.
set -euo pipefail
cd "$(dirname "$0")/.."
for c in dbus-daemon busctl jq; do command -v $c >/dev/null || { echo "bmc: skipped, no $c"; exit 0; }; done
dir=$(mktemp -d) pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
bus=unix:path=$dir/bus at=/xyz/openbmc_project/inventory/system/board/ringlight
DBUS_SYSTEM_BUS_ADDRESS=$bus bin/ocs-bmc -socket "$dir/agent.sock" || { echo "bmc: no bus is an error"; exit 1; }
dbus-daemon --session --nofork --address="$bus" & pids+=($!)
bin/ocs-agent config -sim | jq --arg d "$dir" '.fabric = "f1" | .state = $d | .broker = "" | .health_ms = 500 | .board.kind = "sim" | .board.calibrated = true | .board.bundles = 2' >"$dir/agent.json"
bin/ocs-agent run -config "$dir/agent.json" 2>"$dir/agent.log" & agent=$!; pids+=($agent)
DBUS_SYSTEM_BUS_ADDRESS=$bus bin/ocs-bmc -socket "$dir/agent.sock" -every 200ms 2>"$dir/bmc.log" & bmc=$!; pids+=($bmc)
ask() { busctl --address="$bus" "$@"; }
until ask tree --list xyz.openbmc_project.Ringlight 2>/dev/null | grep -q module; do
  kill -0 $agent $bmc || { cat "$dir"/*.log; exit 1; }; sleep 1
done
sleep 2
modules=$(ask tree --list xyz.openbmc_project.Ringlight | grep -c "^$at/bundle[0-9]*_module[0-9]*$")
ports=$(ask tree --list xyz.openbmc_project.Ringlight | grep -c "^$at/bundle[0-9]*_external[12]$")
want=$(jq '.board.bundles * .board.modules' "$dir/agent.json")
[ "$modules" = "$want" ] && [ "$ports" = 4 ] || { echo "bmc: $modules modules of $want, $ports ports of 4"; exit 1; }
ask introspect xyz.openbmc_project.Ringlight /xyz/openbmc_project/sensors/temperature/ringlight_bundle0_module0 | grep -E "Value|Critical"
[ "$(ask get-property xyz.openbmc_project.Ringlight $at xyz.openbmc_project.State.Decorator.OperationalStatus Functional)" = "b true" ]
echo "bmc: $modules modules, $ports ports; ocs-bmc $(stat -c %s bin/ocs-bmc) bytes, $(awk '/VmRSS/{print $2}' /proc/$bmc/status) KiB; agent $(awk '/VmRSS/{print $2}' /proc/$agent/status) KiB"
if [ "${BMCWEB:-}" ] && [ "${MAPPER:-}" ]; then
  export DBUS_SYSTEM_BUS_ADDRESS=$bus
  "$MAPPER" --service-namespaces=xyz.openbmc_project --interface-namespaces=xyz.openbmc_project 2>"$dir/mapper.log" & pids+=($!)
  (cd "$dir" && exec "$BMCWEB" >"$dir/web.log" 2>&1) & pids+=($!)
  redfish() { redfishtool -A None -S Never -r 127.0.0.1:18080 raw GET "/redfish/v1/$1"; }
  for i in $(seq 60); do redfish Cables 2>/dev/null | grep -q cable && break; sleep 1; done
  cables=$(redfish Cables | jq '."Members@odata.count"') state=$(redfish Systems/system/FabricAdapters/ringlight | jq -r .Status.Health)
  echo "bmc: bmcweb serves $cables cables, adapter ringlight is $state; first is $(redfish Cables/bundle0_external1_cable | jq -r .CableType)"
  [ "$cables" = 4 ] && [ "$state" = OK ]
  hot=$(redfish Chassis/ringlight/Sensors/temperature_ringlight_bundle0_module0 | jq -c '[.Reading > 0, .Thresholds.UpperCaution.Reading, .Thresholds.UpperCritical.Reading]')
  light=$(redfish Chassis/ringlight/Sensors | jq '."Members@odata.count"') temperatures=$(redfish Chassis/ringlight/Thermal | jq '.Temperatures | length')
  echo "bmc: of board ringlight $temperatures temperatures, one has [is read, warning, critical] $hot, and $light sensors of light"
  [ "$hot" = '[true,70,75]' ] && [ "$light" = 2 ] && [ "$temperatures" = "$want" ]
fi
kill -9 $agent
until [ "$(ask get-property xyz.openbmc_project.Ringlight $at xyz.openbmc_project.State.Decorator.OperationalStatus Functional)" = "b false" ]; do sleep 0.2; done
echo "bmc: the agent was killed: not functional"
