#!/usr/bin/env bash
# images.sh [IMAGE...]: the images of bin/images under other people's tools: built again they have the same bytes,
# skopeo reads both architectures, umoci unpacks one, and its command answers in that root.
set -euo pipefail
cd "$(dirname "$0")/.."
for c in skopeo umoci; do command -v $c >/dev/null || { echo "images: skipped, no $c"; exit 0; }; done
[ "$(id -u)" = 0 ] || { echo "images: skipped, root is needed to enter one"; exit 0; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
(umask 077; TZ=Asia/Tokyo cmd/install/oci.sh "$work/again" "$@" >/dev/null)
for again in "$work"/again/*.tar; do
  name=$(basename "$again" .tar) file=bin/images/$(basename "$again")
  cmp "$file" "$again"
  for arch in amd64 arm64; do
    skopeo inspect --override-arch $arch --format '{{.Architecture}}' "oci-archive:$file" | grep -qx $arch
  done
  skopeo copy -q --override-arch "$(go env GOARCH)" "oci-archive:$file" "oci:$work/$name:x"
  umoci unpack --image "$work/$name:x" "$work/$name.d" >/dev/null 2>&1
  for c in "$work/$name.d"/rootfs/usr/bin/*; do
    chroot --userspec=65532:65532 "$work/$name.d/rootfs" "/usr/bin/$(basename "$c")" -h >"$work/said" 2>&1 || [ $? = 2 ] || { cat "$work/said"; exit 1; }
    [ -s "$work/said" ]
  done
  echo "ok      $name: the same bytes again, amd64 and arm64, $(ls "$work/$name.d/rootfs/usr/bin" | tr '\n' ' ')"
done
