#!/usr/bin/env bash
# Runs what the pages tell people to type: the lines that begin with "$ " of each block
# marked console, a page a script, in a copy of the tree, with what it started ended
# after it; what stands below a line must be printed (but for spaces and what "..." is for).
# A block marked "console fails" must fail; one marked "console long" is run with LONG=1. PAGES: these alone.
set -uo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
rc=0 pages=0 lines=0
for page in ${PAGES:-$(ls README.md docs/*.md)}; do
  script=$(awk '
    /^```console/ { on = !/long/ || ENVIRON["LONG"] != ""; fails = /fails/; next }
    /^```/ { on = 0; next }
    on && /^\$ / { l = substr($0, 3); more = 1
      if (fails) print "! { " l "; } || { echo \"did not fail\"; exit 1; }"; else print l; next }
    on && /^> / { print substr($0, 3) }' "$page")
  [ -n "$script" ] || continue
  for tool in $(grep -oE 'go install [^ ]+@[^ ]+' <<<"$script" | cut -d' ' -f3); do
    GOBIN=$work ${GO:-go} install "$tool" 2>/dev/null || { echo "skipped $page: $tool cannot be had here"; continue 2; }
  done
  printed=$(awk '
    /^```console/ { on = !/long/ || ENVIRON["LONG"] != ""; next }
    /^```/ { on = 0 }
    on && !/^[$>] / { gsub(/\.\.\./, "\n"); print }' "$page" | tr -s ' \t' ' ' | sed 's/^ //; s/ $//; /^$/d')
  n=$(printf '%s\n' "$script" | wc -l)
  rm -rf "$work/tree"; mkdir "$work/tree"
  git ls-files -z | xargs -0 cp --parents -t "$work/tree" 2>/dev/null
  [ -d bin ] && cp -r bin "$work/tree/bin"
  printf 'PATH=$PWD/bin:$PATH\nexport COLUMNS=200\nset -eE\ntrap '\''echo "line: $BASH_COMMAND" >&2'\'' ERR\n%s\n' "$script" >"$work/script"
  (cd "$work/tree" && exec setsid timeout -k 5 300 bash "$work/script" >"$work/out" 2>&1 </dev/null) & pid=$!
  if ! wait $pid; then
    echo "FAILED  $page:"; tail -20 "$work/out"; rc=1
  elif tr -s ' \t\n' ' ' <"$work/out" >"$work/said"; missing=$(while IFS= read -r l; do [ -z "$l" ] || grep -qF -- "$l" "$work/said" || echo "$l"; done <<<"$printed"); [ -n "$missing" ]; then
    echo "FAILED  $page: is not printed:"; echo "$missing"; rc=1
  else
    echo "ok      $page: $n commands"
  fi
  kill -9 -- -$pid 2>/dev/null # what it left running
  pages=$((pages + 1)) lines=$((lines + n))
done
echo "$lines commands of $pages pages"
exit $rc
