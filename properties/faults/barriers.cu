// Barriers, shuffles and warp barriers that not all of those reach who are waited for. The mark of a barrier stands on
// the one that waits in vain.
#include "properties/faults/skeleton.hpp"

namespace {

using namespace softmax::faults;
namespace cg = cooperative_groups;

__global__ void barrier_in_a_branch(Args a) {
  SHARED(row, float[128]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const unsigned t = threadIdx.x;
  float max = -INFINITY, sum = 0;
  if (t < a.cols) {
    row[t] = x[t];
    __syncthreads();  // fault: barrier
    for (long i = 0; i < a.cols; ++i) max = fmaxf(max, row[i]);
    for (long i = 0; i < a.cols; ++i) sum += expf(row[i] - max);
  }
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2060, barrier_in_a_branch, 128, "only threads with a column reach the barrier")

__global__ void returns_before_a_barrier(Args a) {
  SHARED(row, float[128]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const unsigned t = threadIdx.x;
  if (t >= a.cols) return;
  row[t] = x[t];
  __syncthreads();  // fault: barrier
  float max = -INFINITY, sum = 0;
  for (long i = 0; i < a.cols; ++i) max = fmaxf(max, row[i]);
  for (long i = 0; i < a.cols; ++i) sum += expf(row[i] - max);
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2061, returns_before_a_barrier, 128, "threads without a column leave first")

__global__ void a_barrier_in_each_branch(Args a) {
  SHARED(words, float[32]);
  SHARED(published, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  if (warp() == 0) {
    if (lane() == 0) published = sum;
    __syncthreads();  // fault: barrier
  } else {
    __syncthreads();  // other side
    sum = published;
  }
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2062, a_barrier_in_each_branch, 64, "as many barriers on both ways, but not the same")

__global__ void barrier_in_an_uneven_loop(Args a) {
  SHARED(stage, float[64]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = -INFINITY;
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) {
    stage[threadIdx.x] = x[i];
    __syncthreads();  // fault: barrier
    max = fmaxf(max, stage[threadIdx.x]);
  }
  __syncthreads();  // other side
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2063, barrier_in_an_uneven_loop, 64, "a barrier a round, and not all threads have as many rounds")

// The peer may end while it is still being read.
__global__ void leaves_the_cluster_early(Args a) {
  SHARED(words, float[32]);
  SHARED(published, float);
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float mine = block_sum(words, sum_of(x, from, to, max));
  if (threadIdx.x == 0) published = mine;
  cluster.sync();
  const float sum = mine + *cluster.map_shared_rank(&published, half ^ 1);  // fault: barrier
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
FAULT(2064, leaves_the_cluster_early, 64, "no cluster.sync between the last remote read and the end", .blocks = 2,
      .cluster = true)

__global__ void caller_is_not_in_the_mask(Args a) {
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = max_of(x, 0, a.cols);
  max = fmaxf(max, __shfl_xor_sync(kAll, max, 16));
  for (int step = 8; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0x0000ffffu, max, step));  // fault: warp
  const float sum = warp_sum(sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2065, caller_is_not_in_the_mask, 32, "32 lanes under a mask of 16")

__global__ void lanes_have_returned(Args a) {
  const float* x = a.in + blockIdx.x * a.in_stride;
  if (threadIdx.x >= a.cols) return;
  float max = x[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(kAll, max, step));  // fault: warp
  const float sum = warp_sum(expf(x[threadIdx.x] - max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2066, lanes_have_returned, 32, "lanes without a column leave before a shuffle of all")

__global__ void lanes_do_not_exist(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = max_of(x, 0, a.cols);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(kAll, max, step));  // fault: warp
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2067, lanes_do_not_exist, 48, "a full mask in a warp of 16 threads")

__global__ void reads_an_unnamed_lane(Args a) {
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = warp_max(max_of(x, 0, a.cols)), sum = sum_of(x, 0, a.cols, max);
  sum += __shfl_xor_sync(kAll, sum, 16);
  if (lane() < 16)
    for (int step = 8; step > 0; step /= 2) sum += __shfl_down_sync(0x0000ffffu, sum, step);  // fault: warp
  sum = __shfl_sync(kAll, sum, 0);
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2068, reads_an_unnamed_lane, 32, "half a warp shuffles down, over its edge")

__global__ void width_of_24(Args a) {
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = warp_max(max_of(x, 0, a.cols));
  float sum = sum_of(x, 0, a.cols, max);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step, 24);  // fault: warp
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2069, width_of_24, 32, "a shuffle's width that is no power of two")

__global__ void half_a_warp_syncs(Args a) {
  SHARED(half, float[16]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = warp_max(max_of(x, 0, a.cols));
  float sum = sum_of(x, 0, a.cols, max);
  sum += __shfl_xor_sync(kAll, sum, 16);
  if (lane() < 16) {
    half[lane()] = sum;
    __syncwarp();  // fault: warp
    sum = 0;
    for (int l = 0; l < 16; ++l) sum += half[l];
  }
  __syncthreads();
  sum = __shfl_sync(kAll, sum, 0);
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2070, half_a_warp_syncs, 32, "half a warp waits for all of it")

__global__ void syncs_the_other_half(Args a) {
  SHARED(sums, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float max = warp_max(max_of(x, 0, a.cols));
  sums[lane()] = sum_of(x, 0, a.cols, max);
  __syncwarp(0x0000ffffu);  // fault: warp
  __syncwarp();
  float sum = 0;
  for (int l = 0; l < 32; ++l) sum += sums[l];
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2071, syncs_the_other_half, 32, "a warp barrier under a mask without the caller")

}  // namespace
