# shellcheck shell=bash disable=SC2154
# `./dev image [--check]`: builds the container image without an engine or a registry. Sourced by ./dev.
# buildah (chroot isolation, vfs storage) runs inside the Debian root; the base image is a debootstrap tree.
image_store=$cache/buildah
image_base=localhost/quire-base
image_name=localhost/quire

run_buildah() { # ARGS...: buildah with its storage in the cache
  in_env buildah --storage-driver vfs --root "$image_store/storage" --runroot "$image_store/run" "$@"
}

image_base_ensure() { # a minimal Debian 13 as a local image, standing in for debian:trixie-slim
  run_buildah images -q "$image_base" >/dev/null 2>&1 && return 0
  local tree=$image_store/base
  say "making the local base image"
  rm -rf "$tree"
  mkdir -p "$image_store"
  base_tree_make "$tree"
  in_env tar -C "$tree" --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -cf "$image_store/base.tar" .
  local id
  id=$(run_buildah from --network host scratch)
  run_buildah add -q "$id" "$image_store/base.tar" / >/dev/null
  run_buildah commit -q "$id" "$image_base" >/dev/null
  run_buildah rm "$id" >/dev/null
  rm -rf "$tree" "$image_store/base.tar"
}

image_build() {
  local args=() host_ca revision
  revision=$(git -C "$top" rev-parse --short HEAD 2>/dev/null || echo unknown)
  mkdir -p "$cache/ccache" "$cache/cargo" "$cache/cargo-target-image"
  host_ca=$(host_ca)
  # The mirror's and cargo's trust, and the caches: mounted while building, absent from the image.
  [ -z "$host_ca" ] || args+=(--volume "$host_ca:/run/host-ca.crt:ro" --env CARGO_HTTP_CAINFO=/run/host-ca.crt)
  args+=(--volume "$cache/ccache:/cache/ccache" --volume "$cache/cargo:/cache/cargo" --volume "$cache/cargo-target-image:/cache/cargo-target")
  say "building the image $image_name"
  run_buildah build --isolation chroot --format docker --pull=never --layers=false --network host \
    --ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit "nproc=$(ulimit -Hu):$(ulimit -Hu)" \
    --build-arg "BASE=$image_base" --build-arg "REVISION=$revision" "${args[@]}" \
    --unsetenv CARGO_HTTP_CAINFO -t "$image_name" -f "$top/Dockerfile" "$top" >&2 || die "the image does not build"
}

image_check() { # runs the image's file system as its user, read-only, in namespaces of its own
  local id tree
  model_ensure
  id=$(run_buildah from --pull-never --network host "$image_name")
  tree=$(run_buildah mount "$id")
  say "running the image"
  in_env unshare --mount --net --pid --fork bash "$top/deploy/dev/image_check.sh" "$tree" "$(model_path)" ||
    { run_buildah rm "$id" >/dev/null; die "the image check failed"; }
  run_buildah rm "$id" >/dev/null
  say "image size: $(run_buildah images --format '{{.Size}}' "$image_name")"
}

image() {
  root_ensure runtime build image
  image_base_ensure
  image_build
  [ "${1:-}" != --check ] || image_check
}
