// Reads of words that nobody wrote, and outputs that nobody writes.
#include "properties/faults/skeleton.hpp"

namespace {

using namespace softmax::faults;

__global__ void all_32_partials(Args a) {
  SHARED(maxima, float[32]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = warp_max(max_of(x, 0, a.cols));
  if (lane() == 0) maxima[warp()] = max;
  __syncthreads();
  max = warp_max(maxima[lane()]);  // fault: uninitialised
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2040, all_32_partials, 128, "four warps write, 32 lanes read")

__global__ void accumulates_into_the_output(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) y[i] += expf(x[i] - max) / sum;  // fault: uninitialised
}
FAULT(2041, accumulates_into_the_output, 64, "takes the output for zeros")

__global__ void workspace_is_not_zero(Args a) {
  SHARED(words, float[32]);
  SHARED(total, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  if (threadIdx.x == 0) {
    const float before = a.partial[blockIdx.x];  // fault: uninitialised
    total = a.partial[blockIdx.x] = before + sum;
  }
  __syncthreads();
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, total);
}
FAULT(2042, workspace_is_not_zero, 64, "takes the workspace for zeros")

__global__ void counter_is_not_zero(Args a) {
  SHARED(words, float[32]);
  SHARED(last, bool);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;
    __threadfence();
    last = atomicAdd(&a.counter[row], 1) == 1;  // fault: uninitialised
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  const float max = fmaxf(a.partial[2 * row], a.partial[2 * row + 1]);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2043, counter_is_not_zero, 64, "counts blocks from whatever was there", .blocks = 2)

__global__ void shared_sum_is_not_zero(Args a) {
  SHARED(words, float[32]);
  SHARED(total, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = warp_sum(sum_of(x, 0, a.cols, max));
  if (lane() == 0) atomicAdd(&total, sum);  // fault: uninitialised
  __syncthreads();
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, total);
}
FAULT(2044, shared_sum_is_not_zero, 64, "atomics on a shared word that nobody sets")

// The memory is there, in whole vectors; the last one's end is not staged.
__global__ void tail_of_the_last_vector(Args a) {
  SHARED(words, float[32]);
  SHARED_DYNAMIC(row, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) row[i] = x[i];
  __syncthreads();
  const float4* vectors = reinterpret_cast<const float4*>(row);
  float max = -INFINITY;
  for (long i = threadIdx.x; i < (a.cols + 3) / 4; i += blockDim.x) {
    const float4 v = vectors[i];  // fault: uninitialised
    max = fmaxf(max, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(row, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, row, 0, a.cols, max, sum);
}
FAULT(2045, tail_of_the_last_vector, 64, "reads staged columns in whole vectors", .dynamic = 4)

__global__ void last_column_is_missing(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols - 1, max, sum);  // fault: never written
}
FAULT(2046, last_column_is_missing, 64, "stops a column early")

__global__ void tail_is_missing(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  for (long i = threadIdx.x; i < a.cols / 2; i += blockDim.x)  // fault: never written
    for (long k = 2 * i; k < 2 * i + 2; ++k) y[k] = expf(x[k] - max) / sum;
}
FAULT(2047, tail_is_missing, 64, "two columns a thread, without a tail")

}  // namespace
