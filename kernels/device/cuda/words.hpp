#pragma once
// The GPU: the words are nvcc's own, and a launch goes through the runtime.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/device/cuda/check.hpp"
#include "kernels/device/cuda/hopper.hpp"
#include "kernels/machine.hpp"

#define SHARED(name, ...)          \
  using name##_type = __VA_ARGS__; \
  __shared__ name##_type name
// One symbol for all types, because `extern __shared__` names one thing in a program.
#define SHARED_DYNAMIC(name, ...)                                  \
  extern __shared__ __align__(128) unsigned char softmax_shared[]; \
  auto* const name = reinterpret_cast<__VA_ARGS__*>(softmax_shared)

namespace softmax::device {
inline namespace SOFTMAX_BACKEND {

struct Grid {
  dim3 blocks, threads;
  std::size_t shared = 0;  // dynamic, bytes a block
  void* stream = nullptr;
  bool cooperative = false;
  unsigned cluster = 1;
  bool overlap = false;  // may begin before the launch ahead of it ends: see grid_dependency_wait
};

// Starts the kernel; `function` is its address, `arguments` point at what it takes.
void launch(const void* function, const Grid&, void** arguments);

template <class... P, class... A>
void launch(void (*kernel)(P...), const Grid& grid, A... args) {
  auto start = [&](P... values) {
    void* arguments[] = {&values...};
    launch(reinterpret_cast<const void*>(kernel), grid, arguments);
  };
  start(P(args)...);
}

// Blocks of such a launch that can be resident on the whole machine at once; of clusters, those of whole ones. 0 if there
// is no room for any. The number of blocks in `grid` does not matter.
int resident_blocks(const void* function, const Grid&);
template <class... P>
int resident_blocks(void (*kernel)(P...), const Grid& grid) {
  return resident_blocks(reinterpret_cast<const void*>(kernel), grid);
}

struct Limits {
  int multiprocessors, shared_per_block;  // shared_per_block: bytes that a block can ask for
  int compute_capability;                 // 90 is 9.0
};
const Limits& limits();  // of the current GPU; the reference is the calling thread's

Machine& machine();
int current();  // which GPU of the runtime's this thread works on

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device
