#!/usr/bin/env bash
# Packages: built twice, from two folders, under another umask and time zone, to the
# same bytes; looked through by lintian; units within their exposure; then installed,
# run, hung, upgraded and purged under a real systemd in a container. The board is a
# process of its own, whose record of the light judges. What cannot be had is skipped
# with its reason. KEEP=DIR keeps the packages, as they are released; others are little
# compressed.
set -euo pipefail
cd "$(dirname "$0")/.."
have() { command -v "$1" >/dev/null; }
have dpkg-deb || { echo "packages: skipped, no dpkg-deb"; exit 0; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
out=${KEEP:-$work/out}; mkdir -p "$out"
XZ=${XZ:-$([ -n "${KEEP:-}" ] && echo 6 || echo 1)}; export XZ

make cross man >/dev/null
cmd/install/deb.sh "$out"
git clone -q . "$work/again"
( cd "$work/again"; umask 077; export TZ=Asia/Tokyo; make cross man >/dev/null; [ -z "$(git -C "$OLDPWD" status --porcelain)" ] || cp -a "$OLDPWD/cmd/install/." cmd/install/; cmd/install/deb.sh "$work/out2" >/dev/null )
if [ ! -d .git ]; then echo "packages: a work tree of git gives builds no stamp, a clone does; whether two builds are the same is not compared"
elif [ -z "$(git status --porcelain)" ]; then
  ( cd "$out"; sha256sum ./*.deb ) | ( cd "$work/out2"; sha256sum -c --quiet ) && echo "packages: built twice, the same bytes"
else echo "packages: the tree has changes; whether two builds are the same is not compared"; fi

if have lintian; then lintian --fail-on error,warning --tag-display-limit 0 "$out"/*.deb && echo "packages: lintian finds nothing"
else echo "packages: not looked through, no lintian"; fi

if have systemd-analyze; then
  systemd-analyze security --offline=true --threshold=20 cmd/install/ocs-agent.service --no-pager | tail -1
  systemd-analyze security --offline=true --threshold=15 cmd/install/ocs-planner.service --no-pager | tail -1
  systemd-analyze security --offline=true --threshold=20 cmd/install/ocs-slurm.service --no-pager | tail -1
else echo "packages: exposure not looked at, no systemd-analyze"; fi

for c in debootstrap systemd-nspawn; do have $c || { echo "packages: not installed anywhere, no $c"; exit 0; }; done
[ "$(id -u)" = 0 ] || { echo "packages: not installed anywhere, that needs root"; exit 0; }
arch=$(dpkg --print-architecture)
case $arch in amd64 | arm64) ;; *) echo "packages: not installed anywhere, no planner of $arch"; exit 0 ;; esac
suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME" || echo stable) # this machine's: the cgroups that it has
root=${ROOT:-$work/root} # ROOT: a root folder that is at hand
if [ ! -x "$root/lib/systemd/systemd" ]; then
  debootstrap --variant=minbase --include=systemd,systemd-sysv,perl,munge,slurmctld,slurmd,slurm-client "$suite" "$root" >"$work/debootstrap.log" 2>&1 ||
    { echo "packages: not installed anywhere, debootstrap: $(tail -1 "$work/debootstrap.log")"; exit 0; }
fi
mkdir -p "$work/in"
cp "$out"/*_"$arch".deb "$work/in/"
mkdir "$work/newer"
VERSION=v99 cmd/install/deb.sh "$work/newer" "$arch" >/dev/null
cp "$work"/newer/*.deb "$work/in/"
cp .ci/packages-inside.sh "$work/in/run.sh"
# What docs/slurm.md says to type, as it stands there.
sed -n '/^## Set it up/,/^## /{/^```sh$/,/^```$/{/^```/!p}}' docs/slurm.md >"$work/in/slurm.typed"
cat >"$work/in/judge.service" <<'U'
[Service]
Type=oneshot
ExecStart=/bin/sh -c "bash /in/run.sh >/in/log 2>&1; echo $? >/in/rc; systemctl --no-block poweroff"
U
# A network of its own. The C library finds no IPv4 address of a name on a machine that has none beside loopback's.
net=()
if command -v ip >/dev/null && ip netns add "rl$$" 2>/dev/null; then
  trap 'ip netns del "rl$$"; rm -rf "$work"' EXIT
  ip -n "rl$$" link set lo up; ip -n "rl$$" addr add 192.0.2.1/32 dev lo
  net=(--network-namespace-path="/run/netns/rl$$")
fi
timeout -k 5 420 systemd-nspawn -q ${net[@]+"${net[@]}"} --register=no --keep-unit --volatile=overlay -D "$root" --bind="$work/in:/in" \
  --bind-ro="$work/in/judge.service:/etc/systemd/system/judge.service" --boot systemd.unit=multi-user.target systemd.wants=judge.service >"$work/console" 2>&1 </dev/null || true
if [ ! -f "$work/in/rc" ]; then echo "packages: not installed anywhere, no systemd in a container here: $(tail -1 "$work/console")"; exit 0; fi
cat "$work/in/log"
exit "$(cat "$work/in/rc")"
