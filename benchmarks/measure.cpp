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

// One of the two things that are sampled in turn.
class Sampler {
 public:
  Sampler(Machine& machine, const Work& launch, Timing timing, const Policy& policy)
      : machine_(machine), launch_(launch), timing_(timing), p_(policy) {}

  // Leaves `cost` known, and how many launches a graph has.
  void warm() {
    if (in_graph(timing_.mode)) {
      timing_.launches = timing_.sets;
      const double one = run(1).seconds.front();  // instantiates: its time is of the launches all the same
      timing_.launches = launches(one);
    }
    const double start = p_.now();
    for (int done = 0, batch = 1; done < p_.warm_launches || p_.now() - start < p_.warm_seconds; batch *= 2) {
      const Batch b = run(batch);
      done += batch * timing_.launches;
      if (b.seconds.front() > p_.slow_seconds) break;
    }
  }

  Batch run(int samples) {
    const double before = p_.now();
    Batch batch = machine_.time(launch_, samples, timing_);
    cost_ = (p_.now() - before) / samples;
    if (batch.seconds.empty()) throw std::runtime_error("the machine returned no time");
    return batch;
  }

  double cost() const { return cost_; }  // wall seconds of a sample, flush included
  int launches() const { return timing_.launches; }

 private:
  // A multiple of the sets, so that each is used equally often.
  int launches(double seconds) const {
    if (!(seconds > 0)) return timing_.sets;
    double wanted = std::max(double(p_.replay_launches), p_.replay_seconds / seconds);
    wanted = std::min(wanted, std::max(1.0, p_.long_replay / seconds));
    return timing_.sets * int(std::ceil(wanted / timing_.sets));
  }

  Machine& machine_;
  const Work& launch_;
  Timing timing_;
  const Policy& p_;
  double cost_ = 0;
};

}  // namespace

Summary summarize(std::vector<double> seconds) {
  if (seconds.empty()) throw std::runtime_error("the machine returned no time");
  for (const double s : seconds)
    if (!std::isfinite(s)) throw std::runtime_error("the machine's clock measured " + std::to_string(s) + " s");
  std::sort(seconds.begin(), seconds.end());
  Summary all;
  all.n = int(seconds.size());
  all.min = seconds.front();
  all.p25 = quantile(seconds, 0.25);
  all.median = quantile(seconds, 0.5);
  all.p75 = quantile(seconds, 0.75);
  if (!(all.median > 0))
    throw std::runtime_error("the machine's clock measured " + std::to_string(all.median) + " s, the median of " +
                             std::to_string(all.n));
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
  }
  return p;
}

Measured measure(Machine& machine, const Work& work, const Work& copy, Timing timing, const Policy& p,
                 std::int64_t at_least) {
  Sampler worker(machine, work, timing, p), copier(machine, copy, timing, p);
  worker.warm();
  if (copy) copier.warm();

  Measured m;
  m.launches = worker.launches();
  double cycles = 0, clocked = 0;
  struct {
    std::int64_t n = 0;
    double ci = std::numeric_limits<double>::infinity();
    int level = 0;  // how often in a row it had not narrowed
  } mark;           // where the interval was last looked at
  const double start = p.now();
  for (;;) {
    const auto n = std::int64_t(m.samples.size());
    const std::int64_t target = std::max<std::int64_t>(p.samples, at_least);
    // Past the target a batch is a quarter of what is there, so that sorting for the check stays cheap.
    const std::int64_t wanted = n < target ? target - n : std::max<std::int64_t>(32, n / 4);
    const double cost = worker.cost() + (copy ? copier.cost() : 0);
    const double affordable = cost > 0 ? p.batch_seconds / cost : 1;  // nothing known: one
    const int size = int(std::clamp(affordable, 1.0, double(std::min<std::int64_t>(wanted, 1 << 16))));

    if (copy) {
      const Batch roof = copier.run(size);
      m.copy_samples.insert(m.copy_samples.end(), roof.seconds.begin(), roof.seconds.end());
    }
    const Batch batch = worker.run(size);
    m.samples.insert(m.samples.end(), batch.seconds.begin(), batch.seconds.end());
    cycles += batch.sm_cycles;
    clocked += batch.sm_seconds;
    if (batch.throttle_reasons) m.throttle_reasons = m.throttle_reasons.value_or(0) | *batch.throttle_reasons;
    if (p.between) p.between();

    const auto have = std::int64_t(m.samples.size());
    if (have < at_least) continue;
    m.work = summarize(m.samples);
    bool done = have >= p.floor && p.now() - start >= p.cap_seconds;
    if (have >= p.samples) {
      done |= m.work.ci_percent <= p.ci_percent;
      if (have >= 2 * mark.n) {
        mark.level = m.work.ci_percent > p.plateau * mark.ci ? mark.level + 1 : 0;
        done |= mark.level == 2;  // once is chance, one time in ten
        mark = {have, m.work.ci_percent, mark.level};
      }
    }
    if (done) break;
  }

  if (copy) m.copy = summarize(m.copy_samples);
  if (clocked > 0) m.sm_hz = cycles / clocked;
  m.noisy = !(m.work.ci_percent <= p.ci_percent);
  const double highest = machine.sm_clock_max();
  m.throttled = m.throttle_reasons.value_or(0) != 0 || (m.sm_hz > 0 && m.sm_hz < p.slow_clock * highest);
  m.suspect = (copy && m.work.median * p.impossible < m.copy.median) ||
              std::ranges::any_of(m.samples, [](double s) { return !(s > 0); }) ||
              std::ranges::any_of(m.copy_samples, [](double s) { return !(s > 0); });
  return m;
}

void warm_up(Machine& machine, const Work& work, const Policy& p) {
  const double start = p.now();
  for (int batch = 1; p.now() - start < p.process_seconds; batch = std::min(2 * batch, 64))
    machine.time(work, batch, {});
}

std::string_view name(Mode mode) {
  constexpr std::string_view names[] = {"cold", "hot", "graph", "graph-hot"};
  return names[int(mode)];
}

std::string_view name(Flush flush) {
  constexpr std::string_view names[] = {"memset", "read", "none"};
  return names[int(flush)];
}

}  // namespace softmax::bench
