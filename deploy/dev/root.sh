# shellcheck shell=bash disable=SC2154
# The Debian 13 root in which everything is built and run when the host is not Debian 13 itself.
# Sourced by ./dev, which sets $top (checkout), $cache (cache folder) and say(). Defines:
#   root_ensure SECTION...   the packages of these sections of deploy/packages.txt are installed
#   root_exec [--install | --replace] CMD...   runs CMD in the current folder, inside the root (or natively);
#                              --replace: in place of this shell, so that signals reach it

packages_of() { # SECTION... -> package names
  local want
  for want in "$@"; do
    awk -v want="[$want]" '/^\[/ {on = ($0 == want)} /^[a-z0-9]/ && on {print $1}' "$top/deploy/packages.txt"
  done
}

host_is_trixie() {
  # shellcheck disable=SC1091
  [ -r /etc/os-release ] && (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 13 ])
}

have_packages() { # PACKAGE... are installed on this host
  local n
  n=$(dpkg-query -W -f='${db:Status-Status}\n' "$@" 2>/dev/null | grep -c '^installed$' || true)
  [ "$n" -ge $# ]
}

root_mode() { # native | root | none, decided once
  if [ -z "${root_mode_:-}" ]; then
    if host_is_trixie && { [ "${DEV_NATIVE:-}" = 1 ] || have_packages g++ cmake libgrpc++-dev libdnnl-dev; }; then
      root_mode_=native
    elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && command -v unshare >/dev/null; then
      root_mode_=root
    else
      root_mode_=none
    fi
  fi
  [ "$root_mode_" != none ] ||
    die "this host is neither Debian 13 with the packages of deploy/packages.txt, nor Debian or Ubuntu as root; build the image from the Dockerfile instead"
}

root_dir() { # keyed by what is built and tested with; lint and image tools only add to it
  printf '%s/root-%s\n' "$cache" "$(packages_of runtime build test | sha256sum | cut -c1-12)"
}

section_mark() { # ROOT SECTION -> the file that says that this list of packages is installed
  printf '%s/.has-%s-%s\n' "$1" "$2" "$(packages_of "$2" | sha256sum | cut -c1-12)"
}

host_mirror() {
  awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null ||
    awk '$1 == "deb" && $2 ~ /debian/ {print $2; exit}' /etc/apt/sources.list 2>/dev/null || true
}

host_ca() { # the host's CA bundle
  local f
  for f in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    [ -n "$f" ] && [ -s "$f" ] && { readlink -f "$f"; return; }
  done
}

base_tree_make() { # TREE: a minimal Debian 13 with the host's mirror, proxy and trust settings, but no packages
  local tree=$1 mirror
  command -v debootstrap >/dev/null || {
    say "installing debootstrap on the host"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null
  }
  mirror=$(host_mirror)
  debootstrap --variant=minbase trixie "$tree" ${mirror:+"$mirror"} >"$cache/debootstrap.log" 2>&1 ||
    die "debootstrap failed; its log: $cache/debootstrap.log"
  if [ -n "$mirror" ]; then
    printf 'deb %s trixie main\n' "$mirror" >"$tree/etc/apt/sources.list"
  fi
  # Proxy and check settings of the host's apt, not its hooks.
  grep -rhE '^ *Acquire::(http|https|Check)' /etc/apt/apt.conf /etc/apt/apt.conf.d 2>/dev/null \
    >"$tree/etc/apt/apt.conf.d/80host" || true
  cat >"$tree/etc/apt/apt.conf.d/90quire" <<'CONF'
Acquire::https::CaInfo "/run/host-ca.crt";
Acquire::Retries "3";
Dpkg::Options { "--force-unsafe-io"; };
APT::Install-Recommends "false";
CONF
}

root_make() { # a base system without packages; renamed into place only when whole
  local root=$1 part=$1.part
  say "making a Debian 13 root (once, about a minute): $root"
  rm -rf "$part"
  base_tree_make "$part"
  mv "$part" "$root"
}

root_ensure() { # SECTION...
  root_mode
  local section missing=() root
  if [ "$root_mode_" = native ]; then
    mapfile -t missing < <(packages_of "$@")
    have_packages "${missing[@]}" ||
      die "packages are missing; run: sudo apt-get install ${missing[*]}"
    return 0
  fi
  mkdir -p "$cache"
  root=$(root_dir)
  for section in "$@"; do [ -e "$(section_mark "$root" "$section")" ] || missing+=("$section"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  exec 8>"$cache/root.lock"
  flock 8
  [ -d "$root" ] || root_make "$root"
  for section in "${missing[@]}"; do
    [ -e "$(section_mark "$root" "$section")" ] && continue
    say "installing packages of section $section"
    local names
    mapfile -t names < <(packages_of "$section")
    root_exec --install sh -c '
      dpkg --configure -a && apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" && apt-get clean' -- "${names[@]}" \
      >"$cache/apt-$section.log" 2>&1 8>&- || die "installing section $section failed; its log: $cache/apt-$section.log"
    touch "$(section_mark "$root" "$section")"
  done
  flock -u 8
  exec 8>&-
}

root_exec() { # [--install | --replace] CMD...
  root_mode
  local install=0 run=()
  case $1 in
    --install) install=1; shift ;;
    --replace) run=(exec); shift ;;
  esac
  if [ "$root_mode_" = native ]; then "${run[@]}" "$@"; return; fi
  "${run[@]}" env ROOT="$(root_dir)" CWD="$PWD" BINDS="$(root_binds "$@")" HOST_CA="$(host_ca)" INSTALL="$install" \
    unshare --mount --propagation private bash "$top/deploy/dev/enter.sh" "$@"
}

root_binds() { # ARGUMENT... -> folders that keep their path inside, one a line: ours, this one, and those of arguments
  local arg folder
  {
    printf '%s\n' "$top" "$HOME" "$cache" /tmp "$PWD"
    for arg in "$@"; do
      arg=${arg#--*=}
      arg=${arg#unix:}
      case $arg in /*) ;; *) continue ;; esac
      [ -d "$arg" ] && folder=$arg || folder=${arg%/*}
      [ -d "$folder" ] && readlink -f "$folder"
    done
  } | grep -vE '^(/|/var|/(usr|etc|bin|sbin|lib[0-9]*|proc|sys|dev|run|boot|var/lib)(/.*)?)$' | sort -u
}
