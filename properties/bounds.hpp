#pragma once
// What a kernel's traits mean for its error bound: the one place that translates kernels/kernel.hpp into
// reference/error.hpp.

#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"
#include "reference/error.hpp"

namespace softmax {

// The arithmetic of a kernel with these traits and `block` threads a block on this very row: the rescales of an online
// kernel are replayed. fast_math: the kernel was compiled so that expf, / and subnormals are the fast ones
// (Machine::math() "fast").
reference::ErrorModel error_model(const Traits&, std::span<const float> row, int block, bool fast_math = false);

// How many threads stride over a row whose running maxima an online kernel rescales by; 0 if it is not online or says
// nothing of its order.
int rescaling_threads(const Traits&, int block);

// The same on any row of `cols` elements: the worst order of the row's elements.
reference::ErrorModel error_model(const Traits&, std::int64_t cols, int block, bool fast_math = false);

}  // namespace softmax
