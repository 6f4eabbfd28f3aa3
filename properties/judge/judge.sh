# shellcheck shell=bash
# shellcheck disable=SC2154  # cmake/bootstrap.sh sets root, build and preset
# Sourced by ./check: judges CUDA files of anyone's.

# compile <target> <log> <file>: builds a module; where that fails, shows what the compiler says of the file.
compile() {
  if cmake --build "$build" --target "$1" </dev/null >"$2" 2>&1; then return; fi
  grep -vE '^(\[[0-9]+/|FAILED: |ninja: |.* -[co] [^ ]+/(cpu|gpu)\.cu)' "$2" |
    sed "s|$(readlink -f -- "$3")|$3|g" | head -n 40 >&2
  return 1
}

# judge_file <file> <option...>: the report card, whose last line is the verdict. 0 right, 1 wrong, 2 not judged.
judge_file() {
  local file=$1 place=$build/judge own why obstacles arguments=() verdict=''
  shift
  mkdir -p "$place"
  own=$(mktemp -d "$place/run.XXXXXX")
  {
    # Others may judge in this build folder too: one compiles at a time, and each runs what it compiled.
    flock 9
    build_targets judge || return 2
    if obstacles=$(python3 "$root/properties/judge/translate.py" "$file" --cpu "$place/cpu.cu" --gpu "$place/gpu.cu"); then
      if [ -n "$obstacles" ]; then
        why="the CPU device cannot run ${obstacles//$'\n'/, }"
      elif compile judge_cpu "$own/log" "$file"; then
        cp "$place/judge_cpu.so" "$own/cpu.so"
        arguments+=("--cpu=$own/cpu.so")
      else
        why="g++ does not compile it for the CPU device, see above"
      fi
      case $preset in
        cuda*)
          if compile judge_gpu "$own/log" "$file"; then
            cp "$place/judge_gpu.so" "$own/gpu.so"
            arguments+=("--gpu=$own/gpu.so")
          else
            verdict="WRONG - nvcc does not compile it, see above"
          fi
          ;;
        *) [ ${#arguments[@]} -gt 0 ] || verdict="NOT JUDGED - ${why:-}; there is no nvcc here to ask" ;;
      esac
    else
      verdict="NOT JUDGED - see above"
    fi
  } 9>"$place/lock"
  if [ -n "$verdict" ]; then
    arguments=("--verdict=$verdict")
  elif [ -n "${why:-}" ]; then
    arguments+=("--not-cpu=$why")
  fi
  local status=0
  "$place/judge" "${arguments[@]}" --name="$file" "$@" || status=$?
  rm -r "$own"
  return "$status"
}

# judge <files and options>: each file in turn. The worst status of all: 1 before 2 before 0.
judge() {
  local argument status worst=0 files=() options=() summary=()
  for argument; do
    case $argument in
      -*) options+=("$argument") ;;
      *.cu)
        if [ ! -f "$argument" ]; then
          say "no file $argument"
          return 2
        fi
        files+=("$argument")
        ;;
      *)
        say "$argument is neither a .cu file nor an option; see ./check --help"
        return 2
        ;;
    esac
  done
  if [ ${#files[@]} -gt 1 ] && [[ " ${options[*]}" == *" --json="* ]]; then
    say "--json is for one file"
    return 2
  fi
  install_packages
  choose_preset
  for argument in "${files[@]}"; do
    status=0
    judge_file "$argument" "${options[@]}" || status=$?
    summary+=("$status $argument")
    if [ "$status" = 1 ] || [ "$worst" = 0 ]; then worst=$status; fi
  done
  if [ ${#files[@]} -gt 1 ]; then
    echo
    for argument in "${summary[@]}"; do
      case ${argument%% *} in
        0) echo "right       ${argument#* }" ;;
        1) echo "wrong       ${argument#* }" ;;
        *) echo "not judged  ${argument#* }" ;;
      esac
    done
  fi
  return "$worst"
}
