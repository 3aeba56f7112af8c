#!/usr/bin/env bash
# Defects planted into the code, one after the other, each by a build of its own;
# what guards against it must fail, and say by what. The tree is not changed.
# ONLY names some of them.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
found=0; missed=0
# plant NAME FILE EXPRESSION PATTERN COMMAND..: what perl's EXPRESSION makes of FILE
# is found by COMMAND, which ends with an error and prints PATTERN. OVERLAY in its
# environment is what go build takes for -overlay.
plant() {
  local name=$1 file=$2 expression=$3 pattern=$4; shift 4
  [[ -z ${ONLY:-} || $name == *${ONLY}* ]] || return 0
  perl -0pe "$expression" "$file" >"$dir/planted.go"
  ! cmp -s "$file" "$dir/planted.go" || { echo "planted: $name: nothing of $file fits"; exit 1; }
  echo "{\"Replace\":{\"$PWD/$file\":\"$dir/planted.go\"}}" >"$dir/overlay.json"
  local rc=0
  OVERLAY=$dir/overlay.json "$@" >"$dir/out" 2>&1 || rc=$?
  if (( rc != 0 )) && grep -q -- "$pattern" "$dir/out"; then
    echo "found    $name: $(grep -m1 -o -- ".\{0,40\}$pattern.\{0,80\}" "$dir/out")"; found=$((found + 1))
  else
    echo "MISSED   $name (exit $rc)"; tail -n 12 "$dir/out"; missed=$((missed + 1))
  fi
}
# soak: the cluster of processes with a planted agent or planner.
soak() { # COMMAND
  mkdir -p "$dir/bin"; cp bin/* "$dir/bin/" 2>/dev/null || true
  $go build -overlay "$OVERLAY" -o "$dir/bin/$1" "./cmd/$1" || return 9
  PATH=$PATH:/usr/sbin $go test ./sim/procs -count 1 -timeout 0 -v -run 'TestProcesses$' -args -bin "$dir/bin" -broker mosquitto -soak "${SOAK:-3m}"
}
# edits: a fabric edited while it runs, on boards.
edits() { RINGLIGHT_EDITS=${EDITS:-40} $go test -overlay "$OVERLAY" -count 1 -run 'RandomEdits|FabricGrowsOnBoards|NewFibres|FibreWithLight' ./sim/fleet; }
# lies: a device that lies with its own key; PART of a case's name.
lies() { # PART
  RINGLIGHT_LIES=$1 $go test -overlay "$OVERLAY" -count 1 -run LiesStopNothing ./sim/fleet
}
refit=planner/hbd/refit.go
plant "an edit that places all rings anew" $refit 's/(for _, r := range was\.rings \{\n\t\tif )!slices\.Contains\(ends, r\.id\)/${1}false/' "edits: \|panic\|closed rings" edits
plant "an edit that is never refused" $refit 's/(func Against\([^\n]*\n)/$1\treturn nil, nil\n/' "edits: \|panic" edits
plant "an edit that takes fibres with light" $refit 's/(func fibresInUse\([^\n]*\n)/$1\treturn\n/' "edits: \|FibreWithLight" edits
plant "rings told again without the light they have" $refit 's/Refitted\(h \*Rings\) \{\n/Refitted(h *Rings) {\n\tfor i := range h.nodes {\n\t\th.unassign(&h.nodes[i])\n\t}\n/' "edits: \|panic\|closed rings" edits
plant "a trial that asks for own light alone" agent/trial.go 's/if !a\.sees\(id, ev\.Path\) \{/if false {/; s/ev\.Received != proto\.NoPower && //; s/ev\.Received < proto\.MilliDBm\(least\)/false/' "NewFibres" edits
plant "a trial that lights a path of a node in a ring" agent/trial.go 's/case a\.node\.Carries\(c\.Bundle\) && !a\.busy\(c\.Bundle\):/case false:/' "NewFibres\|edits: " edits
plant "a trial that does not end" agent/trial.go 's/(func \(a \*manual\) endTry[^\n]*\n)/$1\tif true {\n\t\treturn nil\n\t}\n/; s/tryPatience = 5 \* time\.Second/tryPatience = 500 * time.Second/' "edits: \|closed rings\|half switch\|stranger" edits
plant "a new description that is not stored" planner/edit.go 's/\{Key: keyFabric, Value: x\.to\.Encode\(\)\}/{Key: keyFabric, Value: p.fab.Encode()}/' "edits: " edits
plant "a generation believed from any report" planner/hbd/news.go 's/(\tn\.bypass = max\(n\.bypass, m\.BypassSeq\(\)\)\n)/$1\th.gen = max(h.gen, m.Gen, n.Scalars().StagedGeneration)\n/' "(a) an unrelated ring" lies "spare alone rising: reported.StagedGeneration=known+limit"
plant "a term believed from any birth" planner/fence.go 's/2\*n > there/n > 0/; s/terms\[n-1-there\/2\]/terms[n-1]/' "(c) audit verify" lies "spare alone: presence.SeenTerm=known+limit"
plant "the number of a report believed for ever" planner/member/hear.go 's/sealed && d\.sealed && t\.replayed\(d, m\)/sealed \&\& d.sealed/' "(e) " lies "member beside again: reported.Mode="
plant "event numbers believed that nobody gave out" planner/member/events.go 's/(\) rewound\([^\n]*\n)/$1\tif true {\n\t\treturn\n\t}\n/' "events of its agent are not acknowledged" lies "beside again: event.Count"
plant "event numbers believed however far" planner/member/events.go 's/claim\{"seq", c\.Last, m\.Seq\}, //; s/case m\.Seq == c\.Last\+1:/case m.Seq > c.Last:/; s/(\) rewound\([^\n]*\n)/$1\tif true {\n\t\treturn\n\t}\n/' "events of its agent are not acknowledged" lies "member beside: event.Seq=known+limit"
if PATH=$PATH:/usr/sbin command -v mosquitto >/dev/null; then
  plant "an agent that leaks a descriptor a record" agent/run_journal.go 's/(\tline := formatLine\(recordHeadOf)/\t_, _ = syscall.Open("\/dev\/null", 0, 0)\n$1/' "descriptors [0-9]*, later" soak ocs-agent
  plant "a planner that leaks a descriptor a scrape" planner/server/metrics.go 's/import \(\n/import (\n\t"syscall"\n/; s/(func \(c \*scraper\) fabric[^\n]*\n)/$1\t_, _ = syscall.Open("\/dev\/null", 0, 0)\n/' "planner: descriptors [0-9]*, later" soak ocs-planner
  plant "a journal that is never folded" agent/run_journal.go 's/if j\.size \+= int64\(len\(line\)\); j\.size > j\.limit/if j.size += int64(len(line)); j.size < 0/' "the journal of node" soak ocs-agent
  plant "logs that are left behind" agent/run_journal.go 's/(func \(j \*fileJournal\) sweep\(\) error \{\n)/$1\treturn nil\n/' "the journal of node" soak ocs-agent
else
  echo "planted: the soak's: skipped, no mosquitto"
fi
echo "planted: $found found, $missed missed"
exit $(( missed > 0 ))
