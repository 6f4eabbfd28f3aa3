#pragma once
// Textbook access patterns, each a kernel with the counts that a person derives for it. Both back ends compile them, so
// that the CPU device is held to the derivation and the GPU's own counters can be.

#include <cstddef>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::counters {

struct Pattern {
  const char* name;  // its kernel is pattern_<name>
  Machine& (*machine)();
  void (*launch)(const float* in, float* out);  // kIn and kOut floats long, both on 128-byte boundaries
  int blocks, threads;
  Counters warp = {}, block = {};  // what each warp does, and what comes on top in each block
};
inline constexpr std::size_t kIn = (1 << 14) + 64, kOut = 1 << 12;

// Of this program, in the order of the file. Called before main; stores and does nothing else.
const std::vector<const Pattern*>& patterns();
bool register_pattern(const Pattern&);

Counters expected(const Pattern&);
// Launches the pattern once, on noise; what it touches is declared to the machine.
void run(const Pattern&);

// V3 as nobody should write it: each lane takes a run of neighbours of its own. Right, and uncoalesced. Not registered.
inline namespace simt_be {
const Kernel& uncoalesced();
}

}  // namespace softmax::counters
