#pragma once
// What a kernel asks of memory, counted in one launch that is not timed. Only a machine that checks kernels can count.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/workspace.hpp"
#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::bench {

struct Trace {
  Shape shape;
  const Kernel* kernel = nullptr;
  How how = {};
  std::int64_t rows = 0;  // of the shape, that were traced
  Profile profile;        // of them all; empty if the machine does not count
};

// All rows, or the first ones of a matrix above 2^22 elements, in whole warps and blocks where that leaves any.
std::int64_t rows_to_trace(Shape);

// Launches once at Watch::check, and leaves the machine at Watch::off. Throws what the kernel did wrong.
Trace trace(Workspace&, const Kernel&, const How&);

// Key and value of each counter of a result file, a token's share of it, and the ratios made of them; results/README.md
// owns their meaning. Empty if nothing was counted.
std::vector<std::pair<std::string, double>> traced_counters(const Trace&);
std::string counter_key(std::int64_t Counters::*);  // of a result file

// Per source line of each kernel: what it does a token, the line's text, and what is wrong with it. One block size for
// each kernel and shape, one with most to fix; says whether the others' lines are the same.
std::string explain(const std::vector<Trace>&);

}  // namespace softmax::bench
