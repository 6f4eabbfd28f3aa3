#pragma once
// Runs a kernel on host data, the way no caller may notice: poisoned output, traps around every row, guard bands.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "properties/case.hpp"

namespace softmax::properties {

struct Output {
  std::vector<float> y;  // rows * cols, without padding
  std::string trespass;  // empty, or what was written that is not the kernel's to write
};

// x is rows * cols long. Throws what the kernel throws.
Output run(const Kernel&, const Case&, const std::vector<float>& x);
// The same for each of `inputs` in turn, in the same memory; the output stays as the run before left it.
std::vector<Output> run_in_turn(const Kernel&, const Case&, std::span<const std::vector<float>> inputs);
inline Output run(const Kernel& kernel, const Case& c) { return run(kernel, c, values(c)); }

// Rows of a matrix without padding.
inline std::span<const float> row(const std::vector<float>& matrix, std::int64_t cols, std::int64_t r) {
  return std::span(matrix).subspan(std::size_t(r * cols), std::size_t(cols));
}

}  // namespace softmax::properties
