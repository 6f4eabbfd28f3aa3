#pragma once
// What a kernel's traits mean for its error bound: the one place that translates kernels/kernel.hpp into
// reference/error.hpp.

#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"
#include "reference/error.hpp"

namespace softmax {

// What a machine makes of each Exp, and whether its flags make expf, / and subnormals the fast ones.
struct Arithmetic {
  bool fast_math = false;
  reference::ExpError expf, fast, shifted, fine;  // fine: shifted, of 32-bit outputs
  bool monotone = false;  // none ever rises where x falls

  Arithmetic(bool fast_math = false);  // as documented
};
// Where `certify` has seen all values, as they are: there a bound is a theorem of this machine, but for what
// reference/PROOFS.md lists. Elsewhere as documented.
Arithmetic arithmetic_of(const Machine&);

// The arithmetic of a kernel with these traits on this very row of a problem: the rescales of an online kernel are
// replayed. The row is as it was before Problem::temperature, which is the row's own, divided it; `temperatures` is not
// looked at.
reference::ErrorModel error_model(const Traits&, const Problem&, std::span<const float> row, const Arithmetic& = {});

// How many threads stride over a row whose running maxima an online kernel rescales by; 0 if it is not online or says
// nothing of its order.
int rescaling_threads(const Traits&, int block);

// The same on any row of the problem: the worst order of its elements. The temperature must be a power of two.
reference::ErrorModel error_model(const Traits&, const Problem&, const Arithmetic& = {});

}  // namespace softmax
