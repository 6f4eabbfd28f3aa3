# shellcheck shell=bash
# Sourced by ./bench and ./check: brings a bare Debian 12 or Ubuntu 24.04 to a built tree. All of it speaks on standard
# error, because standard output belongs to the program.
#
# SOFTMAX_PRESET=<name>   a preset of CMakePresets.json instead of cuda where nvcc is, else cpu
# SOFTMAX_BOOTSTRAP=0     look for no packages: the libraries are here from elsewhere (conda, modules, CMAKE_PREFIX_PATH)

root=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
packages=(g++ cmake ninja-build libbenchmark-dev libgtest-dev libgmock-dev librapidcheck-dev libboost-context-dev libdw-dev
  libzstd-dev nlohmann-json3-dev gappa python3 python3-dev python3-venv)

say() { printf 'softmax-lab: %s\n' "$*" >&2; }

# Installs the packages that are not there, as root or through sudo; exits 3 where it may not.
install_packages() {
  local known package installer command missing=()
  if [ "${SOFTMAX_BOOTSTRAP:-1}" = 0 ]; then return; fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    # Elsewhere names differ, and only CMake can tell which library is missing.
    for package in g++ cmake ninja python3; do command -v "$package" >/dev/null || missing+=("$package"); done
    if [ ${#missing[@]} = 0 ]; then return; fi
    say "no ${missing[*]}, and no apt-get to install it with. Debian calls what is needed: ${packages[*]}"
    exit 3
  fi

  # shellcheck disable=SC2016  # dpkg-query expands these
  known=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    [[ $'\n'$known$'\n' == *$'\n'"installed $package"$'\n'* ]] || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then return; fi

  # A new machine may still hold apt's lock for updates of its own. One stale source among many is no reason to give up.
  installer="apt-get update -q; DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends"
  installer+=" -o DPkg::Lock::Timeout=300 ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    command=(sh -c "$installer")
  elif command -v sudo >/dev/null; then
    command=(sudo sh -c "$installer")
  else
    say "packages are missing, and installing them needs root. As root, run:"
    printf '  apt-get update; apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 3
  fi
  say "installing ${missing[*]}"
  if ! "${command[@]}" </dev/null >&2; then
    say "that did not work. The packages of Debian 12 or Ubuntu 24.04 (with universe), or later, are needed. As root, run:"
    printf '  apt-get update; apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 3
  fi
}

# Sets `preset` and its build folder, `build`.
choose_preset() {
  preset=${SOFTMAX_PRESET:-}
  if [ -z "$preset" ]; then
    preset=cpu
    if command -v nvcc >/dev/null; then
      preset=cuda
    elif [ -x /usr/local/cuda/bin/nvcc ]; then
      preset=cuda
      export CUDACXX=${CUDACXX:-/usr/local/cuda/bin/nvcc} # CMake looks on PATH alone
    fi
  fi
  case $preset in
    cpu | cuda) build=$root/build ;;
    cuda-fast | asan) build=$root/build/${preset#cuda-} ;;
    *) say "SOFTMAX_PRESET=$preset: there are cpu, cuda, cuda-fast and asan"; exit 2 ;;
  esac
}

# Is the build folder of this very tree (and not a copy of another's), and of this preset?
configured() {
  local cuda=OFF cache=$build/CMakeCache.txt
  case $preset in cuda*) cuda=ON ;; esac
  [ -f "$build/build.ninja" ] && grep -sqxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" &&
    grep -qxF "CMAKE_CACHEFILE_DIR:INTERNAL=$build" "$cache" && grep -qxF "SOFTMAX_CUDA:BOOL=$cuda" "$cache"
}

# build_targets <target...>: configures if need be, and builds. Says nothing when there is nothing to do.
build_targets() {
  local version
  if ! configured; then
    version=$(cmake --version | sed -n '1s/[^0-9]*//p')
    if ! printf '3.25\n%s\n' "$version" | sort -VC; then
      say "CMake 3.25 or later is needed, $(command -v cmake) is $version"
      exit 3
    fi
    say "configuring preset $preset in $build"
    if ! cmake --fresh -S "$root" --preset "$preset" >&2; then
      say "not configured. Debian calls what is needed: ${packages[*]}. SOFTMAX_PRESET=cpu builds without CUDA."
      exit 1
    fi
  fi
  # The list of kernels and the revision header are looked at in every build: that alone is no news.
  cmake --build "$build" --target "$@" </dev/null 2>&1 |
    { grep --line-buffered -vE '^(\[[0-9/]+\] (Re-checking globbed|.*softmax_build)|ninja: no work to do)' >&2 || true; }
}
