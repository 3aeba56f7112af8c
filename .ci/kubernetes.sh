#!/usr/bin/env bash
# The bridge to Kubernetes against a real control plane. Its three programs are built
# once, from the module k8s.io/kubernetes, and kept in CACHE.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${KUBERNETES:-v1.37.2}
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ringlight/kubernetes-$version-$(go env GOARCH)}
programs="kube-apiserver kube-controller-manager kube-scheduler"
PATH=$PATH:/usr/sbin
command -v etcd >/dev/null || { echo "kubernetes: skipped, no etcd (package etcd-server)"; exit 0; }

have() { for p in $programs; do [ -x "$cache/$p" ] || return 1; done; }
if ! have; then
  if [ "${1:-}" = cached ]; then echo "kubernetes: skipped, no programs in $cache: make kubernetes builds them, in 8 min on two idle cores"; exit 0; fi
  build=$(mktemp -d); trap 'rm -rf "$build"' EXIT
  mod=$(cd "$build" && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p') || true
  [ -f "$mod" ] || { echo "kubernetes: skipped, the module k8s.io/kubernetes $version cannot be had here"; exit 0; }
  { printf 'module cluster\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes %s\n\n' "$version"
    # Its libraries live in its own repository; their modules have its number with another major.
    sed -n "s/^\t\(k8s.io\/[a-z0-9-]*\) => .*/replace \1 => \1 v0.${version#v*.}/p" "$mod"; } >"$build/go.mod"
  { echo 'package cluster'; for p in $programs; do echo "import _ \"k8s.io/kubernetes/cmd/$p/app\""; done; } >"$build/cluster.go"
  echo "kubernetes: building $version into $cache"
  SECONDS=0
  mkdir -p "$build/bin" "$cache"
  (cd "$build" && GOFLAGS=-mod=mod go mod tidy -e >/dev/null 2>&1 && CGO_ENABLED=0 go build -ldflags '-s -w' -o bin/ $(for p in $programs; do echo "k8s.io/kubernetes/cmd/$p"; done)) || { echo "kubernetes: skipped, $version does not build here"; exit 0; }
  mv "$build"/bin/* "$cache/"
  echo "kubernetes: built in $((SECONDS / 60)) min $((SECONDS % 60)) s"
fi
[ "${1:-}" = build ] && { echo "kubernetes: $version is in $cache"; exit 0; }
(cd bridge/dra && CGO_ENABLED=0 go build -o ../../bin/ ./cmd/ocs-dra) || exit 1
# Kueue, JobSet and LeaderWorkerSet, whose definitions judge the examples.
crds=
for m in sigs.k8s.io/kueue@v0.17.0 sigs.k8s.io/jobset@v0.11.1 sigs.k8s.io/lws@v0.8.0; do
  dir=$(cd bridge/dra && go mod download -json "$m" 2>/dev/null | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || true
  [ -d "$dir" ] || { echo "kubernetes: $m cannot be had here: its examples are not judged"; crds=; break; }
  crds="$crds $(find "$dir/config" -type d -path '*crd/bases')"
done
cd bridge/dra
RINGLIGHT_CRDS=$crds RINGLIGHT_KUBERNETES=$cache RINGLIGHT_BIN=$OLDPWD/bin RINGLIGHT_RUNS=${JOBS:-200} RINGLIGHT_SEED=${SEED:-1} CGO_ENABLED=0 go test -vet=off -count 1 -v -timeout 30m -run "${ONLY:-.}" ./bench
