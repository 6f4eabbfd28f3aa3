// Idea: lanes of a warp hand values to each other without memory: __shfl_down_sync folds 32 of them in five steps.
// Against the previous: the block is one warp; neither shared memory nor a barrier is left.
// Cost: 3 reads and 1 write of every element; no barrier; 2 x 6 shuffles.
// Limit: a block of exactly 32; a multiprocessor holds 32 blocks, half of the 64 warps it has room for (sm_90).
#include "kernels/prelude.hpp"

namespace {

constexpr unsigned kAll = 0xffffffffu;

// Lane 0 ends with the result; the other lanes end with a part of it.
__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_down_sync(kAll, value, step));
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(kAll, value, step);
  return value;
}

__global__ void softmax_v3(const float* __restrict__ in, float* __restrict__ out, long cols, long in_stride,
                           long out_stride) {
  const unsigned lane = threadIdx.x;
  const float* x = in + blockIdx.x * in_stride;
  float* y = out + blockIdx.x * out_stride;

  float max = -INFINITY;
  for (long i = lane; i < cols; i += 32) max = fmaxf(max, x[i]);
  max = __shfl_sync(kAll, warp_max(max), 0);

  float sum = 0;
  for (long i = lane; i < cols; i += 32) sum += expf(x[i] - max);
  sum = __shfl_sync(kAll, warp_sum(sum), 0);

  for (long i = lane; i < cols; i += 32) y[i] = expf(x[i] - max) / sum;
}

void launch(const softmax::Problem& p) {
  softmax::device::launch(softmax_v3, {.blocks = unsigned(p.rows), .threads = 32, .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), p.cols, p.in_stride,
                          p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(3, "v3_warp", "safe: a warp a row, reductions by shuffle", launch, .blocks = {32},
               .algorithm = softmax::Algorithm::safe, .summation = softmax::Summation::warp, .reads = 3)
