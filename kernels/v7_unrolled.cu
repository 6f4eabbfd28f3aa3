// Idea: eight loads in flight: a register array is filled before its first use, then one update takes all eight.
// Against the previous: a block a row, one rescale for eight exps, plain shuffles, and a second pass that streams.
// Cost: 2 reads and 1 write of every element; 1 barrier; 64 floats of shared memory.
// Limit: loads stay 4 bytes wide; rows under 8 blocks' widths read their last element again, to issue all eight.
#include "kernels/prelude.hpp"

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kUnroll = 8;

struct MaxSum {
  float max, sum;  // sum of exp(x - max) over what was seen
};

// Neither of two empty pairs (-inf, 0) may make a NaN of -inf - -inf, so equal maxima are not rescaled at all.
__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
  const bool a_bigger = a.max > b.max;
  const MaxSum big = a_bigger ? a : b, small = a_bigger ? b : a;
  const float scale = small.max == big.max ? 1.0f : expf(small.max - big.max);
  return {big.max, big.sum + small.sum * scale};
}

// All lanes end with the result.
__device__ __forceinline__ MaxSum warp_merge(MaxSum mine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    mine = merge(mine, {__shfl_xor_sync(kAll, mine.max, step), __shfl_xor_sync(kAll, mine.sum, step)});
  return mine;
}

__global__ void softmax_v7(const float* __restrict__ in, float* __restrict__ out, long cols, long in_stride,
                           long out_stride) {
  SHARED(maxes, float[32]);
  SHARED(sums, float[32]);
  const unsigned thread = threadIdx.x, threads = blockDim.x, lane = thread % 32, warp = thread / 32;
  const float* x = in + blockIdx.x * in_stride;
  float* y = out + blockIdx.x * out_stride;
  float batch[kUnroll];

  MaxSum seen = {-INFINITY, 0};
  for (long first = thread; first < cols; first += long(threads) * kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) batch[u] = x[min(cols - 1, first + long(u) * threads)];
    float max = seen.max;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + long(u) * threads >= cols) batch[u] = -INFINITY;  // the last element, read again
      max = fmaxf(max, batch[u]);
    }
    // While everything seen is -inf, any finite reference makes their exps 0. A +inf makes a NaN of inf - inf, which stays.
    const float reference = max == -INFINITY ? 0 : max;
    seen.sum *= expf(seen.max - reference);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) seen.sum += expf(batch[u] - reference);
    seen.max = max;
  }

  seen = warp_merge(seen);
  if (lane == 0) {
    maxes[warp] = seen.max;
    sums[warp] = seen.sum;
  }
  __syncthreads();
  // Every warp merges the warps' pairs for itself: the same bits in each, and no second barrier.
  const bool used = lane < threads / 32;
  seen = warp_merge({used ? maxes[lane] : -INFINITY, used ? sums[lane] : 0});
  const float max = seen.max, sum = seen.sum;

  // Streaming hints: nobody reads these elements again. The first pass has none, so that L2 keeps the row for this one.
  for (long first = thread; first < cols; first += long(threads) * kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) batch[u] = __ldcs(&x[min(cols - 1, first + long(u) * threads)]);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + long(u) * threads < cols) __stcs(&y[first + long(u) * threads], expf(batch[u] - max) / sum);
  }
}

void launch(const softmax::Problem& p) {
  softmax::device::launch(softmax_v7, {.blocks = unsigned(p.rows), .threads = unsigned(p.block), .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), p.cols, p.in_stride,
                          p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(7, "v7_unrolled", "online: a block a row, eight loads in flight, streaming hints", launch,
               .algorithm = softmax::Algorithm::online, .summation = softmax::Summation::block_warp, .reads = 2)
