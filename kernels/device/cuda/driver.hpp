#pragma once
// What the driver says of the GPU while it works: NVML, loaded when it is asked for. Host side only.

#include <cstdint>
#include <optional>
#include <string>

namespace softmax::device::cuda {

// Of this moment. What the driver does not say is absent.
struct Condition {
  std::optional<unsigned> celsius;
  std::optional<double> watt_limit;
};

class Driver {
 public:
  // By its place on the bus: NVML numbers GPUs in an order of its own. Throws nothing.
  explicit Driver(const std::string& pci_bus_id, const char* library = "libnvidia-ml.so.1");

  const std::string& unavailable() const { return why_; }  // empty if it answers, else the reason in one line
  // Why the clocks are lower than they could be, as NVML's bits: only those that slow a program down, not that the GPU
  // is idle or that somebody set its clocks. Absent where the driver does not say. Microseconds; the rest may take longer.
  std::optional<std::uint64_t> throttle_reasons() const;
  Condition condition() const;

 private:
  std::string why_;
  void *library_ = nullptr, *device_ = nullptr;
};

// Of the GPU that this program uses. The first call loads the library.
const Driver& driver();

}  // namespace softmax::device::cuda
