#!/usr/bin/env bash
# The Yocto recipe before bitbake itself: parsed, fetched, unpacked, its licence compared,
# installed into its image; what bitbake warns of or refuses in the recipe fails. No
# compiler is built, so nothing is packaged. BITBAKE, OECORE: checkouts of
# openembedded/bitbake and openembedded-core, of one release.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x "${BITBAKE:-}/bin/bitbake" ] && [ -f "${OECORE:-}/meta/conf/bitbake.conf" ] || { echo "yocto: skipped, BITBAKE and OECORE name no checkouts"; exit 0; }
for c in pseudo chrpath diffstat lz4c; do command -v $c >/dev/null || { echo "yocto: skipped, no $c"; exit 0; }; done
locale -a | grep -qi '^en_US.utf-\?8$' || { echo "yocto: skipped, no locale en_US.UTF-8, without which bitbake does not start"; exit 0; }
work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
recipe=$work/layer/recipes/ringlight-agent
mkdir -p "$work/layer/conf" "$recipe/files" "$work/build/conf"
cp cmd/install/yocto/*.bb "$recipe/"
[ -x bin/linux-amd64/ocs-bmc ] || { echo "yocto: skipped, make bmc has built none"; exit 0; }
cp bin/linux-amd64/ocs-{agent,bmc} cmd/install/ocs-agent.service cmd/install/ocs-bmc.{service,conf} "$recipe/files/"
series=$(sed -n 's/^LAYERSERIES_CORENAMES = "\(.*\)"/\1/p' "$OECORE/meta/conf/layer.conf")
cat >"$work/layer/conf/layer.conf" <<L
BBFILES += "$recipe/*.bb"
BBFILE_COLLECTIONS += "ringlight"
BBFILE_PATTERN_ringlight = "^$work/layer/"
LAYERSERIES_COMPAT_ringlight = "$series"
L
printf 'BBPATH = "${TOPDIR}"\nBBFILES ?= ""\nBBLAYERS = "%s %s"\n' "$(realpath "$OECORE")/meta" "$work/layer" >"$work/build/conf/bblayers.conf"
printf '%s\n' 'MACHINE = "qemux86-64"' 'DISTRO = "nodistro"' 'INIT_MANAGER = "systemd"' 'BB_NO_NETWORK = "1"' 'CONNECTIVITY_CHECK_URIS = ""' \
  'FAKEROOTCMD = "/usr/bin/pseudo"' >"$work/build/conf/local.conf"
bitbake=$(realpath "$BITBAKE") as=()
if [ "$(id -u)" = 0 ]; then chown -R nobody "$work"; as=(setpriv --reuid nobody --clear-groups); fi
for task in fetch unpack populate_lic install; do
  if ! (cd "$work/build" && timeout 600 "${as[@]}" env HOME="$work" LC_ALL=en_US.UTF-8 PATH="$bitbake/bin:/usr/bin:/bin:/usr/sbin:/sbin" BBPATH="$work/build" BUILDDIR="$work/build" \
    bitbake -b "$recipe/ringlight-agent_git.bb" -c $task) >"$work/log" 2>&1 || grep -q "^WARNING: .*ringlight-agent" "$work/log"; then
    grep -E "^(ERROR|WARNING)" "$work/log" | head; echo "yocto: $series: $task failed"; exit 1
  fi
done
image=$(find "$work"/build/tmp*/work -path '*/image' -type d | head -1)
(cd "$image" && find . -type f | sort)
echo "yocto: $series: the recipe is parsed, fetched, unpacked, its licence compared, installed"
