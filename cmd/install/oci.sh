#!/usr/bin/env bash
# oci.sh OUT [IMAGE...]: container images of what `make cross` made, as OCI archives for
# amd64 and arm64, into the folder OUT: ringlight-planner, ringlight-tools, and ocs-dra
# where its modules can be had. A static file and nothing else: no shell, no authorities
# (a site's own are mounted). The same commit gives the same bytes. No daemon is needed:
# `skopeo copy oci-archive:FILE docker://...` takes one to a registry.
set -euo pipefail
out=$(realpath -m "${1:?oci.sh OUT [IMAGE...]}"); shift
cd "$(dirname "$0")/../.."
export LC_ALL=C TZ=UTC
umask 022
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}; export SOURCE_DATE_EPOCH
at=$(date -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
version=${VERSION:-$(git describe --tags --always --dirty)}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=ustar -C "$1" -cf - .; }

# blob TYPE FILE: takes a file into the image that is being made, and says how it is called there.
blob() {
  local sum size; sum=$(sha256sum <"$2" | cut -d' ' -f1); size=$(stat -c %s "$2")
  cp "$2" "$image/blobs/sha256/$sum"
  printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%d' "$1" "$sum" "$size"
}

# build NAME ENTRY USER BINARIES: an image of both architectures.
build() {
  local name=$1 entry=$2 user=$3 arch c list=
  image=$work/$name; mkdir -p "$image/blobs/sha256"
  for arch in amd64 arm64; do
    local root=$work/root; rm -rf "$root"; mkdir -p "$root/usr/bin" "$root/etc" "$root/tmp"; chmod 1777 "$root/tmp"
    printf 'root:x:0:0:root:/:/none\nringlight:x:65532:65532:Ringlight:/:/none\n' >"$root/etc/passwd"
    for c in $4; do
      if [ "$c" = ocs-dra ]; then
        (cd bridge/dra && GOOS=linux GOARCH=$arch CGO_ENABLED=0 ${GO:-go} build -trimpath -ldflags '-s -w' -o "$root/usr/bin/" ./cmd/ocs-dra)
      else
        install -m 755 "bin/linux-$arch/$c" "$root/usr/bin/$c"
      fi
    done
    pack "$root" >"$work/layer.tar"
    gzip -9n <"$work/layer.tar" >"$work/layer.tar.gz"
    printf '{"created":"%s","architecture":"%s","os":"linux","config":{"User":"%s","Entrypoint":["/usr/bin/%s"],"WorkingDir":"/","Labels":{"org.opencontainers.image.version":"%s"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s","created_by":"oci.sh"}]}' \
      "$at" "$arch" "$user" "$entry" "$version" "$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)" "$at" >"$work/config"
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s},"layers":[%s}]}' \
      "$(blob config.v1+json "$work/config")" "$(blob layer.v1.tar+gzip "$work/layer.tar.gz")" >"$work/manifest"
    list="$list${list:+,}$(blob manifest.v1+json "$work/manifest"),\"platform\":{\"os\":\"linux\",\"architecture\":\"$arch\"}}"
  done
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$list" >"$work/index"
  printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' "$(blob index.v1+json "$work/index")" "$version" >"$image/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$image/oci-layout"
  pack "$image" >"$out/$name.tar"
  echo "$out/$name.tar $(( $(stat -c %s "$out/$name.tar") / 1024 )) KiB $(sha256sum <"$out/$name.tar" | cut -c1-16)"
}

for name in ${*:-ringlight-planner ringlight-tools ocs-dra}; do
  case $name in
  ringlight-planner) build "$name" ocs-planner 65532:65532 'ocs-planner ocsctl' ;;
  ringlight-tools) build "$name" ocsctl 65532:65532 'ocsctl ocs-sim ocs-slurm ocs-sonic' ;;
  ocs-dra)
    if (cd bridge/dra && ${GO:-go} mod download) 2>/dev/null; then build "$name" ocs-dra 0:0 ocs-dra; else echo "oci: ocs-dra skipped, the modules of Kubernetes cannot be had here"; fi ;;
  *) echo "oci.sh: $name: want ringlight-planner, ringlight-tools or ocs-dra" >&2; exit 2 ;;
  esac
done
