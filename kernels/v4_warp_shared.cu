// Idea: two levels: shuffles fold each warp, shared memory hands at most 32 results to thread 0, which folds them.
// Against the previous: any multiple of 32 works on a row, and a reduction costs 2 barriers, not V2's log2(block).
// Cost: 3 reads and 1 write of every element; 4 barriers; 2 x 5 shuffles; 64 floats of shared memory.
// Limit: while thread 0 folds the warps' values, all others wait.
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

__global__ void softmax_v4(const float* __restrict__ in, float* __restrict__ out, long cols, long in_stride,
                           long out_stride) {
  // An array for each reduction: with one for both, a third barrier would have to part them.
  SHARED(maxes, float[32]);
  SHARED(sums, float[32]);
  const unsigned thread = threadIdx.x, threads = blockDim.x, lane = thread % 32, warp = thread / 32,
                 warps = threads / 32;
  const float* x = in + blockIdx.x * in_stride;
  float* y = out + blockIdx.x * out_stride;

  float max = -INFINITY;
  for (long i = thread; i < cols; i += threads) max = fmaxf(max, x[i]);
  max = warp_max(max);
  if (lane == 0) maxes[warp] = max;
  __syncthreads();
  if (thread == 0)
    for (unsigned w = 1; w < warps; ++w) maxes[0] = fmaxf(maxes[0], maxes[w]);
  __syncthreads();
  max = maxes[0];

  float sum = 0;
  for (long i = thread; i < cols; i += threads) sum += expf(x[i] - max);
  sum = warp_sum(sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (thread == 0)
    for (unsigned w = 1; w < warps; ++w) sums[0] += sums[w];
  __syncthreads();
  sum = sums[0];

  for (long i = thread; i < cols; i += threads) y[i] = expf(x[i] - max) / sum;
}

void launch(const softmax::Problem& p) {
  softmax::device::launch(softmax_v4, {.blocks = unsigned(p.rows), .threads = unsigned(p.block), .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), p.cols, p.in_stride,
                          p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(4, "v4_warp_shared", "safe: a block a row, shuffles in each warp, then shared memory", launch,
               .algorithm = softmax::Algorithm::safe, .summation = softmax::Summation::block_serial, .reads = 3)
