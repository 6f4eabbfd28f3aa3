// Near misses: each does right what a fault next door does wrong, and no check may report anything.
#include "properties/faults/skeleton.hpp"

namespace {

using namespace softmax::faults;
namespace cg = cooperative_groups;

__global__ void volatile_warp_tree(Args a) {
  SHARED(tree, float[32]);
  volatile float* v = tree;
  const float* x = a.in + blockIdx.x * a.in_stride;
  const float mine = max_of(x, 0, a.cols);
  v[lane()] = mine;
  __syncwarp();
  for (unsigned step = 16; step > 0; step /= 2) {
    if (lane() < step) v[lane()] = fmaxf(v[lane()], v[lane() + step]);
    __syncwarp();
  }
  const float max = v[0], sum = warp_sum(sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
NEAR_MISS(2100, volatile_warp_tree, 32, "a warp's tree with a warp barrier a step")

__global__ void last_block_with_both_fences(Args a) {
  SHARED(words, float[32]);
  SHARED(last, bool);
  const unsigned row = blockIdx.x / 4, part = blockIdx.x % 4;
  const float* x = a.in + row * a.in_stride;
  float max = block_max(words, max_of(x, a.cols * part / 4, a.cols * (part + 1) / 4));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = max;
    __threadfence();
    last = atomicAdd(&a.counter[row], 1) == 3;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  for (unsigned i = 0; i < 4; ++i) max = fmaxf(max, a.partial[4 * row + i]);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, 0, a.cols, max, sum);
}
NEAR_MISS(2101, last_block_with_both_fences, 64, "the last block of four reads what the others left", .blocks = 4,
          .cleared = true)

// A fence holds for those too whom a barrier brings behind it: thread 0 counts for all of them.
__global__ void every_thread_fences(Args a) {
  SHARED(words, float[32]);
  SHARED(last, bool);
  const unsigned row = blockIdx.x / 4, part = blockIdx.x % 4;
  const float* x = a.in + row * a.in_stride;
  float max = block_max(words, max_of(x, a.cols * part / 4, a.cols * (part + 1) / 4));
  if (threadIdx.x == blockDim.x - 1) a.partial[blockIdx.x] = max;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&a.counter[row], 1) == 3;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (unsigned i = 0; i < 4; ++i) max = fmaxf(max, a.partial[4 * row + i]);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, 0, a.cols, max, sum);
}
NEAR_MISS(2113, every_thread_fences, 64, "one thread leaves its result, another counts the block", .blocks = 4,
          .cleared = true)

__global__ void atomic_max_in_shared_memory(Args a) {
  SHARED(words, float[32]);
  SHARED(best, int);
  const float* x = a.in + blockIdx.x * a.in_stride;
  if (threadIdx.x == 0) best = key(-INFINITY);
  __syncthreads();
  atomicMax(&best, key(max_of(x, 0, a.cols)));
  __syncthreads();
  const float max = from_key(best), sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
NEAR_MISS(2102, atomic_max_in_shared_memory, 64, "all threads at one word, but with atomics")

__global__ void rereads_its_own_output(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float* y = a.out + blockIdx.x * a.out_stride;
  const float max = block_max(words, max_of(x, 0, a.cols));
  float sum = 0;
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) sum += y[i] = expf(x[i] - max);
  sum = block_sum(words, sum);
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) y[i] /= sum;
}
NEAR_MISS(2103, rereads_its_own_output, 64, "the output holds the exponentials for a while")

__global__ void two_buffers_one_barrier(Args a) {
  SHARED(stage, float[2][64]);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const unsigned t = threadIdx.x;
  float max = -INFINITY;
  int buffer = 0;
  for (long first = 0; first < a.cols; first += blockDim.x, buffer ^= 1) {
    stage[buffer][t] = first + t < a.cols ? x[first + t] : -INFINITY;
    __syncthreads();
    max = fmaxf(max, stage[buffer][t ^ 32]);
  }
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
NEAR_MISS(2104, two_buffers_one_barrier, 64, "a barrier a round suffices for two buffers")

__global__ void cluster_exchange(Args a) {
  SHARED(words, float[32]);
  SHARED(published, float);
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) published = mine;
  cluster.sync();
  const float max = fmaxf(mine, *cluster.map_shared_rank(&published, half ^ 1));
  cluster.sync();
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
NEAR_MISS(2105, cluster_exchange, 64, "two blocks read each other's shared memory between two cluster.sync",
          .blocks = 2, .cluster = true)

__global__ void grid_phases(Args a) {
  SHARED(words, float[32]);
  const cg::grid_group grid = cg::this_grid();
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) a.partial[blockIdx.x] = mine;
  grid.sync();
  const float max = fmaxf(a.partial[2 * row], a.partial[2 * row + 1]);
  grid.sync();
  const float part = block_sum(words, sum_of(x, from, to, max));
  if (threadIdx.x == 0) a.partial[blockIdx.x] = part;
  grid.sync();
  write(a.out + row * a.out_stride, x, from, to, max, a.partial[2 * row] + a.partial[2 * row + 1]);
}
NEAR_MISS(2106, grid_phases, 64, "a word of the workspace has two lives, with grid.sync around each", .blocks = 2,
          .cooperative = true)

// The scalar head ends where the row's address is a multiple of 16.
__global__ void vectors_with_head_and_tail(Args a) {
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  const long gap = long(reinterpret_cast<unsigned long long>(x) / sizeof(float) % 4);
  const long wanted = (4 - gap) % 4, head = wanted < a.cols ? wanted : a.cols, vectors = (a.cols - head) / 4;
  const float4* middle = reinterpret_cast<const float4*>(x + head);
  float max = fmaxf(max_of(x, 0, head), max_of(x, head + 4 * vectors, a.cols));
  for (long i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 v = middle[i];
    max = fmaxf(max, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  max = block_max(words, max);
  const float sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, max, sum);
}
NEAR_MISS(2107, vectors_with_head_and_tail, 64, "float4 loads where a row is aligned, scalar ones around them")

__global__ void warps_leave_together(Args a) {
  SHARED(tree, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  if (warp() > 0) return;
  float max = -INFINITY, sum = 0;
  for (long i = lane(); i < a.cols; i += 32) max = fmaxf(max, x[i]);
  tree[lane()] = max;
  __syncwarp();
  for (int l = 0; l < 32; ++l) max = fmaxf(max, tree[l]);
  for (long i = lane(); i < a.cols; i += 32) sum += expf(x[i] - max);
  sum = warp_sum(sum);
  for (long i = lane(); i < a.cols; i += 32) a.out[blockIdx.x * a.out_stride + i] = expf(x[i] - max) / sum;
}
NEAR_MISS(2108, warps_leave_together, 96, "whole warps return before a warp barrier of another")

// Half a warp a row: the halves meet as often as their own rows need.
__global__ void tiles_of_16(Args a) {
  SHARED(stage, float[64]);
  const cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
  const unsigned first = threadIdx.x / 16 * 16;
  for (long row = tile.meta_group_rank(); row < a.rows; row += tile.meta_group_size()) {
    const float* x = a.in + row * a.in_stride;
    float max = -INFINITY, sum = 0;
    for (long i = tile.thread_rank(); i < a.cols; i += 16) max = fmaxf(max, x[i]);
    stage[threadIdx.x] = max;
    tile.sync();
    for (unsigned l = first; l < first + 16; ++l) max = fmaxf(max, stage[l]);
    tile.sync();
    for (long i = tile.thread_rank(); i < a.cols; i += 16) sum += expf(x[i] - max);
    for (unsigned bits = 8; bits > 0; bits /= 2) sum += tile.shfl_xor(sum, bits);
    for (long i = tile.thread_rank(); i < a.cols; i += 16) a.out[row * a.out_stride + i] = expf(x[i] - max) / sum;
  }
}
NEAR_MISS(2109, tiles_of_16, 64, "tiles of half a warp share an array, each its own part", .shared_rows = true)

__global__ void everyone_reads_one_word(Args a) {
  SHARED(row_max, float);
  SHARED(words, float[32]);
  const float* x = a.in + blockIdx.x * a.in_stride;
  float max = x[0];
  for (long i = threadIdx.x; i < a.cols; i += blockDim.x) max = fmaxf(max, x[i]);
  max = block_max(words, max);
  if (threadIdx.x == blockDim.x - 1) row_max = max;
  __syncthreads();
  const float sum = block_sum(words, sum_of(x, 0, a.cols, row_max));
  write(a.out + blockIdx.x * a.out_stride, x, 0, a.cols, row_max, sum);
}
NEAR_MISS(2110, everyone_reads_one_word, 64, "broadcasts, from global and from shared memory")

__global__ void flag_with_both_fences(Args a) {
  SHARED(words, float[32]);
  SHARED(both, float);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2, other = blockIdx.x ^ 1;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;
    __threadfence();
    atomicExch(&a.counter[blockIdx.x], 1);
    while (atomicAdd(&a.counter[other], 0) == 0) __nanosleep(20);
    __threadfence();
    both = fmaxf(mine, a.partial[other]);
  }
  __syncthreads();
  const float max = both, sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
NEAR_MISS(2111, flag_with_both_fences, 64, "a flag between two blocks, fenced on both sides", .blocks = 2,
          .cooperative = true, .cleared = true)

__global__ void volatile_flag(Args a) {
  SHARED(words, float[32]);
  SHARED(both, float);
  const unsigned row = blockIdx.x / 2, half = blockIdx.x % 2, other = blockIdx.x ^ 1;
  const float* x = a.in + row * a.in_stride;
  const long middle = a.cols / 2, from = half ? middle : 0, to = half ? a.cols : middle;
  const float mine = block_max(words, max_of(x, from, to));
  volatile int* flags = a.counter;
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = mine;
    __threadfence();
    flags[blockIdx.x] = 1;
    while (flags[other] == 0) __nanosleep(20);
    __threadfence();
    both = fmaxf(mine, a.partial[other]);
  }
  __syncthreads();
  const float max = both, sum = block_sum(words, sum_of(x, 0, a.cols, max));
  write(a.out + row * a.out_stride, x, from, to, max, sum);
}
NEAR_MISS(2112, volatile_flag, 64, "the same with a volatile flag", .blocks = 2, .cooperative = true, .cleared = true)

}  // namespace
