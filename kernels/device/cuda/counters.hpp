#pragma once
// Hardware counters of one launch, by CUPTI's range profiler. The library is loaded when it is asked for: a program starts and
// times without it. Host side only.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace softmax::device::cuda {

struct Counter {
  std::string_view key;  // ours; counter_names() has it too where the CPU device counts the same
  const char* metric;    // CUPTI's
};
std::span<const Counter> counters();

class HardwareCounters {
 public:
  // An empty library is the toolkit's, else what the loader finds.
  explicit HardwareCounters(std::string library = {});
  ~HardwareCounters();

  // Empty if the GPU's counters can be read, else why not, in one line. Asks once, and leaves no profiler behind.
  const std::string& unavailable();

  // Each counter of one launch, in the order of counters(). Runs `before`, outside of what is counted, and `launch` once a
  // pass, on any stream of the current context: some five times. Throws std::runtime_error, of one line, and whatever the
  // two throw; no profiler is left on in any case.
  using Counts = std::vector<std::pair<std::string_view, double>>;
  Counts measure(const std::function<void()>& launch, const std::function<void()>& before = {});

  // What measure() left out, each with the reason.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // Of counters(), those that this CUPTI can schedule on a chip ("GH100"); none without CUPTI. Needs no GPU;
  // throws if CUPTI does not know the chip.
  std::vector<Counter> schedulable(const std::string& chip);

 private:
  struct Cupti;
  std::unique_ptr<Cupti> cupti_;
  std::string why_;
  bool asked_ = false, planned_ = false;
  std::vector<Counter> by_hardware_, by_code_;
  std::vector<std::string> left_out_;
};

}  // namespace softmax::device::cuda
