// Accesses that nothing orders. A shuffle or a vote orders no memory; a barrier, a fence with an atomic, or grid.sync
// does. Where the two sides stand on different lines the other one has a mark too.
#include "properties/faults/skeleton.hpp"

namespace {

using namespace softmax::faults;
namespace cg = cooperative_groups;

__global__ void reads_too_early(Args a) {
  SHARED(maxima, float[32]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = warp_max(max_of(x, 0, a.cols));
  if (lane() == 0) maxima[warp()] = max;                               // other side
  for (unsigned w = 0; w < warps(); ++w) max = fmaxf(max, maxima[w]);  // fault: race
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2020, reads_too_early, 128, "no barrier before the warps' maxima are read")

__global__ void reuses_too_early(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = warp_max(max_of(x, 0, a.cols));
  if (lane() == 0) words[warp()] = max;
  __syncthreads();
  for (unsigned w = 0; w < warps(); ++w) max = fmaxf(max, words[w]);  // other side
  float sum = warp_sum(sum_of(x, 0, a.cols, max));
  if (lane() == 0) words[warp()] = sum;  // fault: race
  __syncthreads();
  sum = 0;
  for (unsigned w = 0; w < warps(); ++w) sum += words[w];
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2021, reuses_too_early, 128, "the maxima's array takes the sums, without a barrier between")

__global__ void tree_without_barriers(Args a) {
  SHARED(tree, float[128]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const unsigned t = threadIdx.x;
  tree[t] = max_of(x, 0, a.cols);
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2)
    if (t < step) tree[t] = fmaxf(tree[t], tree[t + step]);  // fault: race
  __syncthreads();
  const float max = tree[0], sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2022, tree_without_barriers, 128, "a tree without a barrier a step")

// Warp 0 finds log(sum of exp) for all and goes on to the next row while the others still write.
__global__ void next_row_too_early(Args a) {
  SHARED(log_sum, float);
  for (int row = 0; row < a.rows; ++row) {
    const float* x = a.in + row * a.in_stride;
    float* y = a.out + row * a.out_stride;
    if (warp() == 0) {
      float max = -INFINITY, sum = 0;
      for (long i = lane(); i < a.cols; i += 32) max = fmaxf(max, x[i]);
      max = warp_max(max);
      for (long i = lane(); i < a.cols; i += 32) sum += expf(x[i] - max);
      sum = warp_sum(sum);
      if (lane() == 0) log_sum = max + logf(sum);  // fault: race
    }
    __syncthreads();
    const float all = log_sum;  // other side
    for (long i = threadIdx.x; i < a.cols; i += blockDim.x) y[i] = expf(x[i] - all);
  }
}
FAULT(2023, next_row_too_early, 64, "hands a word to the next row while others read it", .shared_rows = true)

__global__ void warp_tree_without_syncwarp(Args a) {
  SHARED(tree, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  tree[lane()] = max_of(x, 0, a.cols);
  __syncwarp();
  for (unsigned step = 16; step > 0; step /= 2)
    if (lane() < step) tree[lane()] = fmaxf(tree[lane()], tree[lane() + step]);  // fault: race
  __syncwarp();
  const float max = tree[0], sum = warp_sum(sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2024, warp_tree_without_syncwarp, 32, "a warp's tree as before Volta, without volatile")

__global__ void trusts_a_shuffle(Args a) {
  SHARED(maxima, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = max_of(x, 0, a.cols);
  maxima[lane()] = max;  // other side
  max = fmaxf(max, __shfl_xor_sync(kAll, max, 1));
  for (unsigned l = 0; l < 32; l += 2) max = fmaxf(max, maxima[l]);  // fault: race
  const float sum = warp_sum(sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2025, trusts_a_shuffle, 32, "takes a shuffle for a barrier")

__global__ void syncs_the_warp_alone(Args a) {
  SHARED(words, float[32]);
  SHARED(total, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  if (threadIdx.x == 0) total = sum;  // other side
  __syncwarp();
  const float all = total;  // fault: race
  write(y, x, 0, a.cols, max, all);
}
FAULT(2026, syncs_the_warp_alone, 64, "a warp barrier where the block needs one")

__global__ void adds_without_atomics(Args a) {
  SHARED(words, float[32]);
  SHARED(total, float);
  const float* x = a.in + blockIdx.x * a.in_stride;
  if (threadIdx.x == 0) total = 0;
  const float max = block_max(words, max_of(x, 0, a.cols));
  const float sum = warp_sum(sum_of(x, 0, a.cols, max));
  if (lane() == 0) total += sum;  // fault: race
  __syncthreads();
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, total);
}
FAULT(2027, adds_without_atomics, 128, "warps add to one word, each for itself")

__global__ void reads_an_atomic_plainly(Args a) {
  SHARED(words, float[32]);
  SHARED(best, int);
  const float* x = a.in + blockIdx.x * a.in_stride;
  if (threadIdx.x == 0) best = key(-INFINITY);
  __syncthreads();
  atomicMax(&best, key(max_of(x, 0, a.cols)));  // other side
  const float max = from_key(best);             // fault: race
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2028, reads_an_atomic_plainly, 64, "atomicMax, and no barrier before the result is read")

// A thread looks at the columns that its neighbour warp staged.
__global__ void one_buffer_too_few(Args a) {
  SHARED(stage, float[64]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const unsigned t = threadIdx.x;
  float max = -INFINITY;
  for (long first = 0; first < a.cols; first += blockDim.x) {
    stage[t] = first + t < a.cols ? x[first + t] : -INFINITY;  // fault: race
    __syncthreads();
    max = fmaxf(max, stage[t ^ 32]);  // other side
  }
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2029, one_buffer_too_few, 64, "one barrier a round, but a single buffer")

// Both blocks of a row leave their maximum in one word, and each takes what it finds there for the other's.
__global__ void blocks_share_a_word(Args a) {
  SHARED(words, float[32]);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) a.partial[row] = mine;  // fault: race
  cg::this_grid().sync();
  const float max = fmaxf(mine, a.partial[row]), sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
FAULT(2030, blocks_share_a_word, 64, "two blocks a row, one word for the maxima of both", .blocks = 2,
      .cooperative = true)

// Two blocks a row find its maximum together. Each publishes its own and waits for the other's.
__global__ void flag_without_release(Args a) {
  SHARED(words, float[32]);
  SHARED(both, float);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2, other = blockIdx.x ^ 1;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;  // other side
    atomicExch(&a.counter[blockIdx.x], 1);
    while (atomicAdd(&a.counter[other], 0) == 0) __nanosleep(20);
    __threadfence();
    both = fmaxf(mine, a.partial[other]);  // fault: race
  }
  __syncthreads();
  const float max = both, sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
FAULT(2031, flag_without_release, 64, "no fence before the flag is raised", .blocks = 2, .cooperative = true,
      .cleared = true)

__global__ void flag_without_acquire(Args a) {
  SHARED(words, float[32]);
  SHARED(both, float);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2, other = blockIdx.x ^ 1;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;  // other side
    __threadfence();
    atomicExch(&a.counter[blockIdx.x], 1);
    while (atomicAdd(&a.counter[other], 0) == 0) __nanosleep(20);
    both = fmaxf(mine, a.partial[other]);  // fault: race
  }
  __syncthreads();
  const float max = both, sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
FAULT(2032, flag_without_acquire, 64, "no fence after the flag was seen", .blocks = 2, .cooperative = true,
      .cleared = true)

// The block that comes last does the rest of the row.
__global__ void last_block_without_release(Args a) {
  SHARED(words, float[32]);
  SHARED(last, bool);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;  // other side
    last = atomicAdd(&a.counter[row], 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  const float max = fmaxf(a.partial[2 * row], a.partial[2 * row + 1]);  // fault: race
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2033, last_block_without_release, 64, "no fence before the block counts itself", .blocks = 2, .cleared = true)

__global__ void last_block_without_acquire(Args a) {
  SHARED(words, float[32]);
  SHARED(last, bool);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;  // other side
    __threadfence();
    last = atomicAdd(&a.counter[row], 1) == 1;
  }
  __syncthreads();
  if (!last) return;
  const float max = fmaxf(a.partial[2 * row], a.partial[2 * row + 1]);  // fault: race
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2034, last_block_without_acquire, 64, "no fence after the block counted itself", .blocks = 2, .cleared = true)

__global__ void fences_for_the_block_alone(Args a) {
  SHARED(words, float[32]);
  SHARED(last, bool);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;  // other side
    __threadfence_block();
    last = atomicAdd(&a.counter[row], 1) == 1;
    __threadfence_block();
  }
  __syncthreads();
  if (!last) return;
  const float max = fmaxf(a.partial[2 * row], a.partial[2 * row + 1]);  // fault: race
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, 0, a.cols, max, sum);
}
FAULT(2038, fences_for_the_block_alone, 64, "__threadfence_block where the other side is another block", .blocks = 2,
      .cleared = true)

__global__ void phases_without_grid_sync(Args a) {
  SHARED(words, float[32]);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) a.partial[blockIdx.x] = mine;  // other side
  __syncthreads();
  const float max = fmaxf(a.partial[2 * row], a.partial[2 * row + 1]);  // fault: race
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
FAULT(2035, phases_without_grid_sync, 64, "a block's barrier where the grid needs one", .blocks = 2,
      .cooperative = true)

__global__ void cluster_reads_too_early(Args a) {
  SHARED(words, float[32]);
  SHARED(published, float);
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) published = mine;  // other side
  __syncthreads();
  const float max = fmaxf(mine, *cluster.map_shared_rank(&published, half ^ 1));  // fault: race
  cluster.sync();
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
FAULT(2036, cluster_reads_too_early, 64, "a block's barrier where the cluster needs one", .blocks = 2, .cluster = true)

}  // namespace
