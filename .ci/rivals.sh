#!/usr/bin/env bash
# Mistakes with planners and agents, on mosquitto and on the embedded broker of
# the planner. A second planner: with the wrong fabric, an empty store, an older
# store (of before a node was drained and another one let in again), a copied
# store; the right one started again with the older store, and with none. Then a
# second agent with the number of a ring's member. The planner in service must
# serve throughout, rings stay, and no light change: the boards' own record.
# BROKERS names one of the two.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mosquitto >/dev/null || PATH=$PATH:/usr/sbin
dir=$(mktemp -d); port=${PORT:-18961}; url=mqtt://127.0.0.1:$port
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
rings() { bin/ocsctl ring list -json -broker "$url" 2>/dev/null; }
serving() { local r; r=$(rings) || return 1; [[ $r == *'"state":"in_service"'* && $r != *'"state":"forming"'* && $r != *'"state":"degraded"'* && $r != *'"state":"down"'* ]]; }
await() { local begin=$SECONDS; until serving; do (( SECONDS - begin < $1 )) || { echo "rivals: not in service after $1 s"; tail -n 20 "$dir"/*.log; exit 1; }; sleep 0.5; done; }
bin/ocsctl fabric new -name f1 -nodes 64 -gpus 4 -k 2 -tp 32 -spares 8 >"$dir/right.json"
bin/ocsctl fabric new -name f1 -nodes 64 -gpus 4 -k 2 -tp 16 >"$dir/wrong.json"
waits() { bin/ocsctl fabric show -json -broker "$url" 2>/dev/null || true; }
# duplicate: a second agent, in a process of its own, with the number of node 9.
duplicate() {
  rm -rf "$dir/twin"
  echo '{"fabric":"f1","node":9,"broker":"'"$url"'","state":"'"$dir/twin"'","board":{"kind":"sim","gpus":4,"bundles":2,"modules":1}}' >"$dir/twin.json"
  bin/ocs-agent run -config "$dir/twin.json" >"$dir/twin.log" 2>&1 & twin=$!
  local named= born=$(date +%s%N) up= now
  for i in $(seq 100); do
    sleep 0.2; now=$(date +%s%N)
    [ -n "$up" ] || ! grep -q 'broker connected' "$dir/twin.log" || { up=yes; born=$now; }
    [[ $(waits) != *'node 9: two agents claim'* ]] || { named=$now; break; }
  done
  [ -n "$named" ] || { echo "rivals: $broker: two agents with one number: not named"; tail -n 5 "$dir/twin.log"; exit 1; }
  local took=$(( (named - born) / 1000000 ))
  (( took <= 5000 )) || { echo "rivals: $broker: two agents with one number: named after $took ms"; exit 1; }
  for i in $(seq 20); do sleep 0.5; serving || { echo "rivals: $broker, duplicate: a ring is not in service"; rings; exit 1; }; done
  [ "$(members <<<"$before")" = "$(rings | members)" ] || { echo "rivals: $broker, duplicate: rings changed"; rings; exit 1; }
  kill -9 $twin; wait $twin 2>/dev/null || true
  local since=$SECONDS
  if [ $broker = mosquitto ]; then # by an operator's word, else by itself
    sleep 2; bin/ocsctl clear 9 -broker "$url" >/dev/null
  fi
  until [[ $(waits) == *'"waiting":[]'* ]]; do
    sleep 1; serving || { echo "rivals: $broker: the second agent is gone, a ring is not in service"; rings; exit 1; }
    (( SECONDS - since < 200 )) || { echo "rivals: $broker: the second agent is gone, and it is not as before:"; waits; exit 1; }
  done
  [ "$(members <<<"$before")" = "$(rings | members)" ] || { echo "rivals: $broker: the second agent is gone, rings are others"; rings; exit 1; }
  echo "rivals: $broker, duplicate agent: named $took ms after it began, rings as they were; $(( SECONDS - since )) s after it is gone nothing is waited for"
}
members() { grep -o '"nodes":[^]]*]' || true; }
for broker in ${BROKERS:-mosquitto embedded}; do
  if [ $broker = mosquitto ]; then
    command -v mosquitto >/dev/null || { echo "rivals: mosquitto: skipped, there is none"; continue; }
    printf 'listener %d 127.0.0.1\nallow_anonymous true\nmax_queued_messages 20000\n' "$port" >"$dir/m.conf"
    mosquitto -c "$dir/m.conf" >"$dir/mosquitto.log" 2>&1 & b=$!
    where=(-broker "$url")
  else
    where=(-listen "127.0.0.1:$port"); b=
  fi
  rm -f "$dir"/*.db
  first() { bin/ocs-planner run "${where[@]}" -fabric-file "$dir/right.json" -state "$dir/one.db" "$@" >>"$dir/one.log" 2>&1 & one=$!; }
  first
  bin/ocs-sim agents -json -broker "$url" -fabric-file "$dir/right.json" -modules 2 >"$dir/agents.out" 2>"$dir/agents.log" & agents=$!
  await 90; sleep 3; early=$(rings)
  cp "$dir/one.db" "$dir/older.db"
  for n in 3 20 33; do bin/ocsctl drain $n -timeout 60s -broker "$url" >/dev/null; done
  bin/ocsctl undrain 20 -timeout 60s -broker "$url" >/dev/null
  await 30; sleep 3; quiet=$SECONDS; before=$(rings)
  [ "$(members <<<"$early")" != "$(members <<<"$before")" ] || { echo "rivals: the rings have not changed, the older store is not older"; exit 1; }
  if [ $broker = mosquitto ]; then kill -9 $one; wait $one 2>/dev/null || true; first; await 60; fi
  cp "$dir/one.db" "$dir/copied.db"
  for kind in wrong empty older copied; do
    args=(-fabric-file "$dir/right.json"); [ $kind != wrong ] || args=(-fabric-file "$dir/wrong.json")
    bin/ocs-planner run -broker "$url" -state "$dir/$kind.db" "${args[@]}" >"$dir/$kind.log" 2>&1 & two=$!
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
    # A term beyond what a planner without a store believes: begun above one, lost
    # with its store, named by the next, and begun above that.
    far=$(( 1 << 45 )); again() { kill -9 $one; wait $one 2>/dev/null || true; rm -f "$dir/one.db" "$dir/one.log"; first "$@"; }
    again -term-above $far; await 60; sleep 10 # agents follow a far term when its planner has shown that it is there
    again
    for i in $(seq 60); do grep -q "started with -term-above $(( far + 1 ))" "$dir/one.log" && break; sleep 0.5; done
    grep -q "started with -term-above $(( far + 1 ))" "$dir/one.log" || { echo "rivals: a far term is not named with its way out"; tail -5 "$dir/one.log"; exit 1; }
    again -term-above $(( far + 1 )); await 60; sleep 3
    [ "$(members <<<"$before")" = "$(rings | members)" ] || { echo "rivals: begun above a far term: rings changed"; exit 1; }
    [[ $(waits) == *'"term":'$(( far + 2 ))* ]] || { echo "rivals: not in the term above"; waits; exit 1; }
    echo "rivals: mosquitto: a far term, its store lost: named with -term-above $(( far + 1 )), and begun above it rings as they were"
  fi
  duplicate
  watched=$(( SECONDS - quiet ))
  kill -TERM $agents; wait $agents || true
  since=$(sed -n 's/.*"since_last_change_ms":\([0-9]*\).*/\1/p' <<<"$(tail -1 "$dir/agents.out")")
  (( since >= watched * 1000 )) || { echo "rivals: $broker: light changed $since ms ago, within the $watched s watched"; exit 1; }
  echo "light: $broker: no change in the $watched s watched"
  kill -9 $one $b 2>/dev/null || true; wait $one $b 2>/dev/null || true
done
