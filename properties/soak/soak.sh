# shellcheck shell=bash
# shellcheck disable=SC2154  # cmake/bootstrap.sh sets root, build and preset
# Sourced by ./check: the soak of what is built.

# soak [MINUTES [option...]]: shared among the flavours. The worst status of all: 2 before 1 before 0.
soak() {
  local minutes=${1:-} flavours=("$build") each option status worst=0 stopped='' options=()
  if ! [[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ && $minutes =~ [1-9] ]]; then
    say "--soak wants a number of minutes above 0; see ./check --help"
    return 2
  fi
  shift
  build_targets soak
  if [ "$preset" = cuda ] && [ -f "$root/build/fast/CMakeCache.txt" ]; then
    flavours+=("$root/build/fast")
    preset=cuda-fast build=$root/build/fast build_targets soak
  fi
  minutes=$(awk -v all="$minutes" -v parts=${#flavours[@]} 'BEGIN { print all / parts }')
  trap 'stopped=1' INT TERM # which the program gets too, and ends with its report
  for each in "${flavours[@]}"; do
    if [ -n "$stopped" ]; then break; fi
    options=("--minutes=$minutes")
    if [ "$each" != "$build" ]; then options+=(--device=gpu); fi # the CPU device has one flavour
    for option; do
      if [ "$each" != "$build" ]; then
        case $option in
          --json=*ieee*) option=${option/ieee/fast} ;;
          --json=*) option=${option%.json}-fast.json ;;
        esac
      fi
      options+=("$option")
    done
    status=0
    "$each/soak" "${options[@]}" || status=$?
    if [ "$status" -gt "$worst" ]; then worst=$status; fi
  done
  return "$worst"
}
