#pragma once
// What nvcc made of a kernel, held to what the kernel states. With -lineinfo each cubin keeps the PTX that its machine code was
// assembled from, as text: this program's own file is read, no tool and no GPU needed.
//
// PTX settles what matters. Fast math is in its instructions' names. A contraction is either an fma in it, or ptxas's, of a
// `mul` and the `add` or `sub` that takes its result, and of nothing else.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace softmax::properties {

struct Instruction {
  std::string op;                     // "fma.rn.f32"
  std::vector<std::string> operands;  // the result first; those of a vector one by one
};
struct Entry {  // a __global__ function
  std::string name;
  std::vector<Instruction> code;
};
// Of a PTX text, or of any file that has some in it. A name comes once for each architecture.
std::vector<Entry> entries(const std::string& bytes);

struct BuiltCode {
  int entries = 0, exps = 0, quotients = 0, reciprocals = 0, doubles = 0;
  int fine = 0;       // exps that are given back what their power lost
  std::string wrong;  // the first thing that is not as stated
};
// Of all entries of one kernel. Each exp must be the one stated, of a difference that is rounded by itself; each division too;
// numbers below 2^-126 are flushed by all or by none, as the flags say; what becomes 16 bits is rounded to nearest.
BuiltCode read_code(const std::vector<Entry>&, const Traits&, bool fast_math);

}  // namespace softmax::properties
