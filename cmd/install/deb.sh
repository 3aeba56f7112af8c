#!/usr/bin/env bash
# deb.sh OUT [ARCH...]: Debian packages of what `make cross man` made, into the folder
# OUT: agent (arm64, armhf, amd64), planner and tools (arm64, amd64). The same commit
# gives the same bytes, whatever the umask, the time zone or the day. XZ: how hard it
# compresses, 0 to 9 (6).
set -euo pipefail
out=$(realpath -m "${1:?deb.sh OUT [ARCH...]}"); shift
cd "$(dirname "$0")/../.."
export LC_ALL=C TZ=UTC
umask 022
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}; export SOURCE_DATE_EPOCH
here=cmd/install
version=${VERSION:-$(git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo "v0~git$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S).$(git describe --always --dirty)")}
version=${version#v}; version=${version//-/+}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

maintainer=${MAINTAINER:-Ringlight <ringlight@localhost>} # a site's own
about() { # about PACKAGE: what it is
  case $1 in
  ringlight-agent) echo 'agent of optically switched GPU rings, one a node
 Drives the optical switches of one node over I2C, SPI and GPIO, watches the
 light and goes round a dead neighbour by itself, without the network.
 .
 An upgrade changes the binary and restarts nothing: the light stays with the
 agent that runs, until "ocsctl rollout" or an operator restarts it.' ;;
  ringlight-planner) echo 'planner of optically switched GPU rings
 Places rings and jobs, computes the settings of the switches, and follows what
 the light does, over MQTT. Light does not depend on it.' ;;
  ringlight-tools) echo 'commands for operators of optically switched GPU rings
 ocsctl asks and changes a running fabric; ocs-sim is the virtual cluster and
 the studies; ocs-slurm joins a planner and Slurm; ocs-sonic drives a
 switch in SONiC'\''s words.' ;;
  esac
}

# put MODE FROM TO: a file into the package that is being made.
put() { install -D -m "$1" "$2" "$root/$3"; }
gz() { mkdir -p "$(dirname "$root/$2")"; gzip -9n <"$1" >"$root/$2"; chmod 644 "$root/$2"; }

fill() { # fill PACKAGE ARCH BINARIES: what is in it
  local p=$1 c
  for c in $3; do
    put 755 "$bins_dir/$c" "usr/bin/$c"
    gz "bin/man/$c.1" "usr/share/man/man1/$c.1.gz"
    put 644 "bin/completion/$c.bash" "usr/share/bash-completion/completions/$c"
    put 644 "bin/completion/$c.zsh" "usr/share/zsh/vendor-completions/_$c"
    put 644 "bin/completion/$c.fish" "usr/share/fish/vendor_completions.d/$c.fish"
  done
  put 644 "$here/copyright" "usr/share/doc/$p/copyright"
  printf '%s (%s) stable; urgency=medium\n\n  * See NEWS.gz.\n\n -- %s  %s\n' "$p" "$version" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")" >"$work/changelog"
  gz "$work/changelog" "usr/share/doc/$p/changelog.gz"
  gz CHANGELOG.md "usr/share/doc/$p/NEWS.gz"
  case $p in
  ringlight-agent)
    put 644 "$here/ocs-agent.service" lib/systemd/system/ocs-agent.service
    put 644 "$here/agent.json" usr/share/doc/$p/examples/agent.json
    put 644 hal/boardfile/default.json usr/share/doc/$p/examples/board.json
    mkdir -p "$root/etc/ringlight" ;;
  ringlight-planner)
    put 644 "$here/ocs-planner.service" lib/systemd/system/ocs-planner.service
    put 644 "$here/sysusers.conf" usr/lib/sysusers.d/$p.conf
    put 644 "$here/planner.json" etc/ringlight/planner.json
    echo /etc/ringlight/planner.json >"$root/DEBIAN/conffiles" ;;
  ringlight-tools)
    put 644 "$here/sysusers.conf" usr/lib/sysusers.d/$p.conf
    put 644 "$here/ocs-slurm.service" lib/systemd/system/ocs-slurm.service
    for s in prolog epilog task-prolog; do put 755 "$here/slurm-$s" "usr/libexec/ringlight/slurm-$s"; done
    for m in docs/monitoring/*; do put 644 "$m" "usr/share/doc/$p/monitoring/$(basename "$m")"; done ;;
  esac
}

scripts() { # scripts PACKAGE: what dpkg runs
  local unit=
  case $1 in ringlight-agent) unit=ocs-agent ;; ringlight-planner) unit=ocs-planner ;; ringlight-tools) unit=ocs-slurm ;; esac
  sed "s/@UNIT@/$unit/g; s/@PACKAGE@/$1/g" "$here/postinst" >"$root/DEBIAN/postinst"
  sed "s/@UNIT@/$unit/g" "$here/prerm" >"$root/DEBIAN/prerm"
  sed "s/@UNIT@/$unit/g" "$here/postrm" >"$root/DEBIAN/postrm"
  chmod 755 "$root"/DEBIAN/p*
}

build() { # build PACKAGE ARCH BINARIES
  local p=$1 arch=$2
  root=$work/$p-$arch; mkdir -p "$root/DEBIAN"; chmod 755 "$root" "$root/DEBIAN"
  case $arch in armhf) bins_dir=bin/linux-arm ;; *) bins_dir=bin/linux-$arch ;; esac
  fill "$@"
  scripts "$p"
  mkdir -p "$root/usr/share/lintian/overrides"
  sed "s/@PACKAGE@/$p/g" "$here/lintian" >"$root/usr/share/lintian/overrides/$p"; chmod 644 "$root/usr/share/lintian/overrides/$p"
  local size; size=$(du -k --apparent-size -s --exclude=DEBIAN "$root" | cut -f1)
  printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nSection: net\nPriority: optional\nInstalled-Size: %s\nDescription: %s\n' \
    "$p" "$version" "$arch" "$maintainer" "$size" "$(about "$p")" >"$root/DEBIAN/control"
  (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
  find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -h -d "@$SOURCE_DATE_EPOCH"
  dpkg-deb --root-owner-group -Zxz -z"${XZ:-6}" --build "$root" "$out/${p}_${version}_$arch.deb" >/dev/null
  echo "$out/${p}_${version}_$arch.deb $(( $(stat -c %s "$out/${p}_${version}_$arch.deb") / 1024 )) KiB"
}

for arch in ${*:-arm64 armhf amd64}; do
  build ringlight-agent "$arch" ocs-agent
  [ "$arch" = armhf ] && continue # of a baseboard controller, which runs no planner
  build ringlight-planner "$arch" ocs-planner
  build ringlight-tools "$arch" 'ocsctl ocs-sim ocs-slurm ocs-sonic'
done
