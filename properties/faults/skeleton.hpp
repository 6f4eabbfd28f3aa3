#pragma once
// What the faults share: the steps of a softmax, each of them right. A fault writes out the step that it gets wrong.

#include "kernels/prelude.hpp"

namespace softmax::faults {
inline namespace SOFTMAX_BACKEND {

constexpr unsigned kAll = 0xffffffffu;

struct Args {
  const float* in;
  float* out;
  float* partial;  // workspace: 32 floats, then 32 counters
  int* counter;
  int rows;
  long cols, in_stride, out_stride;
};
constexpr long kWorkspace = 32 * (sizeof(float) + sizeof(int));

__device__ __forceinline__ unsigned lane() { return threadIdx.x % 32; }
__device__ __forceinline__ unsigned warp() { return threadIdx.x / 32; }
__device__ __forceinline__ unsigned warps() { return (blockDim.x + 31) / 32; }

// The calling thread's share of columns [from, to).
__device__ __forceinline__ float max_of(const float* x, long from, long to) {
  float max = -INFINITY;
  for (long i = from + threadIdx.x; i < to; i += blockDim.x) max = fmaxf(max, x[i]);
  return max;
}
__device__ __forceinline__ float sum_of(const float* x, long from, long to, float max) {
  float sum = 0;
  for (long i = from + threadIdx.x; i < to; i += blockDim.x) sum += expf(x[i] - max);
  return sum;
}
__device__ __forceinline__ void write(float* y, const float* x, long from, long to, float max, float sum) {
  for (long i = from + threadIdx.x; i < to; i += blockDim.x) y[i] = expf(x[i] - max) / sum;
}

// All lanes of a full warp call; all get the result.
__device__ __forceinline__ float warp_max(float v) {
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAll, v, step));
  return v;
}
__device__ __forceinline__ float warp_sum(float v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(kAll, v, step);
  return v;
}

// All threads call, with a word of shared memory for each warp; all get the result, and the words are free again.
__device__ __forceinline__ float block_max(float* words, float v) {
  v = warp_max(v);
  if (lane() == 0) words[warp()] = v;
  __syncthreads();
  for (unsigned w = 0; w < warps(); ++w) v = fmaxf(v, words[w]);
  __syncthreads();
  return v;
}
__device__ __forceinline__ float block_sum(float* words, float v) {
  v = warp_sum(v);
  if (lane() == 0) words[warp()] = v;
  __syncthreads();
  v = 0;
  for (unsigned w = 0; w < warps(); ++w) v += words[w];
  __syncthreads();
  return v;
}

// Floats as integers of the same order, for atomicMax.
__device__ __forceinline__ int key(float v) {
  const int bits = int(__float_as_uint(v));
  return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
__device__ __forceinline__ float from_key(int k) { return __uint_as_float(unsigned(k >= 0 ? k : k ^ 0x7fffffff)); }

template <class = void>
__global__ void clear_counters(Args a) {
  a.counter[threadIdx.x] = 0;
}

// How a kernel is launched: `blocks` a row, or in all where `shared_rows` is true.
struct How {
  int blocks = 1;
  bool shared_rows = false, cooperative = false, cluster = false, cleared = false;
  int dynamic = 0;  // bytes of shared memory a column, in whole float4s
};

inline void launch(void (*kernel)(Args), const Problem& p, const How& how) {
  const Args args = {static_cast<const float*>(p.in),
                     static_cast<float*>(p.out),
                     static_cast<float*>(p.workspace),
                     static_cast<int*>(p.workspace) + 32,
                     int(p.rows),
                     p.cols,
                     p.in_stride,
                     p.out_stride};
  if (how.cleared) device::launch(clear_counters<>, {.blocks = 1, .threads = 32, .stream = p.stream}, args);
  device::launch(kernel,
                 {.blocks = unsigned(how.shared_rows ? how.blocks : how.blocks * p.rows),
                  .threads = unsigned(p.block),
                  .shared = std::size_t(how.dynamic * p.cols + 15) / 16 * 16,
                  .stream = p.stream,
                  .cooperative = how.cooperative,
                  .cluster = how.cluster ? unsigned(how.blocks) : 1},
                 args);
}

// Rows are few enough for the words of the workspace, whatever a kernel keeps there.
inline std::string supports(const Problem& p) { return p.rows <= 8 ? "" : "takes at most 8 rows"; }
inline std::int64_t workspace(const Problem&) { return kWorkspace; }

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::faults

// Registers the kernel function of that name for blocks of so many threads; then How, by name.
#define FAULT(version, kernel, threads, idea, ...)                                                                    \
  SOFTMAX_KERNEL(                                                                                                     \
      version, #kernel, idea,                                                                                         \
      [](const ::softmax::Problem& p) { ::softmax::faults::launch(kernel, p, ::softmax::faults::How{__VA_ARGS__}); }, \
      .blocks = {threads}, .algorithm = ::softmax::Algorithm::safe, .supports = ::softmax::faults::supports,          \
      .workspace = ::softmax::faults::workspace)
#define NEAR_MISS FAULT
