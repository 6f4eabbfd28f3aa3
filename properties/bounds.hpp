#pragma once
// What a kernel's traits mean for its error bound: the one place that translates kernels/kernel.hpp into
// reference/error.hpp.

#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"
#include "reference/error.hpp"

namespace softmax {

// The arithmetic of a kernel with these traits on this very row of a problem: the rescales of an online kernel are
// replayed. The row is as it was before Problem::temperature, which is the row's own, divided it; `temperatures` is not
// looked at. fast_math: the kernel was compiled so that expf, / and subnormals are the fast ones (Machine::math() "fast").
reference::ErrorModel error_model(const Traits&, const Problem&, std::span<const float> row, bool fast_math = false);

// How many threads stride over a row whose running maxima an online kernel rescales by; 0 if it is not online or says
// nothing of its order.
int rescaling_threads(const Traits&, int block);

// The same on any row of the problem: the worst order of its elements. The temperature must be a power of two.
reference::ErrorModel error_model(const Traits&, const Problem&, bool fast_math = false);

}  // namespace softmax
