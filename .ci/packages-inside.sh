# Runs as root in a container under systemd, started by packages.sh.
set -eu
export DEBIAN_FRONTEND=noninteractive
fail() { echo "FAILED: $*"; systemctl status --no-pager ocs-agent ocs-planner ocs-slurm slurmctld board || true; journalctl --no-pager -u ocs-agent -u ocs-planner -u ocs-slurm -u slurmctld -u board | tail -30; exit 1; }
say() { echo "ok: $*"; }
until_true() { # until_true SECONDS WORDS...: a command comes true
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}
is() { [ "$(systemctl show -p "$2" --value "$1")" = "$3" ]; }
pid() { systemctl show -p MainPID --value "$1"; }

now=$(ls /in/*.deb | grep -v _99_) newer=$(ls /in/*_99_*.deb)
dpkg -i $now >/dev/null
[ "$(systemctl is-enabled ocs-agent)" = disabled ] || fail "enabled by the package"
systemctl start ocs-agent
is ocs-agent ActiveState inactive && is ocs-agent ConditionResult no || fail "an agent without a configuration started"
say "installed; an agent without a configuration does not start"

mkdir -p /run/board /etc/ringlight
shape='"gpus":4,"bundles":1,"modules":1'
echo '{"board":{"kind":"sim",'$shape',"seed":7}}' >/run/board/sim.json
echo '{"broker":"","board":{"kind":"socket","path":"/run/board/b.sock",'$shape'}}' >/etc/ringlight/agent.json
ocs-agent calibrate -config /run/board/sim.json -state /var/lib/ocs-agent >/dev/null 2>&1
systemd-run -q --unit board ocs-sim board -config /run/board/sim.json -listen unix:/run/board/b.sock -control unix:/run/board/b.ctl
until_true 10 test -S /run/board/b.ctl || fail "no board"
light() { # how often the light of each path changed, whatever the agent says
  perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new("/run/board/b.ctl") or die; print $s "record\n"; print <$s>' | grep -o '"\(lit\|changes\)":[a-z0-9]*' | tr '\n' ' '
}
systemctl start ocs-agent || fail "the agent does not start"
is ocs-agent ActiveState active || fail "not active"
say "ready $(systemctl show -p ActiveEnterTimestampMonotonic -p ExecMainStartTimestampMonotonic --value ocs-agent | sort -n | paste -sd' ' | awk '{printf "%.0f ms", ($2-$1)/1000}') after its start, the hardware read back"
ocs-agent path set 0 loopback -config /etc/ringlight/agent.json -state /var/lib/ocs-agent >/dev/null || fail "no path"
sleep 1
before=$(light); case $before in *'"lit":true'*) ;; *) fail "no light: $before" ;; esac

began=$SECONDS
kill -STOP "$(pid ocs-agent)"
until_true 30 is ocs-agent NRestarts 1 || fail "a loop that stands still is not restarted"
until_true 10 is ocs-agent ActiveState active || fail "not active after the watchdog"
say "a loop that stood still was restarted after $((SECONDS - began)) s"
kill -9 "$(pid ocs-agent)"
until_true 10 is ocs-agent NRestarts 2 && until_true 10 is ocs-agent ActiveState active || fail "killed and not restarted"
sleep 1
[ "$(light)" = "$before" ] || fail "light changed: $before, then $(light)"
say "no light changed: $before"

was=$(pid ocs-agent)
dpkg -i $newer >/dev/null 2>&1
[ "$(pid ocs-agent)" = "$was" ] && [ "$(dpkg-query -W -f '${Version}' ringlight-agent)" = 99 ] || fail "the upgrade restarted the agent"
say "upgraded to 99: the agent runs on as it was"
systemctl restart ocs-agent || fail "the new agent does not start"
sleep 1
[ "$(light)" = "$before" ] || fail "light changed: $before, then $(light)"
say "restarted: no light changed"

! systemctl start ocs-planner 2>/dev/null || fail "a planner without a fabric started"
sleep 2
is ocs-planner NRestarts 0 && journalctl -q --no-pager -u ocs-planner | grep -q "ocsctl fabric new" || fail "a planner without a fabric does not say how to write one, once"
say "a planner without a fabric does not start, and says how to write one"
seq -f 'n%02g' 0 19 >/run/names
ocsctl fabric new -nodes 20 -tp 16 -spares 4 -names /run/names -o /etc/ringlight/fabric.json >/dev/null
systemctl start ocs-planner || fail "the planner does not start"
ocsctl ring list >/dev/null || fail "the planner does not answer"
kill -STOP "$(pid ocs-planner)"
until_true 60 is ocs-planner NRestarts 1 && until_true 10 is ocs-planner ActiveState active || fail "a planner that stands still is not restarted"
ocsctl ring list >/dev/null || fail "the planner does not answer again"
say "planner: starts as its package has it, answers, is restarted when it stands still"

# Slurm, by the page: a cluster as every one has it, and then what is typed.
grep -qsw localhost /etc/hosts || echo 127.0.0.1 localhost "$(hostname)" >>/etc/hosts
cat >/etc/slurm/slurm.conf <<C
ClusterName=c
SlurmctldHost=localhost
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdLogFile=/var/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
NodeName=n[00-19] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[17000-17019] CPUs=4
C
rm -f /run/munge/munge.pid; systemctl restart munge || fail "no munge"
systemctl stop ocs-planner
systemd-run -q --unit boards -p Restart=always ocs-sim agents -fabric-file /etc/ringlight/fabric.json -modules 1
[ -s /in/slurm.typed ] && sh -e /in/slurm.typed || fail "what docs/slurm.md says to type fails"
for n in $(cat /run/names); do mkdir -p /var/spool/slurmd.$n; slurmd -N $n || fail "slurmd of $n"; done
until_true 60 sh -c '[ "$(grep -c SwitchName=ring /etc/slurm/topology.conf)" = 4 ]' || fail "the watcher writes no topology"
until_true 60 sh -c '[ "$(sinfo -h -t idle -o %D)" = 20 ]' || { sinfo; fail "not all nodes are idle"; }
job=$(sbatch --parsable -N4 --switches=1 -D /tmp -o /tmp/out --wrap 'echo $(date +%s%3N) $RINGLIGHT_LIT')
until_true 60 test -s /tmp/out || { scontrol show job "$job"; tail -n 5 /var/log/slurm/slurmctld.log; fail "the job does not run"; }
lit=$(timeout 1 ocsctl job watch c-"$job" -json | sed -n 's/.*"event":"ready","at_ms":\([0-9]*\).*/\1/p' | head -1)
read -r start asked </tmp/out
[ "$asked" = "$job" ] || fail "the script began unasked: $(cat /tmp/out)"
[ -n "$lit" ] && [ "$start" -ge "$lit" ] || fail "the script began at $start, light came at $lit"
is_released() { ocsctl job show c-"$job" -json | grep -q '"state":"released"'; }
until_true 20 is_released || fail "its ring is not given back"
job=$(sbatch --parsable -N4 -D /tmp --comment=ringlight:tp=6 --wrap true)
held() { scontrol show job "$job" >/run/held; grep -q 'Reason=JobHeldAdmin' /run/held && grep -q 'AdminComment=ringlight:' /run/held; }
until_true 60 held || { cat /run/held; fail "a job that no waiting helps is not held"; }
! setpriv --reuid nobody --clear-groups ocsctl job list -http unix:/run/ocs-planner/http >/dev/null 2>&1 || fail "nobody may ask on the socket"
until_true 20 is ocs-slurm ActiveState active && is ocs-slurm NRestarts 0 || fail "the watcher did not stay"
say "Slurm, as the page is typed: a script began $((start - lit)) ms after light, what is hopeless is held, $(grep -o 'AdminComment=.*' /run/held | cut -c1-60)"
for n in $(cat /run/names); do kill "$(cat /run/slurmd.$n.pid)"; done; systemctl stop slurmctld boards

dpkg --purge ringlight-agent ringlight-planner ringlight-tools >/dev/null 2>&1
rm -f /etc/ringlight/agent.json /etc/ringlight/fabric.json /etc/ringlight/slurm
rmdir /etc/ringlight 2>/dev/null || true
rm -rf /run/ocs-slurm* # notes are kept until a reboot
left=$(find / -xdev \( -name 'ocs-*' -o -name 'ringlight*' -o -name 'ocsctl*' \) -not -path '/proc/*' -not -path '/sys/*' -not -path '/in/*' -not -path '/var/log/*' -not -path '/tmp/*')
[ -z "$left" ] || fail "left behind: $left"
say "purged; nothing is left"
