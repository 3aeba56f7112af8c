# Runs as root in a container under systemd, started by packages.sh.
set -eu
export DEBIAN_FRONTEND=noninteractive
fail() { echo "FAILED: $*"; systemctl status --no-pager ocs-agent ocs-planner board || true; journalctl --no-pager -u ocs-agent -u ocs-planner -u board | tail -30; exit 1; }
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
ocsctl fabric new -o /etc/ringlight/fabric.json >/dev/null
systemctl start ocs-planner || fail "the planner does not start"
ocsctl ring list >/dev/null || fail "the planner does not answer"
kill -STOP "$(pid ocs-planner)"
until_true 60 is ocs-planner NRestarts 1 && until_true 10 is ocs-planner ActiveState active || fail "a planner that stands still is not restarted"
ocsctl ring list >/dev/null || fail "the planner does not answer again"
say "planner: starts as its package has it, answers, is restarted when it stands still"

dpkg --purge ringlight-agent ringlight-planner ringlight-tools >/dev/null 2>&1
rm -f /etc/ringlight/agent.json /etc/ringlight/fabric.json
rmdir /etc/ringlight 2>/dev/null || true
left=$(find / -xdev \( -name 'ocs-*' -o -name 'ringlight*' -o -name 'ocsctl*' \) -not -path '/proc/*' -not -path '/sys/*' -not -path '/in/*' -not -path '/var/log/*' -not -path '/tmp/*')
[ -z "$left" ] || fail "left behind: $left"
say "purged; nothing is left"
