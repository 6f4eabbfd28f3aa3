#include "kernels/device/cuda/driver.hpp"

#include <cuda_runtime.h>
#include <dlfcn.h>

namespace softmax::device::cuda {
namespace {

// NVML's own numbers: not every toolkit brings nvml.h.
constexpr int kSuccess = 0, kGpuSensor = 0;
// Software power cap, hardware slowdown, software and hardware thermal slowdown, hardware power brake.
constexpr std::uint64_t kSlowing = 0x04 | 0x08 | 0x20 | 0x40 | 0x80;

// nullptr if this library is too old, or too new, to have any of them.
template <class Function, class... Names>
Function* find(void* library, Names... names) {
  void* found = nullptr;
  ((found = found ? found : dlsym(library, names)), ...);
  return reinterpret_cast<Function*>(found);
}

// Calls nvmlDeviceGet...(device, what..., &value).
template <class T, class... What>
std::optional<T> ask(void* library, void* device, const char* name, What... what) {
  T value{};
  auto* get = device ? find<int(void*, What..., T*)>(library, name) : nullptr;
  if (!get || get(device, what..., &value) != kSuccess) return {};
  return value;
}

}  // namespace

Driver::Driver(const std::string& pci_bus_id, const char* library) {
  library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    why_ = std::string("no NVML: ") + dlerror();
    return;
  }
  auto* init = find<int()>(library_, "nvmlInit_v2");
  auto* by_bus = find<int(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  auto* text = find<const char*(int)>(library_, "nvmlErrorString");
  if (!init || !by_bus || !text) {
    why_ = std::string(library) + " is no NVML that we know";
  } else if (const int error = init(); error != kSuccess) {
    why_ = std::string("nvmlInit: ") + text(error);
  } else if (const int unknown = by_bus(pci_bus_id.c_str(), &device_); unknown != kSuccess) {
    device_ = nullptr;
    why_ = "NVML knows no GPU at '" + pci_bus_id + "': " + text(unknown);
  }
}

std::optional<std::uint64_t> Driver::throttle_reasons() const {
  using Bits = unsigned long long;
  auto bits = ask<Bits>(library_, device_, "nvmlDeviceGetCurrentClocksEventReasons");
  if (!bits) bits = ask<Bits>(library_, device_, "nvmlDeviceGetCurrentClocksThrottleReasons");  // before driver 535
  if (!bits) return {};
  return *bits & kSlowing;
}

Condition Driver::condition() const {
  auto get = [this](const char* name, auto... what) { return ask<unsigned>(library_, device_, name, what...); };
  const auto milliwatts = get("nvmlDeviceGetEnforcedPowerLimit");
  return {.celsius = get("nvmlDeviceGetTemperature", kGpuSensor),
          .watt_limit = milliwatts ? std::optional(*milliwatts * 1e-3) : std::nullopt};
}

const Driver& driver() {
  static const Driver the_driver = [] {
    char bus_id[32] = "";
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0) != cudaSuccess) cudaGetLastError();
    return Driver(bus_id);
  }();
  return the_driver;
}

}  // namespace softmax::device::cuda
