#pragma once
// A machine for the harness's own tests: host memory, a clock that only advances as told, times from a script.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "benchmarks/measure.hpp"
#include "kernels/host_machine.hpp"
#include "kernels/machine.hpp"

namespace softmax::bench {

class FakeMachine : public HostMachine {
 public:
  // The seconds that the i-th timed call takes, and what a sample costs beside (a flush).
  std::function<double(int)> script = [](int) { return 1e-3; };
  double overhead = 0;
  bool is_simulated = false;
  std::size_t free_bytes = std::size_t{1} << 40;
  std::size_t cache = 1024;
  int copy_ways = 2;
  double copy_seconds = 5e-4;
  std::function<double(int)> way_seconds = [this](int) { return copy_seconds; };
  std::function<void(int way, void* to, const void* from, std::size_t bytes)> copying =
      [](int, void* to, const void* from, std::size_t bytes) {
        if (bytes > 0) std::memcpy(to, from, bytes);  // of null pointers else
      };
  // What hardware_counters() says of a launch; none: it cannot be read.
  std::vector<std::pair<std::string_view, double>> hardware;
  std::vector<std::string> unknown_counters;

  Profile counted;  // what profile() says after a launch that is watched
  Watch watching = Watch::check;
  std::vector<Watch> watches;  // as asked for

  double clock = 0;  // seconds
  int timed = 0;     // calls that time() made, copies excepted
  double sm_hz = 0;  // 0: cannot be read
  std::optional<std::uint64_t> throttle_reasons;
  bool timed_while_watched = false;
  bool in_time = false;  // now
  int allocations = 0, asked_hardware = 0;
  std::size_t live = 0, most_live = 0;  // bytes
  std::vector<int> batches;             // samples of each call of time()
  std::vector<Timing> timings;
  std::vector<std::string> profiles;  // names that profiled() was told

  // The policy of this machine, on its own clock, and without warm-up, so that scripts start at the first sample.
  Policy cold_start() {
    Policy p = policy(*this);
    p.process_seconds = 0;
    p.warm_launches = 0;
    p.warm_seconds = 0;
    p.now = [this] { return clock; };
    return p;
  }

  std::string_view id() const override { return "fake"; }
  std::string name() const override { return "Fake 9000"; }
  std::string unavailable() const override { return {}; }
  bool simulated() const override { return is_simulated; }
  std::string_view math() const override { return "ieee"; }
  std::vector<std::pair<std::string, std::string>> properties() const override {
    return {{"cc", "9.0"}, {"seed", "twice"}};
  }
  std::size_t free_memory() const override { return free_bytes; }
  std::size_t cache_bytes() const override { return cache; }

  void* allocate(std::size_t bytes, bool) override {
    ++allocations;
    most_live = std::max(most_live, live += bytes);
    return std::malloc(bytes);
  }
  void release(void* memory, std::size_t bytes, bool) noexcept override {
    live -= bytes;
    std::free(memory);
  }
  int copies() const override { return copy_ways; }
  void copy(int way, void* to, const void* from, std::size_t bytes) override {
    copied_ = way;
    copying(way, to, from, bytes);
  }
  Batch time(const Work& work, int samples, const Timing& timing) override {
    batches.push_back(samples);
    timings.push_back(timing);
    Batch batch;
    const double start = clock;
    in_time = true;
    if (watching != Watch::off) timed_while_watched = true;
    for (int i = 0; i < samples; ++i) {
      copied_.reset();
      for (int l = 0; l < timing.launches; ++l) work(l % timing.sets);
      batch.seconds.push_back(copied_ ? way_seconds(*copied_) : script(timed++));
      clock += std::max(batch.seconds.back(), 0.0) * timing.launches + overhead;
    }
    in_time = false;
    batch.sm_seconds = sm_hz > 0 ? clock - start : 0;
    batch.sm_cycles = sm_hz * batch.sm_seconds;
    batch.throttle_reasons = throttle_reasons;
    return batch;
  }
  void profiled(const std::string& name, const std::function<void()>& work) override {
    profiles.push_back(name);
    work();
  }
  std::vector<std::string> counters_left_out() const override { return unknown_counters; }
  std::vector<std::pair<std::string_view, double>> hardware_counters(const std::function<void()>& launch) override {
    ++asked_hardware;
    if (hardware.empty()) throw std::runtime_error("no permission");
    launch();
    return hardware;
  }
  double peak_bandwidth() const override { return 1e9; }
  double sm_clock_max() const override { return 2e9; }
  void watch(Watch how) override { watches.push_back(watching = how); }
  Profile profile() const override { return watching == Watch::off ? Profile{} : counted; }
  LaunchInfo last_launch() const override {
    return {.blocks = 1, .threads = 32, .shared_bytes = 0, .registers = 40, .blocks_per_sm = 16};
  }

 private:
  std::optional<int> copied_;  // by which way
};

}  // namespace softmax::bench
