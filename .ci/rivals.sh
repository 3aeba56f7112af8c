#!/usr/bin/env bash
# A second planner by mistake: with the wrong fabric, an empty store, an older
# store, a copied store; on mosquitto and on the embedded broker of the first.
# The one in service must serve throughout, and no light change: the boards' own
# record. NODES (64) of the default fabric's, each on a simulated board.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mosquitto >/dev/null || PATH=$PATH:/usr/sbin
dir=$(mktemp -d); port=${PORT:-18961}; url=mqtt://127.0.0.1:$port
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
rings() { bin/ocsctl ring list -json -broker "$url" 2>/dev/null; }
serving() { local r; r=$(rings) || return 1; [[ $r == *'"state":"in_service"'* && $r != *'"state":"forming"'* && $r != *'"state":"degraded"'* && $r != *'"state":"down"'* ]]; }
await() { local begin=$SECONDS; until serving; do (( SECONDS - begin < $1 )) || { echo "rivals: not in service after $1 s"; tail -n 20 "$dir"/*.log; exit 1; }; sleep 0.5; done; }
bin/ocsctl fabric new -name f1 -nodes 64 -gpus 4 -k 2 -tp 16 >"$dir/wrong.json"
members() { grep -o '"nodes":[^]]*]' || true; }
for broker in mosquitto embedded; do
  if [ $broker = mosquitto ]; then
    command -v mosquitto >/dev/null || { echo "rivals: mosquitto: skipped, there is none"; continue; }
    printf 'listener %d 127.0.0.1\nallow_anonymous true\nmax_queued_messages 20000\n' "$port" >"$dir/m.conf"
    mosquitto -c "$dir/m.conf" >"$dir/mosquitto.log" 2>&1 & b=$!
    where=(-broker "$url")
  else
    where=(-listen "127.0.0.1:$port"); b=
  fi
  rm -f "$dir"/*.db
  first() { bin/ocs-planner run "${where[@]}" -state "$dir/one.db" >>"$dir/one.log" 2>&1 & one=$!; }
  first
  bin/ocs-sim agents -broker "$url" -modules 2 >"$dir/agents.out" 2>"$dir/agents.log" & agents=$!
  await 90; sleep 3; quiet=$SECONDS; before=$(rings)
  cp "$dir/one.db" "$dir/older.db"
  if [ $broker = mosquitto ]; then kill -9 $one; wait $one 2>/dev/null || true; first; await 60; fi
  cp "$dir/one.db" "$dir/copied.db"
  for kind in wrong empty older copied; do
    args=(); [ $kind != wrong ] || args=(-fabric-file "$dir/wrong.json")
    bin/ocs-planner run -broker "$url" -state "$dir/$kind.db" ${args[@]+"${args[@]}"} >"$dir/$kind.log" 2>&1 & two=$!
    for i in $(seq 24); do sleep 0.5; serving || { echo "rivals: $broker, $kind: the first one does not serve"; rings; tail -n 5 "$dir/one.log" "$dir/$kind.log"; exit 1; }; done
    kill -0 $one || { echo "rivals: $broker, $kind: the first one ended"; exit 1; }
    [ "$before" = "$(rings)" ] || { echo "rivals: $broker, $kind: rings changed"; exit 1; }
    kill -0 $two 2>/dev/null && said=$(grep -o 'standing by[^"]*' "$dir/$kind.log" | head -1) || said=$(tail -1 "$dir/$kind.log" | cut -c1-110)
    kill -9 $two 2>/dev/null || true; wait $two 2>/dev/null || true
    echo "rivals: $broker, $kind store: the first serves, rings as they were; the second: ${said:-says nothing}"
  done
  if [ $broker = mosquitto ]; then # the first one is gone, and its store is an older one, then none
    for kind in older none; do
      kill -9 $one; wait $one 2>/dev/null || true; rm -f "$dir/one.db"
      [ $kind = none ] || cp "$dir/older.db" "$dir/one.db"
      first; await 60; sleep 3
      [ "$(members <<<"$before")" = "$(rings | members)" ] || { echo "rivals: restarted with $kind store: rings changed"; exit 1; }
      echo "rivals: mosquitto: restarted with ${kind/none/no} store: rings as they were"
    done
  fi
  watched=$(( SECONDS - quiet ))
  kill -TERM $agents; wait $agents || true
  since=$(sed -n 's/.*"since_last_change_ms":\([0-9]*\).*/\1/p' <<<"$(tail -1 "$dir/agents.out")")
  (( since >= watched * 1000 )) || { echo "rivals: $broker: light changed $since ms ago, within the $watched s watched"; exit 1; }
  echo "light: $broker: no change in the $watched s watched"
  kill -9 $one $b 2>/dev/null || true; wait $one $b 2>/dev/null || true
done
