#!/usr/bin/env bash
# The models of the protocol in node/model, each explored to its end by spin: states,
# depth, and that no property is broken. Then each with a defect planted, which spin
# must find, and the property that it broke. Then traces of the one replayed in the
# other. MODELS=0 leaves the models out, so that the traces alone are made.
set -euo pipefail
cd "$(dirname "$0")/.."
cc=${CC:-cc}
for c in spin "$cc"; do command -v "$c" >/dev/null || { echo "model: skipped, no $c"; exit 0; }; done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# explore NAME FLAGS...: spin's verdict on a model; its output is in $dir/NAME.n/out
explore() {
  local name=$1 at; shift
  at=$(mktemp -d "$dir/$name.XXXX")
  cp "node/model/$name.pml" "$at"
  (cd "$at" && spin -a "$@" "$name.pml" >spin.log && "$cc" -O2 -w -DSAFETY -DNOREDUCE -DMEMLIM=3500 -o pan pan.c && ./pan -m100000 -n >out 2>&1) || { cat "$at/spin.log" "$at/out"; exit 1; }
  ! grep -qE 'depth too small|not completed|memory limit' "$at/out" || [ -f "$at/$name.pml.trail" ] || { cat "$at/out"; echo "model: $name $*: not explored to its end"; exit 1; }
  last=$at
}
figures() { sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p; s/.*depth reached \([0-9]*\), errors: \([0-9]*\).*/depth \1, errors \2/p' "$1/out" | paste -sd' ' ; }
whole() { # MODEL FLAGS...: no property is broken
  explore "$@"
  [ ! -f "$last/$1.pml.trail" ] || { echo "model: $* breaks $(broke "$@")"; exit 1; }
  echo "model: $*: $(figures "$last")"
}
broke() { (cd "$last" && spin -t "${@:2}" "$1.pml" | sed -n 's/^\t*broken = //p'); }
planted() { # MODEL FLAGS... DEFECT: one is
  explore "$@"
  [ -f "$last/$1.pml.trail" ] || { echo "model: $*: the planted defect is not found"; exit 1; }
  echo "model: $*: found, it breaks \"$(broke "$@")\""
}
under=()
beside() { # COMMAND...: as many at once as there are processors
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do sleep 0.1; done
  ("$@") & under+=($!)
}
if [ "${MODELS:-1}" = 1 ]; then
  beside whole commit -DN=3 -DPLANS=2 -DTERMS=2 -DLIVES=2 -DSTRAY
  beside whole commit -DN=3 -DPLANS=2 -DTERMS=3 -DLIVES=3 -DLIAR
  beside whole commit -DN=3 -DPLANS=3 -DTERMS=2 -DLIVES=2 -DLIAR
  beside whole commit -DN=4 -DPLANS=2 -DTERMS=2 -DLIVES=2 -DLIAR
  beside whole stepover -DN=3 -DPLANS=3
  beside whole stepover -DN=3 -DPLANS=3 -DLIAR
  beside whole stepover -DN=3 -DPLANS=2 -DPOWER
  beside whole stepover -DN=4 -DPLANS=2 -DLIAR
  beside planted commit -DN=3 -DPLANS=2 -DTERMS=2 -DLIVES=2 -DREUSED
  beside planted commit -DN=3 -DPLANS=2 -DTERMS=2 -DLIVES=2 -DUNPREPARED
  beside planted commit -DN=3 -DPLANS=2 -DTERMS=2 -DLIVES=2 -DFORGETS
  beside planted commit -DN=3 -DPLANS=2 -DTERMS=3 -DLIVES=3 -DLIAR -DBELIEVED
  beside planted stepover -DN=3 -DPLANS=3 -DSTEPPED
  for p in "${under[@]}"; do wait "$p"; done
fi
# Traces: random runs of the model, the same for the same seed, that the code replays.
trace() { spin -n"$1" -T -u3000 -DN=3 -DPLANS=3 -DTERMS=3 -DLIVES=3 -DSTRAY node/model/commit.pml | grep -E '^(start|raise|prepare|decide|stage|sign|overdue|flush|restart|  [a-z]+ seen) ?' ; }
for seed in 1 3 4 38 51; do
  trace $seed >"$dir/$seed.txt"
  [ -z "${UPDATE:-}" ] || cp "$dir/$seed.txt" node/model/traces/
  cmp "$dir/$seed.txt" "node/model/traces/$seed.txt" || { echo "model: trace $seed is not what spin makes of the model; UPDATE=1 writes it anew"; exit 1; }
done
"${GO:-go}" test -count=1 ./node -run Model
# And a run of the machines that the model follows.
(cd node/model && spin -T -DREPLAY -DN=3 -DPLANS=3 -DTERMS=3 commit.pml) >"$dir/replay" || { cat "$dir/replay"; exit 1; }
! grep -E 'violated|[Ee]rror' "$dir/replay" || { echo "model: it does not follow the machines"; exit 1; }
echo "model: it follows $(grep -c 'IS(' node/model/machine.txt) steps of the machines"
