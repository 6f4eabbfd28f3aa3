#include "benchmarks/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace softmax::bench {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * double(sorted.size() - 1);
  const auto i = std::size_t(at);
  const double next = sorted[std::min(i + 1, sorted.size() - 1)];
  return sorted[i] + (at - double(i)) * (next - sorted[i]);
}

// Warm-up of one case. Returns the wall seconds of one sample, flush included, to size the first batch with.
double warm_case(Machine& machine, const Work& work, const Policy& p) {
  double cost = 0;
  const double start = p.now();
  for (int done = 0, batch = 1; done < p.warm_launches || p.now() - start < p.warm_seconds; batch *= 2) {
    const double before = p.now();
    const std::vector<double> times = machine.time(work, batch, p.cold);
    cost = (p.now() - before) / batch;
    done += batch;
    if (times.empty() || times.front() > p.slow_seconds) break;
  }
  return cost;
}

}  // namespace

Summary summarize(std::vector<double> seconds) {
  if (seconds.empty()) throw std::runtime_error("the machine returned no time");
  for (const double s : seconds)
    if (!(s > 0 && std::isfinite(s)))
      throw std::runtime_error("the machine's clock measured " + std::to_string(s) + " s");
  std::sort(seconds.begin(), seconds.end());
  Summary all;
  all.n = int(seconds.size());
  all.min = seconds.front();
  all.p25 = quantile(seconds, 0.25);
  all.median = quantile(seconds, 0.5);
  all.p75 = quantile(seconds, 0.75);
  // The number of samples below the median is binomial(n, 1/2): rank n/2 -+ 1.96 sqrt(n)/2 encloses it in 95 % of all
  // runs, whatever the samples' distribution. Below six samples no rank does; then the interval is the whole range.
  const int rank = std::max(1, int(std::floor((all.n - 1.96 * std::sqrt(double(all.n))) / 2)));
  all.ci_percent = 100 * (seconds[std::size_t(all.n - rank)] - seconds[std::size_t(rank - 1)]) / 2 / all.median;
  return all;
}

Policy policy(const Machine& machine) {
  Policy p;
  p.now = steady_seconds;
  if (machine.simulated()) {  // nothing to warm, and no confidence to gain: the time is the simulator's
    p.warm_launches = 0;
    p.warm_seconds = 0;
    p.samples = 3;
    p.floor = 1;
    p.ci_percent = std::numeric_limits<double>::infinity();
    p.cold = false;
  }
  return p;
}

Summary measure(Machine& machine, const Work& work, const Policy& p, std::int64_t at_least) {
  double cost = warm_case(machine, work, p);
  std::vector<double> all;
  const double start = p.now();
  for (;;) {
    const auto n = std::int64_t(all.size());
    const std::int64_t target = std::max<std::int64_t>(p.samples, at_least);
    // Past the target a batch is a quarter of what is there, so that sorting for the check stays cheap.
    const std::int64_t wanted = n < target ? target - n : std::max<std::int64_t>(32, n / 4);
    const double affordable = cost > 0 ? p.batch_seconds / cost : 1;  // nothing known: one
    const int batch = int(std::clamp(affordable, 1.0, double(std::min<std::int64_t>(wanted, 1 << 16))));
    const double before = p.now();
    const std::vector<double> times = machine.time(work, batch, p.cold);
    const double after = p.now();
    if (times.empty()) throw std::runtime_error("the machine returned no time");
    cost = (after - before) / batch;
    all.insert(all.end(), times.begin(), times.end());

    const auto have = std::int64_t(all.size());
    if (have < at_least) continue;
    const Summary s = summarize(all);
    if (have >= p.samples && s.ci_percent <= p.ci_percent) return s;
    if (have >= p.floor && after - start >= p.cap_seconds) return s;
  }
}

void warm_up(Machine& machine, const Work& work, double seconds, const std::function<double()>& now) {
  const double start = now();
  for (int batch = 1; now() - start < seconds; batch = std::min(2 * batch, 64)) machine.time(work, batch, true);
}

}  // namespace softmax::bench
