#!/bin/sh
# symbols_test.sh NM OBJECT...: kernel objects of the CPU device must call the tracer, and define no symbol of ours that
# another object could replace: whatever is visible to the linker lies in the inline namespace simt_be (see words.hpp), and
# is not named after what one file alone has: g++ makes f<Of> one function of all files whose own template Of it is for.
set -u
nm=$1
shift
[ $# -gt 0 ] || { echo "no object files to look at"; exit 1; }
failed=0
for object; do
  symbols=$("$nm" -C "$object") || { echo "$object: cannot be read"; failed=1; continue; }
  # Not of ours: the C++ library's templates and what the compiler emits for exceptions. Everything else, a function of C
  # or in the global namespace too, counts as ours. Template parameters may name anything, so they do not count.
  leaks=$(echo "$symbols" | sed -nE 's/^[0-9a-f]+ [A-TV-Zuvw] //p' |
    grep -vE '^(void |bool |typeinfo (name )?for |vtable for |guard variable for )*(std::|__gnu_cxx::|DW\.ref\.)' |
    awk '{ name = $0; while (gsub(/<[^<>]*>/, "", name)); sub(/^[A-Za-z_: ]*\(\*/, "", name); sub(/\(.*/, "", name)
           if (name !~ /(^|[ :])simt_be::/ || /\(anonymous namespace\)/) print }')
  if [ -n "$leaks" ]; then
    echo "$object: visible to the linker, but not in simt_be:"
    echo "$leaks" | sed 's/^/    /'
    failed=1
  fi
  for call in __tsan_read4 __tsan_write4; do
    echo "$symbols" | grep -qE " U $call\$" || { echo "$object: no access is traced ($call)"; failed=1; }
  done
done
exit $failed
