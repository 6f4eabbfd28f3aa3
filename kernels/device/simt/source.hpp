#pragma once
// From an address in the program to the line of a kernel file, by the debug information that kernel files are compiled
// with.

#include <cstdint>
#include <string>

namespace softmax::device::simt {

struct SourceLine {
  std::string file;  // as the compiler was told it; empty if unknown
  int line = 0;
};
// The line whose code a call returns to at `pc`. Words of the device are inlined into kernels: then it is the line that
// uses the word.
SourceLine line_of(std::uintptr_t pc);

}  // namespace softmax::device::simt
