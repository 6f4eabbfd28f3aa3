#pragma once
// How long one piece of work takes on a machine: warm-up, samples in batches, a rule to stop, and statistics. The
// sampling loop is ours because Google Benchmark's counts manual time only: a 3 us kernel with a 50 us flush would run
// for half a minute.

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/machine.hpp"

namespace softmax::bench {

// Seconds. Quartiles are interpolated.
struct Summary {
  double median = 0, min = 0, p25 = 0, p75 = 0;
  double ci_percent = 0;  // half-width of the 95 % confidence interval of the median, in % of the median
  int n = 0;
};
// Throws std::runtime_error if there is no sample, or one that is not a positive finite number.
Summary summarize(std::vector<double> seconds);

using Work = std::function<void()>;

// Warm-up of a case, and when to stop. Times are wall time on `now`, flushes included.
struct Policy {
  int warm_launches = 3;       // at least; none if 0
  double warm_seconds = 0.02;  // at least
  double slow_seconds = 0.1;   // one call of the work this long is warm-up enough

  int samples = 50;            // at least, while the cap allows
  double ci_percent = 0.5;     // and until the median is known this well
  double cap_seconds = 1;      // then stop, with at least
  int floor = 5;               // this many
  double batch_seconds = 0.2;  // a batch is cut so that it takes about this long

  bool cold = true;
  std::function<double()> now;  // seconds, monotonic; tests bring their own
};
Policy policy(const Machine&);

// `at_least` is a number of samples that the caller insists on, whatever they cost. Throws what work or machine throw.
Summary measure(Machine&, const Work&, const Policy&, std::int64_t at_least = 0);

// Runs `work` for about `seconds` to bring the clocks up; what the first case of a process needs.
void warm_up(Machine&, const Work&, double seconds, const std::function<double()>& now);

}  // namespace softmax::bench
