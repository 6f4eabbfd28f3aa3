// Accesses to what is not the kernel's, and vectors that are not aligned.
#include "properties/faults/skeleton.hpp"

namespace {

using namespace softmax::faults;

__global__ void stores_past_the_row(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  for (long i = threadIdx.x; i <= a.cols; i += blockDim.x)
    y[i] = i < a.cols ? expf(x[i] - max) / sum : 0;  // fault: out of bounds
}
FAULT(2000, stores_past_the_row, 64, "ends each row with a zero")

__global__ void loads_past_the_end(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = -INFINITY;
  for (long i = threadIdx.x; i < a.cols; i += 2 * blockDim.x)
    max = fmaxf(max, fmaxf(x[i], x[i + blockDim.x]));  // fault: out of bounds
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2001, loads_past_the_end, 64, "unrolled by two, without a tail")

__global__ void reads_the_padding(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  float sum = 0;
  for (long i = threadIdx.x; i < a.in_stride; i += blockDim.x) sum += expf(x[i] - max);  // fault: out of bounds
  sum = block_sum(words, sum);
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2002, reads_the_padding, 64, "takes the stride for the width")

// Stores are one round late, to leave time for the exp; the first round has nothing to store yet.
__global__ void stores_before_the_start(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  const long threads = blockDim.x;
  float ready = 0;
  for (long i = threadIdx.x; i < a.cols + threads; i += threads) {
    y[i - threads] = ready;  // fault: out of bounds
    if (i < a.cols) ready = expf(x[i] - max) / sum;
  }
}
FAULT(2003, stores_before_the_start, 64, "a software pipeline without a prologue")

__global__ void stores_into_the_input(Args a) {
  SHARED(words, float[32]);
  float* x = const_cast<float*>(a.in) + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  float sum = 0;
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) {
    const float e = expf(x[i] - max);
    x[i] = e;  // fault: out of bounds
    sum += e;
  }
  sum = block_sum(words, sum);
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) y[i] = x[i] / sum;
}
FAULT(2004, stores_into_the_input, 64, "keeps the exponentials where the row was")

// A sentinel behind the last of four warps.
__global__ void one_past_a_shared_array(Args a) {
  SHARED(maxima, float[4]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = warp_max(max_of(x, 0, a.cols));
  if (lane() == 0) maxima[warp()] = max;
  if (threadIdx.x == 0) maxima[warps()] = -INFINITY;  // fault: out of bounds
  __syncthreads();
  for (unsigned w = 0; w < warps(); ++w) max = fmaxf(max, maxima[w]);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2005, one_past_a_shared_array, 128, "a sentinel behind a full array")

// Whatever lies behind `maxima` takes part; on a GPU that may well be `sums`.
__global__ void reads_the_next_array(Args a) {
  SHARED(maxima, float[4]);
  SHARED(sums, float[4]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = warp_max(max_of(x, 0, a.cols));
  if (lane() == 0) maxima[warp()] = max, sums[warp()] = -INFINITY;
  __syncthreads();
  for (unsigned w = 0; w <= warps(); ++w) max = fmaxf(max, maxima[w]);  // fault: out of bounds
  __syncthreads();
  const float sum = block_sum(sums, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2006, reads_the_next_array, 128, "one maximum too many, out of the array behind")

// The launch counts elements where it should count bytes.
__global__ void too_little_dynamic_memory(Args a) {
  SHARED(words, float[32]);
  SHARED_DYNAMIC(row, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  float max = -INFINITY;
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) {
    const float v = x[i];
    row[i] = v;  // fault: out of bounds
    max = fmaxf(max, v);
  }
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(row, 0, a.cols, max));
  write(y, row, 0, a.cols, max, sum);
}
FAULT(2007, too_little_dynamic_memory, 64, "a row in dynamic shared memory of a quarter of its size", .dynamic = 1)

__global__ void misaligned_load(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float4* vectors = reinterpret_cast<const float4*>(x);
  float max = max_of(x, a.cols / 4 * 4, a.cols);
  for (long i = threadIdx.x; i < a.cols / 4; i += blockDim.x) {
    const float4 v = vectors[i];  // fault: misaligned
    max = fmaxf(max, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2008, misaligned_load, 64, "float4 loads, whatever the stride")

__global__ void misaligned_store(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  float2* pairs = reinterpret_cast<float2*>(y);
  for (long i = threadIdx.x; i < a.cols / 2; i += blockDim.x) {
    const float first = expf(x[2 * i] - max) / sum, second = expf(x[2 * i + 1] - max) / sum;
    pairs[i] = make_float2(first, second);  // fault: misaligned
  }
  write(y, x, a.cols / 2 * 2, a.cols, max, sum);
}
FAULT(2009, misaligned_store, 64, "float2 stores, whatever the stride")

}  // namespace
