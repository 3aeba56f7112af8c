#!/usr/bin/env bash
# A real broker, a planner and 64 simulated nodes, each a process of its own:
# in service; the planner killed with -9 and started again changes nothing; the
# broker killed with -9 and started again changes no light, and everything is
# in service again within 90 s. What the light did is the boards' own record.
# CACHE=off leaves no plan with the broker.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mosquitto >/dev/null || PATH=$PATH:/usr/sbin
command -v mosquitto >/dev/null || { echo "broker: skipped, no mosquitto"; exit 0; }
dir=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
port=${PORT:-18931}; url=mqtt://127.0.0.1:$port
cat >"$dir/mosquitto.conf" <<C
listener $port 127.0.0.1
allow_anonymous true
max_inflight_messages 200
max_queued_messages 20000
C
broker() { mosquitto -c "$dir/mosquitto.conf" >>"$dir/mosquitto.log" 2>&1 & broker=$!; }
bin/ocsctl fabric new -o "$dir/fabric.json" >/dev/null
planner() { bin/ocs-planner run -fabric-file "$dir/fabric.json" -broker "$url" -cache "${CACHE:-on}" -state "$dir/planner.db" >>"$dir/planner.log" 2>&1 & planner=$!; }
rings() { bin/ocsctl ring list -json -broker "$url" 2>/dev/null; }
serving() { # all rings in service?
  local r; r=$(rings) || return 1
  [[ $r == *'"state":"in_service"'* && $r != *'"state":"forming"'* && $r != *'"state":"degraded"'* && $r != *'"state":"down"'* ]]
}
await() { # await SECONDS: time until all rings are in service
  local begin=$SECONDS
  until serving; do
    (( SECONDS - begin < $1 )) || { echo "broker: not in service after $1 s"; rings; tail -n 20 "$dir"/*.log; exit 1; }
    sleep 0.5
  done
  echo $(( SECONDS - begin ))
}
broker; planner
bin/ocs-sim broker-check -broker "$url" # before anybody is in service: it uses a fabric of its own
bin/ocs-sim agents -lock off -json -broker "$url" -cache "${CACHE:-on}" >"$dir/agents.out" 2>"$dir/agents.log" & agents=$!
echo "broker: $(mosquitto -h | head -1); in service after $(await 90) s"
sleep 2; quiet=$SECONDS
before=$(rings)
kill -9 $planner; wait $planner 2>/dev/null || true; sleep 2; planner
echo "planner: killed with -9 and started again; in service after $(await 90) s"
sleep 3; after=$(rings)
[ "$before" = "$after" ] || { echo "broker: the planner's restart changed the rings"; echo "$before"; echo "$after"; exit 1; }
kill -9 $broker; wait $broker 2>/dev/null || true; sleep 5; broker
back=$SECONDS
echo "broker: killed with -9, away 5 s, started again; in service after $(await 90) s"
until bin/ocsctl node list -json -broker "$url" 2>/dev/null | tr -d ' \n' | awk '{exit !(gsub(/"online":true/,"") == 64)}'; do
  (( SECONDS - back < 90 )) || { echo "broker: not all nodes are back after 90 s"; exit 1; }
  sleep 0.5
done
echo "nodes: 64 of 64 online $(( SECONDS - back )) s after the broker started again"
[ "$before" = "$(rings)" ] || { echo "broker: the broker's restart changed the rings"; exit 1; }
watched=$(( SECONDS - quiet ))
kill -TERM $agents; wait $agents || true
record=$(tail -1 "$dir/agents.out")
since=$(sed -n 's/.*"since_last_change_ms":\([0-9]*\).*/\1/p' <<<"$record")
(( since >= watched * 1000 )) || { echo "broker: light changed ${since} ms ago, within the ${watched} s watched: $record"; exit 1; }
echo "light: no change in the $watched s watched: $record"
rings | head -c 400 || true
echo
