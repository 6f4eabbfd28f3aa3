#pragma once
// How long one piece of work takes on a machine: warm-up, samples in batches, a rule to stop, and statistics. The
// sampling loop is ours because Google Benchmark's counts manual time only: a 3 us kernel with a 50 us flush would run
// for half a minute.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/machine.hpp"

namespace softmax::bench {

// Seconds. Quartiles are interpolated.
struct Summary {
  double median = 0, min = 0, p25 = 0, p75 = 0;
  double ci_percent = 0;  // half-width of the 95 % confidence interval of the median, in % of the median
  int n = 0;
};
// Throws std::runtime_error if there is no sample, one that is not finite, or a median that is not positive.
Summary summarize(std::vector<double> seconds);

// When to stop. Times are wall time on `now`, flushes included.
struct Policy {
  double process_seconds = 1;  // of warm-up, once: the clocks of an idle GPU take about that long to settle
  int warm_launches = 10;      // of a case, at least; none if 0
  double warm_seconds = 0.05;  // at least
  double slow_seconds = 0.1;   // one launch this long is warm-up enough

  int samples = 50;         // at least, while the cap allows
  double ci_percent = 0.5;  // and until the median is known this well,
  double plateau = 0.9;     // or twice the samples leave more than this of its interval, twice in a row (noise is then
                            // hardly sampling error),
  double cap_seconds = 1;   // or this much time has passed; with at least
  int floor = 5;            // this many
  double batch_seconds = 0.2;  // a batch is cut so that it takes about this long

  // A graph's replay takes at least this long, so that what starts it is little beside it; and it has at least so many
  // launches, unless they take longer than `long_replay`.
  double replay_seconds = 5e-4, long_replay = 0.25;
  int replay_launches = 32;

  double slow_clock = 0.75;  // of the highest: below it the clocks were throttled, whatever the driver says
  double impossible = 1.05;  // times the copy's speed

  std::function<double()> now;    // seconds, monotonic; tests bring their own
  std::function<void()> between;  // called between batches; what it throws ends the measurement
};
Policy policy(const Machine&);

struct Measured {
  Summary work, copy;                         // copy.n is 0 if there was none
  std::vector<double> samples, copy_samples;  // seconds, in the order taken
  int launches = 1;                           // a sample's
  double sm_hz = 0;                           // mean clock; 0: unknown
  std::optional<std::uint64_t> throttle_reasons;
  bool noisy = false;      // stopped before the median was known as well as asked
  bool throttled = false;  // the driver gave a reason to slow down, or the clock was low
  bool suspect = false;    // faster than the copy allows, or a sample was not positive
};

// Samples `work`, and before each batch as often `copy`, so that a drift of the machine meets both and the last to write
// is the work. `copy` may be null. `at_least` is a number of samples that the caller insists on, whatever they cost.
// Timing::launches is chosen here. Throws what work or machine throw.
Measured measure(Machine&, const Work& work, const Work& copy, Timing, const Policy&, std::int64_t at_least = 0);

// Runs `work` to bring the clocks up; what the first case of a process needs.
void warm_up(Machine&, const Work& work, const Policy&);

std::string_view name(Mode);
std::string_view name(Flush);

}  // namespace softmax::bench
