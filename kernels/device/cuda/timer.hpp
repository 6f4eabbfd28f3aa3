#pragma once
// How launches are timed on a GPU: events, what lies between them, and the kernels that only move bytes.

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "kernels/device/cuda/check.hpp"
#include "kernels/machine.hpp"

namespace softmax::device::cuda {

struct Free {
  void operator()(void* p) const { cudaFree(p); }
};
using Memory = std::unique_ptr<void, Free>;
// Throws OutOfMemory with both sizes.
Memory allocate_bytes(std::size_t bytes);
int attribute(cudaDeviceAttr which);

class Timer {
 public:
  Timer();
  ~Timer();
  Timer(const Timer&) = delete;

  cudaStream_t stream() const { return stream_; }
  Batch time(const Work&, int samples, const Timing&);

  void empty_cache(Flush, int sample = 0);

  static constexpr int kCopies = 2;
  void copy(int way, void* to, const void* from, std::size_t bytes);
  void read(const void* from, std::size_t bytes);
  void write(void* to, std::size_t bytes);
  void nothing();

 private:
  struct Event;
  void hold(double seconds);  // keeps the GPU busy, so that the host can enqueue ahead of it

  cudaStream_t stream_ = nullptr;
  std::vector<std::unique_ptr<Event>> events_;
  Memory flush_, sink_, stamps_;
  int processors_;
  std::size_t flush_bytes_;
};

}  // namespace softmax::device::cuda
