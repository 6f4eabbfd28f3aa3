#pragma once
// What a machine's exps are worth: each is held, at every float of [-104, -0], against exp in double. The bounds of the
// laws take their constants from what an H200 answered (reference/certified.csv), so there they are theorems.

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/machine.hpp"
#include "reference/error.hpp"

namespace softmax::certify {

inline constexpr float kLast = -104;                  // exp of what is below is less than half of 2^-149
inline constexpr std::uint32_t kValues = 0x42d00001;  // floats from -0 to -104

// Over some of these floats. Where exp(x) is at least 2^-126, and relative errors in units of u = 2^-24, but for `below`.
struct Answer {
  double max_ulp = 0;     // error in spacings of floats at exp(x)
  double excess = -1e30;  // largest of error - kappa * |x|: the eps0 that holds
  double below = 0;       // largest error where exp(x) is below 2^-126, in units of 2^-149
  double rise = 0;        // largest relative amount by which f(next x) > f(x), though the next is smaller
  float at = 0;           // where max_ulp was
  float most = 0;         // largest f
  std::uint32_t rises = 0, values = 0;

  void add(const Answer&);
};

// One exp, on one machine.
struct Exp {
  std::string_view name;                 // "shifted"
  std::string_view what;                 // "ex2.approx.ftz(x * log2(e))"
  reference::ExpError documented, fast;  // the same in fast math
  Machine& (*machine)();
  int (*threads)();                                               // of a survey: as many answers
  void (*survey)(Answer* out, double kappa, std::uint32_t step);  // of every step-th value
  void (*at_zero)(float* out);
};
bool register_exp(const Exp&);
const std::vector<Exp>& exps();

// What may be taken for granted of it, as its machine's flags make it.
reference::ExpError documented(const Exp&);
// By the documented kappa. Throws std::runtime_error if the machine fails.
Answer survey(const Exp&, std::uint32_t step = 1);
float at_zero(const Exp&);

}  // namespace softmax::certify
