#include "kernels/machine.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "kernels/device/simt/executor.hpp"
#include "kernels/input.hpp"

namespace softmax::device {
namespace simt {
namespace {

std::size_t available_bytes() { return std::size_t(sysconf(_SC_AVPHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE)); }

class CpuDevice final : public Machine {
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
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void fill(void* to, unsigned char value, std::size_t bytes) override { std::memset(to, value, bytes); }
  void fill_noise(float* to, std::size_t count, std::uint64_t seed) override {
    for (std::size_t i = 0; i < count; ++i) to[i] = noise(seed, i);
  }
  std::vector<double> row_sums(const float* matrix, std::int64_t rows, std::int64_t cols,
                               std::int64_t stride) override {
    std::vector<double> sums(std::size_t(rows), 0.0);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) sums[std::size_t(r)] += matrix[r * stride + c];
    return sums;
  }
  int copies() const override { return 1; }
  void copy(int, void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

  void synchronize() override {}
  std::vector<double> time(const std::function<void()>& work, int samples, bool) override {
    std::vector<double> seconds;
    for (int i = 0; i < samples; ++i) {
      const auto start = std::chrono::steady_clock::now();
      work();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return seconds;
  }
  LaunchInfo last_launch() const override { return simt::last_launch(); }
  void schedule(Schedule s) override { set_schedule(s); }
};

}  // namespace
}  // namespace simt

inline namespace SOFTMAX_BACKEND {
Machine& machine() {
  static simt::CpuDevice device;
  return device;
}
}  // namespace SOFTMAX_BACKEND

}  // namespace softmax::device
