#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "kernels/device/simt/trace.hpp"
#include "kernels/host_machine.hpp"

namespace softmax::device {
namespace simt {
namespace {

// What can be had without swapping. The count of free pages leaves out what the page cache would give back.
std::size_t available_bytes() {
  std::ifstream memory("/proc/meminfo");
  std::size_t kilobytes = 0;
  for (std::string key; memory >> key;)
    if (key == "MemAvailable:" && memory >> kilobytes) return kilobytes << 10;
  return std::size_t(sysconf(_SC_AVPHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
}

class CpuDevice final : public HostMachine {
 public:
  std::string_view id() const override { return "cpu"; }
  std::string name() const override { return "CPU device"; }
  std::string unavailable() const override { return {}; }
  bool simulated() const override { return true; }
  std::string_view math() const override { return "ieee"; }
  std::vector<std::pair<std::string, std::string>> properties() const override {
    return {{"sm_count", std::to_string(Limits::kProcessors)}, {"l2_bytes", "0"}, {"compiler", "g++ " __VERSION__}};
  }
  std::size_t free_memory() const override { return available_bytes(); }
  std::size_t cache_bytes() const override { return 0; }

  void* allocate(std::size_t bytes, bool sparse) override {
    if (!sparse && bytes > available_bytes())
      throw OutOfMemory("out of memory: asked for " + std::to_string(bytes) + " bytes, " +
                        std::to_string(available_bytes()) + " are free on the CPU device");
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw OutOfMemory("out of memory: no room to map " + std::to_string(bytes) + " bytes on the CPU device");
    return memory;
  }
  void release(void* memory, std::size_t bytes, bool) noexcept override { munmap(memory, bytes); }
  int copies() const override { return 1; }
  void copy(int, void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

  Batch time(const Work& work, int samples, const Timing& timing) override {
    Batch batch;
    for (int i = 0; i < samples; ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (int l = 0; l < timing.launches; ++l) work(l % timing.sets);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      batch.seconds.push_back(took.count() / timing.launches);
    }
    return batch;
  }
  LaunchInfo last_launch() const override { return simt::last_launch(); }
  void schedule(Schedule s) override { set_schedule(s); }
  void compute_capability(int c) override { simt::compute_capability = c; }
  void watch(Watch level) override { set_watch(level); }
  Profile profile() const override { return simt::profile(); }
  void within(const std::vector<Region>& regions, const std::function<void()>& work) override {
    run_within(regions, work);
  }
};

}  // namespace

int compute_capability = 90;
}  // namespace simt

inline namespace SOFTMAX_BACKEND {
Machine& machine() {
  static simt::CpuDevice device;
  return device;
}
int current() { return 0; }
}  // namespace SOFTMAX_BACKEND

}  // namespace softmax::device
