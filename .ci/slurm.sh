#!/usr/bin/env bash
# A real slurmctld with munge and 20 slurmd's on loopback, a planner and 20 simulated
# boards; ocs-slurm between them. Judged by Slurm's own word, the job's own clock and
# the boards' control socket. JOBS, how many come and go in the end; SHAPE, tree,
# block or ring; SLURM_ROOT, a folder with another release of Slurm (make slurm-roots).
# With SEED instead JOBS (200) under all that goes wrong, with Slurm's default settings.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
SEED=${SEED:-} JOBS=${JOBS:-$([ -n "${SEED:-}" ] && echo 200 || echo 1000)} SHAPE=${SHAPE:-tree} R=${SLURM_ROOT:-} NODES=20
[ -z "$R" ] || [ -x "$R/usr/sbin/slurmctld" ] || { echo "slurm: $SHAPE skipped, no Slurm in $R (make slurm-roots)"; exit 0; }
D=$(mktemp -d "$R/tmp/slurm.XXXX"); D=${D#"$R"}; W=$R$D # as Slurm sees it, as we do
sl() { if [ -n "$R" ]; then chroot "$R" env PATH="$PATH" SLURM_CONF="$D/slurm.conf" "$@"; else SLURM_CONF=$D/slurm.conf "$@"; fi; }
for c in munged slurmctld slurmd sbatch srun; do sl sh -c "command -v $c" >/dev/null || { echo "slurm: skipped, no $c (packages slurmctld, slurmd, slurm-client, munge)"; rm -rf "$W"; exit 0; }; done
[ "$(id -u)" = 0 ] || { echo "slurm: skipped, slurmd wants root"; rm -rf "$W"; exit 0; }
began=$(date +%s%3N) mounted=()
if [ -n "$R" ]; then for h in localhost "$(hostname)"; do grep -qsw "$h" "$R/etc/hosts" || echo "127.0.0.1 $h" >>"$R/etc/hosts"; done; for m in proc dev; do mountpoint -q "$R/$m" || { mount --bind /$m "$R/$m"; mounted+=("$R/$m"); }; done; fi
ended() {
  local rc=$?; set +e # each of these may be gone
  touch "$W/go"; [ $rc = 0 ] || sleep 1 # so that no script stays
  for f in "$W"/*.pid "$W"/spool/*.pid; do [ -f "$f" ] && kill -9 "$(cat "$f")" 2>/dev/null; done
  pkill -9 -f -- "-notes $D/notes"; pkill -9 -f -- "-state $W/planner.db" # below a job, or another's child
  kill -9 $(jobs -p) 2>/dev/null; wait 2>/dev/null
  for m in ${mounted[@]+"${mounted[@]}"}; do umount "$m" || umount -l "$m"; done
  [ $rc = 0 ] || tail -n 15 "$W"/log/{watch,planner,agents,slurmctld}.log || true
  [ -z "${KEEP:-}" ] || cp -r "$W/log" "$KEEP"
  rm -rf "$W"
}
trap ended EXIT
fail() { echo "FAILED: $*" >&2; exit 1; } # to be seen within $( ) too
say() { local t=$(( $(date +%s%3N) - began )); printf "%3d.%01d s  %s\n" $((t / 1000)) $((t % 1000 / 100)) "$*"; }
until_true() { # until_true SECONDS WORDS...: a command comes true
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}

# The fabric: four rings of four nodes and four spares.
[ -z "$R" ] || printf 'CgroupPlugin=disabled\n' >"$W/cgroup.conf" # of a newer release
mkdir -p "$W"/{log,state,spool,notes,out}
port=$((20000 + RANDOM % 10000)); mqtt=$port http=$((port + 1)) ctld=$((port + 2)) first=$((port + 3))
last=$((NODES - 1)); all=n[00-$last]
seq -f 'n%02g' 0 $last >"$W/names"
bin/ocsctl fabric new -nodes $NODES -tp 16 -spares 4 -names "$W/names" >"$W/fabric.json"
export RINGLIGHT_HTTP=http://127.0.0.1:$http
plans="bin/ocs-planner run -fabric-file $W/fabric.json -broker mqtt://127.0.0.1:$mqtt -http 127.0.0.1:$http -state $W/planner.db"
planner() { $plans >>"$W/log/planner.log" 2>&1 & planner=$!; }
PATH=$PATH:/usr/sbin; printf 'listener %s 127.0.0.1\nallow_anonymous true\n' $mqtt >"$W/broker.conf"
command -v mosquitto >/dev/null || { echo "slurm: skipped, no mosquitto"; exit 0; }
mosquitto -c "$W/broker.conf" >"$W/log/broker.log" 2>&1 &
planner
bin/ocs-sim agents -fabric-file "$W/fabric.json" -modules 1 -broker mqtt://127.0.0.1:$mqtt -control "unix:$W/boards" >"$W/log/agents.log" 2>&1 & agents=$!
boards() { perl -MIO::Socket::UNIX -MTime::HiRes=time -e '$s = IO::Socket::UNIX->new($ARGV[0]) or die; printf "%d\n", time() * 1e6; print $s "$ARGV[1]\n"; <$s>' "$W/boards" "$1"; } # prints when, in us
ask() { bin/ocsctl job "$@" -json; }
events() { timeout 1 bin/ocsctl job watch "$1" -json 2>/dev/null || true; }
at() { sed -n 's/.*"event":"'"$1"'","at_ms":\([0-9]*\).*/\1/p' | awk -v from="${2:-0}" '$1 >= from' | head -1; } # when an event came first, after a time

# Slurm: with the topology that the planner says, and ocs-slurm as its prolog, epilog and watcher.
cp bin/ocs-slurm "$W/"
version=$(sl slurmctld -V)
say "$version, topology/$SHAPE"
form=slurm-$SHAPE.yaml file=topology.yaml
[ "$(printf '%s\n' "${version##* }" 25.05 | sort -V | head -1)" = 25.05 ] || form=slurm-$SHAPE file=topology.conf
# The packaged prolog, epilog and the nodes' own.
flags="$([ -n "$SEED" ] || echo " -wait 20s -away 2s")"
for p in prolog epilog; do
  sed "s,/usr/bin/ocs-slurm $p,$D/ocs-slurm $p$([ $p = prolog ] && echo "$flags" || echo "${flags#*20s}${flags:+ -stays 100ms}"),; s,unix:/run/ocs-planner/http,$RINGLIGHT_HTTP,; s,/run/ocs-slurm,$D/notes," cmd/install/slurm-$p >"$W/$p"; chmod +x "$W/$p"
done
echo "RINGLIGHT_HTTP=$RINGLIGHT_HTTP" >"$W/lit" # any task may read it
sed "s,/usr/bin/ocs-slurm,$D/ocs-slurm,; s,/etc/ringlight/slurm,$D/lit," cmd/install/slurm-task-prolog >"$W/task-prolog"; chmod +x "$W/task-prolog"
cat >"$W/slurm.conf" <<C
ClusterName=ring
SlurmctldHost=localhost
SlurmctldPort=$ctld
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$D/munge.sock
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
SlurmdPidFile=$D/spool/%n.pid
SlurmdLogFile=$D/log/%n.log
SlurmctldPidFile=$D/slurmctld.pid
SlurmctldLogFile=$D/log/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
MailProg=/bin/true
TopologyPlugin=topology/$SHAPE
PrologSlurmctld=$D/prolog
EpilogSlurmctld=$D/epilog
TaskProlog=$D/task-prolog
$([ -n "$SEED" ] || echo "KillWait=1
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,max_switch_wait=3600")
NodeName=$all NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$first-$((first + last))] CPUs=4
PartitionName=gpu Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE
C
until_true 180 sh -c "bin/ocsctl job submit try -tp 16 -rings 4 -dry-run | grep -q 'fits now'" || fail "the rings do not come into service"
until_true 60 sh -c "[ \$(bin/ocs-slurm topology -format slurm-tree | grep -c SwitchName=ring) = 4 ]" || fail "not four rings"
bin/ocs-slurm topology -format $form >"$W/$file"
head -c 1024 /dev/urandom >"$W/munge.key"; chmod 400 "$W/munge.key"; chmod 755 "$W"
sl munged --force --key-file="$D/munge.key" --socket="$D/munge.sock" --pid-file="$D/munged.pid" --log-file="$D/log/munged.log" --seed-file="$D/munge.seed" 2>/dev/null
sl slurmctld
for i in $(seq -w 0 $last); do mkdir -p "$W/spool/n$i"; sl slurmd -N n$i & done 2>/dev/null
idle() { [ "$(sl sinfo -h -o '%T %D' | awk '$1 == "idle" {n += $2} END {print n + 0}')" = "${1:-$NODES}" ]; }
until_true 30 idle || { sl sinfo; fail "not all nodes are idle"; }
# Slurm knows the rings as they are: who submits before may get nodes that were a ring, and
# is queued again.
known() { until_true 60 sh -c "[ \$(bin/ocs-slurm topology -format slurm-tree | grep -c SwitchName=ring) = 4 ] && bin/ocs-slurm topology -format $form | cmp -s - $W/$file && [ ! -e $W/$file.unread ]" || { bin/ocs-slurm topology; fail "Slurm's topology is not the planner's"; }; }
settled() {
  known
  until_true 30 idle || { sl sinfo; fail "not all nodes are idle"; }
}
disliked() { grep -iE '(error|fatal|warn).*(topolog|switch|block| rings?\b)' "$W/log/slurmctld.log" | grep -v 'warning: .* lack access to'; } # that: of a node that is out, and so in no ring
if [ -n "$SEED" ]; then
  python3 .ci/slurm-chaos.py "$D" "$R" "$RINGLIGHT_HTTP" "$SEED" "$JOBS" $planner "$plans >>$W/log/planner.log 2>&1" "$D/ocs-slurm watch -http $RINGLIGHT_HTTP -topology $D/$file -format $form -notes $D/notes >>$W/log/watch.log 2>&1" || fail "seed $SEED"
  say "seed $SEED: held"; exit 0
fi
sl "$D/ocs-slurm" watch -http "$RINGLIGHT_HTTP" -topology "$D/$file" -format $form -notes "$D/notes" -every 300ms -silent 5s -spacing 1s >"$W/log/watch.log" 2>&1 &
disliked && fail "Slurm does not like its topology"
say "20 nodes idle; Slurm reads $file without an error: $(sl scontrol show topology | grep -ciE '(switch|block|ring)(name)?=ring') rings"

submit() { sl sbatch --parsable -o "$D/out/%j" -e "$D/out/%j" "$@"; }
state() { sl scontrol -o show job "$1" 2>/dev/null | grep -o 'JobState=[A-Z]*' | cut -d= -f2; }
is() { [ "$(state "$1")" = "$2" ]; }
is_in() { ask show "ring-$1" | grep -q "\"state\":\"$2\""; }
# A script tells when it began, and stays until it is told to end.
cat >"$W/stay" <<C
#!/bin/bash
date +%s%3N
until [ -e $D/go ]; do sleep 0.1; done
C
chmod +x "$W/stay"

# 1. Jobs start after light, and two share nothing.
rings_of() { if [ $SHAPE = tree ]; then echo "-N$((4 * $1)) --switches=$1"; else echo "-N$((4 * $1)) --segment=4"; fi; }
a=$(submit $(rings_of 3) --comment=ringlight:tp=16 "$D/stay") b=$(submit $(rings_of 1) --comment=ringlight:tp=8 "$D/stay")
for j in $a $b; do until_true 30 is $j RUNNING || fail "job $j is $(state $j)"; done
began_at() { until_true 20 test -s "$W/out/$1" || fail "job $1 says nothing"; head -1 "$W/out/$1"; }
for j in $a $b; do
  lit=$(events ring-$j | at ready) start=$(began_at $j)
  [ -n "$lit" ] && (( start >= lit )) || fail "job $j began at $start, light came at $lit"
  ask show ring-$j | grep -q '"state":"ready"' || fail "job $j runs and is not ready"
  say "job $j on $(sl squeue -h -j $j -o %N): light, then its script $((start - lit)) ms later"
done
for j in $a $b; do ask show ring-$j | grep -o '"gpu_order":\[[^}]*' | grep -o '"n[0-9]*"' | sort -u; done | sort | uniq -d | grep . && fail "two jobs have a node"
for j in $a $b; do sl scontrol show hostnames "$(sl squeue -h -j $j -o %N)" | sed 's/.*/"&"/' | sort >"$W/theirs"; ask show ring-$j | grep -o '"gpu_order":\[[^}]*' | grep -o '"n[0-9]*"' | sort -u >"$W/ours"; cmp -s "$W/theirs" "$W/ours" || fail "job $j has other nodes with Slurm than with light"; done
say "two jobs: no node is two jobs', so no fibre is; each has light on Slurm's nodes"
touch "$W/go"; for j in $a $b; do until_true 30 is $j COMPLETED || is $j "" || fail "job $j: $(state $j)"; done
rm "$W/go"; settled

# SIGKILL of a prolog and its shell is a yes to slurmctld: the script waits for light, and does not begin.
asks() { pgrep -f "$D/ocs-slurm $1"; }
kill -STOP $planner
g=$(submit $(rings_of 1) "$D/stay"); until_true 20 asks prolog || fail "job $g has no prolog"
kill -9 $(pgrep -f "$D/prolog\$") $(asks prolog)
until_true 20 is $g RUNNING || fail "job $g is $(state $g)"
until_true 20 asks lit || fail "no task of job $g asks for light"
kill -CONT $planner
again() { sl scontrol show job $g | grep -q Restarts=1; }
until_true 30 again || fail "job $g is not queued again: $(state $g)"
! grep '^[0-9]' "$W/out/$g" || fail "job $g began without light"
sl scancel $g; settled
say "a prolog got SIGKILL: its job was queued again, and no script began"

# A running job is made smaller: its rings stay, and nobody is given the nodes that it lost.
z=$(submit $(rings_of 2) --comment=ringlight:tp=16 "$D/stay"); until_true 30 is $z RUNNING || fail "job $z is $(state $z)"
sl scontrol show hostnames "$(sl squeue -h -j $z -o %N)" | sort >"$W/had"
sl scontrol update JobId=$z NumNodes=4 >/dev/null
sl scontrol show hostnames "$(sl squeue -h -j $z -o %N)" | sort >"$W/has"
taken=$(comm -23 "$W/had" "$W/has" | paste -sd,); [ "$(wc -l <"$W/has")" = 4 ] || fail "job $z has $(paste -sd, "$W/has")"
kept() { [ "$(sl sinfo -h -N -n "$taken" -o '%T %E' | grep -c "drain.*ringlight: job $z has its light still")" = 4 ]; }
until_true 20 kept || { sl sinfo -N -o '%N %T %E'; fail "nodes of job $z's light are free"; }
ask show ring-$z | grep -q '"state":"ready"' || fail "job $z is not ready"
told_of() { sl scontrol show job $z | grep -q 'AdminComment=ringlight: its light cannot be made smaller' || grep -q "for JobId=$z to get a db_index" "$W/log/slurmctld.log"; } # without accounting 22.05 takes none
until_true 20 told_of || fail "job $z is not told"
say "job $z was made smaller: $taken drained, its light stays; $(sl sinfo -h -N -n "${taken%%,*}" -o %E)"
touch "$W/go"; until_true 30 is $z COMPLETED || is $z "" || fail "job $z: $(state $z)"
rm "$W/go"; settled

# 2. Ranks as srun prints them are those of light, GPU by GPU.
cat >"$W/ranks.sh" <<C
#!/bin/bash
set -e
eval "\$($D/ocs-slurm env -http $RINGLIGHT_HTTP -o $D/files)"
srun -n \$WORLD_SIZE bash -c 'echo \$SLURM_PROCID \$SLURMD_NODENAME \$RINGLIGHT_GPU \$RINGLIGHT_RING \$RINGLIGHT_POSITION' | sort -n >$D/printed
C
chmod +x "$W/ranks.sh"
r=$(submit $(rings_of 2) -n32 "$D/ranks.sh"); until_true 40 is $r COMPLETED || { cat "$W/out/$r"; fail "job $r: $(state $r)"; }
grep -v '^#' "$W/files/ranks" >"$W/wanted"
cmp "$W/printed" "$W/wanted" || { diff "$W/printed" "$W/wanted" | head; fail "ranks differ"; }
say "srun prints $(wc -l <"$W/printed") ranks, each on the host and GPU of the file ranks"

# 3. A board dies: the ring closes without it, a spare joins, the node is drained with the cause, and resumed.
heard() { events ring-$k >"$W/events"; [ -n "$(at replaced <"$W/events")" ] && [ -n "$(at ready $((off / 1000)) <"$W/events")" ]; }
took() { echo $(( $(at "$1" $((off / 1000)) <"$W/events") - off / 1000 )); }
# closed: no ring of Slurm's has the node any more.
closed() { ! sl scontrol show topology | grep -iE '(switch|block|ring)(name)?=ring' | grep -oiE ' nodes=[^ ]*' | cut -d= -f2 | xargs -n 1 chroot "${R:-/}" env SLURM_CONF="$D/slurm.conf" scontrol show hostnames | grep -x "$1" >/dev/null; }
open() { ! closed "$1"; }
drained() { sl sinfo -h -N -n "$1" -o '%T %E' | grep -q "drain.*$2"; }
sl scontrol update NodeName=n19 State=DRAIN Reason="a fan"
for ((i = 0; i < ${KILLS:-5}; i++)); do
  known
  k=$(submit -w "n[05-09]" -N5 --no-kill "$D/stay"); until_true 30 is_in $k ready && until_true 20 is $k RUNNING || fail "job $k: $(state $k)"
  dead=$(ask show ring-$k | sed 's/.*"nodes":\["[^"]*","\([^"]*\)".*/\1/')
  off=$(boards "power off $dead")
  until_true 20 heard || { cat "$W/events"; fail "no spare, or not ready again"; }
  until_true 20 drained $dead ringlight: || fail "$dead is not drained"
  until_true 20 closed $dead || { sl scontrol show topology; fail "$dead is in a ring of Slurm's"; }
  took degraded >>"$W/degraded"; took replaced >>"$W/replaced"
  say "$dead died: degraded after $(took degraded) ms, replaced after $(took replaced) ms, ready after $(took ready) ms; its ring closed in Slurm; $(sl sinfo -h -N -n "$dead" -o '%T, %E' | head -1)"
  # Between the loss and the spare the ring is none of Slurm's for a moment.
  alive=$(ask show ring-$k | sed 's/.*"nodes":\["\([^"]*\)".*/\1/')
  until_true 20 open "$alive" || { sl scontrol show topology; fail "no ring of Slurm's has $alive, which lives"; }
  touch "$W/go"; until_true 30 is $k COMPLETED || is $k "" || fail "job $k: $(state $k)"
  boards "power on $dead" >/dev/null; until_true 60 idle $last || { sl sinfo -N -o '%N %T %E'; fail "not resumed"; }
  rm "$W/go"
done
drained n19 'a fan' || fail "another's drain was touched"
sl scontrol update NodeName=n19 State=RESUME; settled
median() { sort -n "$W/$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
(( $(median degraded) < ${DEGRADED_MS:-10} && $(median replaced) < 1000 )) || fail "medians: degraded after $(median degraded) ms, replaced after $(median replaced) ms"
say "every node was resumed when it was well; a drain that is not ours stayed; medians: degraded $(median degraded) ms, replaced $(median replaced) ms"

# 4. No planner, no start; nothing hopeless waits in vain.
kill -9 $planner; wait $planner 2>/dev/null || true
p=$(submit $(rings_of 1) "$D/stay") q=$(submit $(rings_of 1) "$D/stay")
for j in $p $q; do until_true 30 sh -c "${R:+chroot $R} env SLURM_CONF=$D/slurm.conf scontrol show job $j | grep -q Restarts=1" || fail "job $j was not requeued: $(state $j)"; until_true 10 is $j PENDING || fail "job $j is $(state $j)"; [ ! -e "$W/out/$j" ] || fail "job $j ran without light"; done
until_true 10 sh -c "${R:+chroot $R} env SLURM_CONF=$D/slurm.conf scontrol show job $p | grep -q 'AdminComment=ringlight:'" || fail "no reason"
say "no planner: two jobs are queued again, none began; $(sl scontrol show job $p | grep -o 'AdminComment=.*' | cut -c1-110)"
planner; until_true 60 bin/ocsctl job submit probe -tp 16 && bin/ocsctl job release probe >/dev/null || fail "the planner is not back"
settled
touch "$W/go"
for j in $p $q; do sl scontrol update JobId=$j StartTime=now; done
for j in $p $q; do until_true 40 test -s "$W/out/$j" || fail "job $j is $(state $j)"; start=$(head -1 "$W/out/$j") lit=$(events ring-$j | at ready); (( start >= lit )) || fail "job $j began before light"; done
h=$(submit -N4 --comment=ringlight:tp=6 "$D/stay"); until_true 30 sh -c "${R:+chroot $R} env SLURM_CONF=$D/slurm.conf scontrol show job $h | grep -q 'Reason=JobHeldAdmin'" || fail "job $h is not held"
say "the planner is back: both ran, after light; a ring of 6 GPUs is held: $(sl scontrol show job $h | grep -o 'AdminComment=.*' | cut -c1-110)"
sl scancel $h

# 5. Slurm reads its files anew, as an operator tells it to, while jobs wait for light. From 23.11 on slurmctld
# ends their prologs with itself then, and 26.05 takes them for done: a script's job would stand as RUNNING and
# never begin, one of srun begins. The watcher takes both back.
kill -STOP $planner; rm -f "$W/go"
u=$(submit $(rings_of 1) "$D/stay")
sl srun $(rings_of 1) -J now -o "$D/out/now" "$D/stay" >"$W/log/srun.log" 2>&1 &
waiting() { [ "$(sl squeue -h -t CF -o %A | wc -l)" = 2 ]; }
until_true 20 waiting || { sl squeue; fail "two jobs do not wait for light"; }
s=$(sl squeue -h -n now -o %A)
sl scontrol reconfigure; kill -CONT $planner
lit() { sl scontrol update JobId=$1 StartTime=now; is $1 RUNNING && is_in $1 ready && [ -s "$W/out/$1" ]; } # Slurm itself waits two minutes
until_true 60 lit $u || { tail -n 5 "$W/log/watch.log"; fail "job $u is $(state $u)"; }
start=$(began_at $u) lit=$(events ring-$u | at ready); (( start >= lit )) || fail "job $u began at $start, light came at $lit"
over() { ! is $s RUNNING || is_in $s ready; }
until_true 10 over || fail "job $s of srun runs without light"
say "read anew while two jobs waited: the script began $((start - lit)) ms after light, restarts $(sl scontrol show job $u | grep -o 'Restarts=[0-9]*' | cut -d= -f2); srun's job is $(state $s)"
touch "$W/go"; until_true 30 is $u COMPLETED || is $u "" || fail "job $u: $(state $u)"; until_true 30 idle || fail "not all nodes are idle"

# 6. Many jobs leave nothing behind.
printf '#!/bin/sh\n:\n' >"$W/quick"
chmod +x "$W/quick"; t=$SECONDS
for ((i = 0; i < JOBS; i++)); do submit $(rings_of $((1 + i % 3))) "$D/quick" >/dev/null; done
empty() { [ -z "$(sl squeue -h)" ]; }
until_true $((60 + JOBS)) empty || { sl squeue | head; fail "jobs do not end"; }
until_true 30 sh -c "bin/ocsctl job list -json | grep -q '\"jobs\":\[\]'" || { bin/ocsctl job list; fail "jobs are left with the planner"; }
settled
# Judged by slurmctld's own count of what it was sent, which begins anew where it reads its files anew.
told() { sl sdiag | sed -n 's/.*REQUEST_\(RECONFIGURE\|UPDATE_NODE\) .*count:\([0-9]*\).*/\2/p' | awk '{sum += $1} END {print sum + 0}'; }
sl scontrol update NodeName=n19 Weight=1; n=$(told); (( n > 0 )) || fail "slurmctld does not count"
until_true 10 sh -c "bin/ocs-slurm topology -format $form | cmp -s - $W/$file" || fail "another topology"
sl "$D/ocs-slurm" topology -http "$RINGLIGHT_HTTP" -format $form -o "$D/$file" | grep -q 'as it was' || fail "the same topology is written again"
sleep 2; [ "$(told)" = "$n" ] || fail "slurmctld was told $(told) times, though nothing changed since $n"
disliked && fail "Slurm did not like a topology"
[ -z "$(ls "$W/notes")" ] || fail "notes are left: $(ls "$W/notes")"
say "$JOBS jobs in $((SECONDS - t)) s: none is left with Slurm or the planner, four rings, $NODES nodes idle, topology as the planner's, $(grep -c 'topology is written' "$W/log/watch.log") of them read without an error; a repeated one sends nothing"

# 7. A core of circuits in place of the rings: a job on servers that Slurm chose, in three pods, has light between
# them first, its ranks by name, and gives all back. Other shapes than a tree have no leaves.
[ $SHAPE = tree ] || exit 0
kill -9 $planner $agents; wait $planner $agents 2>/dev/null || true
rm -rf "$W"/planner.db* "$W/files" "$W/printed" "$W/go"
bin/ocsctl fabric new -name core -pods 5 -leaves 2 -servers 2 -spines 1 -names "$W/names" >"$W/fabric.json"
circuits() { bin/ocsctl circuit list -broker mqtt://127.0.0.1:$mqtt -fabric core; }
planner
bin/ocs-sim agents -fabric-file "$W/fabric.json" -broker mqtt://127.0.0.1:$mqtt >"$W/log/agents.log" 2>&1 &
until_true 60 sh -c "bin/ocs-slurm topology -format $form | grep -q SwitchName=leaf && bin/ocs-slurm topology -format $form | cmp -s - $W/$file && [ ! -e $W/$file.unread ]" || { bin/ocs-slurm topology -format $form; fail "Slurm's topology is not of leaves"; }
until_true 60 sh -c "echo '{\"tp\":8,\"pp\":2,\"dp\":2}' | bin/ocsctl job submit try -circuits - -dry-run | grep -q 'fits now'" || fail "the core does not come into service"
until_true 60 idle || { sl sinfo -N -o '%N %T %E'; fail "not all nodes are idle"; }
printf '#!/bin/bash\ndate +%%s%%3N\nbash %s/ranks.sh || exit 1\nuntil [ -e %s/go ]; do sleep 0.1; done\n' "$D" "$D" >"$W/core"
chmod +x "$W/core"
c=$(submit -w 'n[02-09]' -N8 -n32 --comment='ringlight:{"tp":8,"pp":2}' "$D/core")
until_true 60 test -s "$W/printed" || { cat "$W/out/$c"; sl scontrol show job $c | grep -o 'AdminComment=.*'; fail "job $c is $(state $c)"; }
start=$(began_at $c) lit=$(events ring-$c | at ready)
[ -n "$lit" ] && (( start >= lit )) && is_in $c ready || fail "job $c began at $start, light came at $lit"
grep -v '^#' "$W/files/ranks" >"$W/wanted"; cmp "$W/printed" "$W/wanted" || fail "ranks differ"
cut -d' ' -f2 "$W/printed" | sort -u | cmp -s - <(seq -f 'n%02g' 2 9) || fail "job $c has other servers than Slurm chose"
running() { circuits | awk '$2 == "realised" && $3 == 8'; }
row=$(running); [ -n "$row" ] || { circuits; fail "job $c has no circuits"; }
touch "$W/go"; until_true 30 is $c COMPLETED || is $c "" || fail "job $c: $(state $c)"
left() { [ -z "$(running)" ] && bin/ocsctl job list -json | grep -q '"jobs":\[\]'; }
until_true 30 left || { circuits; fail "circuits are left"; }
say "a core of circuits: job $c of 8 servers in three pods began $((start - lit)) ms after light on $(echo $row | awk '{print $5}') links, 32 ranks by name; given back"
