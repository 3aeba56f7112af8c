#!/usr/bin/env bash
# What the pages name but do not run, being one of several or wanting a fabric, a board
# or root: each `ocsctl ...` within a line, and each line of blocks that are no console,
# names a command that there is, with flags that it has.
set -uo pipefail
cd "$(dirname "$0")/.."
rc=0 n=0
while IFS=$'\t' read -r page line; do
  read -ra words <<<"$line"
  prog=${words[0]#bin/} name=() flags=()
  for w in "${words[@]:1}"; do
    case $w in
    '#'* | '|' | '>' | '&&' | ';' | '2>&1') break ;;
    -[a-z]*) w=${w%%=*}; flags+=("${w%[,.;:)]}") ;;
    *) [[ ${#flags[@]} = 0 && ${#name[@]} -lt 3 && $w =~ ^[a-z][a-z-]*$ ]] && name+=("$w") ;;
    esac
  done
  [ ${#name[@]} -gt 0 ] || continue
  n=$((n + 1))
  help=
  for ((k = ${#name[@]}; k > 0; k--)); do
    help=$("bin/$prog" help "${name[@]:0:k}" 2>/dev/null) && break
  done
  [ -n "$help" ] || { echo "$page: $line: no such command"; rc=1; continue; }
  for f in ${flags[@]+"${flags[@]}"}; do
    case $f in -h | -help) continue ;; esac
    grep -qE "^ +(ocs[a-z-]+ .*)?$f( |\$)" <<<"$help" || grep -qF -- " $f" <<<"$help" || { echo "$page: $line: no flag $f"; rc=1; }
  done
done < <(for p in README.md docs/*.md; do
  awk -v p="$p" '/^```/ { on = !on; console = /console/; next }
    on && !console && /^(\$ )?(bin\/)?(ocsctl|ocs-agent|ocs-planner|ocs-sim|ocs-slurm|ocs-sonic) / { sub(/^\$ /, ""); print p "\t" $0; next }
    !on { s = $0; while (match(s, /`(bin\/)?(ocsctl|ocs-agent|ocs-planner|ocs-sim|ocs-slurm|ocs-sonic) [^`]*`/)) { print p "\t" substr(s, RSTART + 1, RLENGTH - 2); s = substr(s, RSTART + RLENGTH) } }' "$p"
done)
echo "$n commands named within lines"
exit $rc
