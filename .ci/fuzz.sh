#!/usr/bin/env bash
# Every fuzz target for FUZZTIME. A run that the go command ends with "context
# deadline exceeded", without an input that fails, came to its end: the worker
# was in the middle of an input when the time was over. PART=1/3: every third target,
# from the second on.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
part=${PART:-0/1}; n=0
for at in $(git grep -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' ':!bridge' | sed 's,/[^/]*:func ,:,'); do # FOLDER:TARGET
  [ $((n++ % ${part#*/})) = "${part%/*}" ] || continue
  p=./${at%:*} f=${at#*:}
  echo "fuzz $p $f"
  "$go" test -vet=off -run '^$' -fuzz "^$f\$" -fuzztime "${FUZZTIME:-5s}" "$p" 2>&1 | tee "$log" || {
    if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
      echo "fuzz $p $f: ended in the middle of an input"
    else exit 1; fi
  }
done
