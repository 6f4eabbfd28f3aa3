// Textbook access patterns. Where a comment does not say otherwise, 4 blocks of 128 threads, thread t of all loads one
// float and stores one at out[t]: 16 warps, each of which stores its 128 bytes as 4 whole sectors.
#include "kernels/prelude.hpp"
#include "properties/counters/patterns.hpp"

namespace {

namespace cg = cooperative_groups;
using softmax::Counters;

constexpr unsigned kAll = 0xffffffffu;

// With the store of one float a thread.
constexpr Counters stored(Counters warp) {
  warp.global_store_requests += 1;
  warp.global_store_sectors += 4;
  warp.global_store_bytes += 128;
  return warp;
}
// With that and the load of one float a thread.
constexpr Counters copied(Counters warp) {
  warp.global_load_requests += 1;
  warp.global_load_sectors += 4;
  warp.global_load_bytes += 128;
  return stored(warp);
}

#define THREAD unsigned(blockIdx.x * blockDim.x + threadIdx.x)
#define LANE unsigned(threadIdx.x % 32)

#define PATTERN(name, blocks, threads, ...)                                           \
  void launch_##name(const float* in, float* out) {                                   \
    softmax::device::launch(pattern_##name, {blocks, threads}, in, out);              \
  }                                                                                   \
  const softmax::counters::Pattern name##_counts = {                                  \
      #name, &softmax::device::machine, launch_##name, blocks, threads, __VA_ARGS__}; \
  [[maybe_unused]] const bool name##_registered = softmax::counters::register_pattern(name##_counts);

// Global memory.

__global__ void pattern_stride1(const float* in, float* out) { out[THREAD] = in[THREAD]; }
PATTERN(stride1, 4, 128, copied({}))

// A warp spans 256 bytes and uses every other word.
__global__ void pattern_stride2(const float* in, float* out) { out[THREAD] = in[2 * THREAD]; }
PATTERN(stride2, 4, 128, stored({.global_load_requests = 1, .global_load_sectors = 8, .global_load_bytes = 128}))

// 128 bytes that begin 4 bytes into a sector reach into a fifth.
__global__ void pattern_misaligned(const float* in, float* out) { out[THREAD] = in[THREAD + 1]; }
PATTERN(misaligned, 4, 128, stored({.global_load_requests = 1, .global_load_sectors = 5, .global_load_bytes = 128}))

__global__ void pattern_reversed(const float* in, float* out) { out[THREAD] = in[THREAD ^ 31]; }
PATTERN(reversed, 4, 128, copied({}))

// 32 lanes of 8 bytes are 8 sectors, of 16 bytes 16.
__global__ void pattern_float2(const float* in, float* out) {
  reinterpret_cast<float2*>(out)[THREAD] = reinterpret_cast<const float2*>(in)[THREAD];
}
PATTERN(float2, 4, 128,
        {.global_load_requests = 1,
         .global_load_sectors = 8,
         .global_load_bytes = 256,
         .global_store_requests = 1,
         .global_store_sectors = 8,
         .global_store_bytes = 256})

__global__ void pattern_float4(const float* in, float* out) {
  reinterpret_cast<float4*>(out)[THREAD] = reinterpret_cast<const float4*>(in)[THREAD];
}
PATTERN(float4, 4, 128,
        {.global_load_requests = 1,
         .global_load_sectors = 16,
         .global_load_bytes = 512,
         .global_store_requests = 1,
         .global_store_sectors = 16,
         .global_store_bytes = 512})

// A row of 128 bytes a thread, of which it walks the first 8 floats: every load of a warp touches 32 sectors, and the
// eight of them the same ones.
__global__ void pattern_thread_a_row(const float* in, float* out) {
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += in[32 * THREAD + i];
  out[THREAD] = sum;
}
PATTERN(thread_a_row, 4, 128,
        stored({.global_load_requests = 8, .global_load_sectors = 8 * 32, .global_load_bytes = 8 * 128}))

// All threads of a block load one word: each of its 4 warps asks for 4 bytes, and only the first of them are new.
__global__ void pattern_broadcast(const float* in, float* out) { out[THREAD] = in[blockIdx.x]; }
PATTERN(broadcast, 4, 128, stored({.global_load_requests = 1, .global_load_sectors = 1, .global_load_bytes = 4}),
        {.redundant_load_bytes = 3 * 4})

__global__ void pattern_half_a_warp(const float* in, float* out) {
  if (LANE < 16) out[THREAD] = in[THREAD];
}
PATTERN(half_a_warp, 4, 128,
        {.global_load_requests = 1,
         .global_load_sectors = 2,
         .global_load_bytes = 64,
         .global_store_requests = 1,
         .global_store_sectors = 2,
         .global_store_bytes = 64,
         .partial_requests = 2})

// Odd, so that it permutes the words of the input's 2^14.
constexpr unsigned scattered(unsigned thread) { return thread * 2654435761u % (1u << 14); }
constexpr int gathered_sectors() {
  int sectors = 0;
  for (unsigned warp = 0; warp < 16; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane) {
      bool first = true;
      for (unsigned other = 0; other < lane; ++other)
        first &= scattered(32 * warp + other) / 8 != scattered(32 * warp + lane) / 8;
      sectors += first;
    }
  return sectors;
}
static_assert(gathered_sectors() == 16 * 32, "no two words of a warp share a sector");
__global__ void pattern_gather(const float* in, float* out) { out[THREAD] = in[THREAD * 2654435761u % (1u << 14)]; }
PATTERN(gather, 4, 128, stored({.global_load_requests = 1, .global_load_sectors = 32, .global_load_bytes = 128}))

// A block reads its 1024 floats three times, as the safe softmax does: two thirds of 3 x 4096 bytes it had before. A
// warp reads 256 of them with 8 loads.
__global__ void pattern_three_passes(const float* in, float* out) {
  float sum = 0;
  for (int pass = 0; pass < 3; ++pass) {
    for (unsigned i = threadIdx.x; i < 1024; i += 128) sum += in[1024 * blockIdx.x + i];
    __syncthreads();
  }
  out[THREAD] = sum;
}
PATTERN(three_passes, 4, 128,
        stored({.global_load_requests = 24, .global_load_sectors = 24 * 4, .global_load_bytes = 24 * 128}),
        {.redundant_load_bytes = 2 * 4096, .barriers = 3})

// Lane n loads n + 1 times: 32 loads of the lanes from i up, the last (32 - i) * 4 bytes of a line. They reach into
// 4 - i / 8 sectors, 8 * (4 + 3 + 2 + 1) in all, and only the first has all lanes.
__global__ void pattern_lane_loop(const float* in, float* out) {
  float sum = 0;
#pragma unroll 1
  for (unsigned i = 0; i <= LANE; ++i) sum += in[32 * i + LANE];
  out[THREAD] = sum;
}
constexpr Counters kLaneLoop = {
    .global_load_requests = 32, .global_load_sectors = 80, .global_load_bytes = 33 * 16 * 4, .partial_requests = 31};
// Every warp of the block walks the same words.
PATTERN(lane_loop, 4, 128, stored(kLaneLoop), {.redundant_load_bytes = 3 * kLaneLoop.global_load_bytes})

// The same twice, over other words. A shuffle brings the lanes together in between: without that, lane 0's second first
// load would count as one with lane 1's second.
__global__ void pattern_realigned(const float* in, float* out) {
  float sum = 0;
#pragma unroll 1
  for (unsigned pass = 0; pass < 2; ++pass) {
#pragma unroll 1
    for (unsigned i = 0; i <= LANE; ++i) sum += in[1024 * pass + 32 * i + LANE];
    sum += __shfl_xor_sync(kAll, sum, 1);
  }
  out[THREAD] = sum;
}
PATTERN(realigned, 4, 32,
        stored({.global_load_requests = 64,
                .global_load_sectors = 160,
                .global_load_bytes = 2 * 33 * 16 * 4,
                .shuffles = 2,
                .partial_requests = 62}))

// Shared memory.

// A tile of 32 x 32 is written by rows and read by columns. Where rows are 32 words apart, a column is one bank: 32
// passes. At 33 it is all banks.
template <int kPitch>
__device__ void transpose(const float* in, float* out) {
  SHARED(tile, float[32][kPitch]);
  tile[threadIdx.x / 32][LANE] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[LANE][threadIdx.x / 32];
}
__global__ void pattern_transpose32(const float* in, float* out) { transpose<32>(in, out); }
PATTERN(transpose32, 1, 1024,
        copied({.shared_load_requests = 1,
                .shared_load_wavefronts = 32,
                .shared_load_conflicts = 31,
                .shared_store_requests = 1,
                .shared_store_wavefronts = 1}),
        {.barriers = 1})
__global__ void pattern_transpose33(const float* in, float* out) { transpose<33>(in, out); }
PATTERN(transpose33, 1, 1024,
        copied({.shared_load_requests = 1,
                .shared_load_wavefronts = 1,
                .shared_store_requests = 1,
                .shared_store_wavefronts = 1}),
        {.barriers = 1})

// Two trees over 256 words: 8 steps of two loads and a store. Both have 128, 64, 32, 16, ... active threads, so 4, 2
// and six times 1 warps: 12 requests for each of the three, of which five have fewer than 32 lanes. Before that all 8 warps
// store; behind it, thread 0 loads one word and stores it to the output.
// Interleaved: a step's words are 2, 4, 8, 16, 32, ... apart, so a warp's lanes share 16, 8, 4, 2 and 1 banks:
// 4 x 2 + 2 x 4 + 8 + 8 + 8 + 4 + 2 + 1 = 47 passes for 12 requests.
__global__ void pattern_tree_interleaved(const float* in, float* out) {
  SHARED(partial, float[256]);
  partial[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (unsigned step = 1; step < 256; step *= 2) {
    const unsigned i = 2 * step * threadIdx.x;
    if (i < 256) partial[i] += partial[i + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = partial[0];
}
constexpr Counters kTree = {.global_load_requests = 8,
                            .global_load_sectors = 8 * 4,
                            .global_load_bytes = 8 * 128,
                            .global_store_requests = 1,
                            .global_store_sectors = 1,
                            .global_store_bytes = 4,
                            .shared_load_requests = 2 * 12 + 1,
                            .shared_load_wavefronts = 2 * 12 + 1,
                            .shared_store_requests = 8 + 12,
                            .shared_store_wavefronts = 8 + 12,
                            .barriers = 1 + 8,
                            .partial_requests = 3 * 5 + 2};
constexpr Counters interleaved(Counters tree) {
  tree.shared_load_wavefronts += tree.shared_load_conflicts = 2 * (47 - 12);
  tree.shared_store_wavefronts += tree.shared_store_conflicts = 47 - 12;
  return tree;
}
PATTERN(tree_interleaved, 1, 256, {}, interleaved(kTree))

// Sequential: neighbours add neighbours; no step has a conflict.
__global__ void pattern_tree_sequential(const float* in, float* out) {
  SHARED(partial, float[256]);
  partial[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = partial[0];
}
PATTERN(tree_sequential, 1, 256, {}, kTree)

// Vectors go through in 2 and 4 phases of lanes: so many passes without a conflict.
template <class Vector>
__device__ void exchange(const float* in, float* out) {
  SHARED(tile, Vector[128]);
  tile[threadIdx.x] = reinterpret_cast<const Vector*>(in)[THREAD];
  __syncthreads();
  reinterpret_cast<Vector*>(out)[THREAD] = tile[threadIdx.x ^ 32];
}
constexpr Counters exchanged(int phases) {
  return {.global_load_requests = 1,
          .global_load_sectors = 4 * phases,
          .global_load_bytes = 128 * phases,
          .global_store_requests = 1,
          .global_store_sectors = 4 * phases,
          .global_store_bytes = 128 * phases,
          .shared_load_requests = 1,
          .shared_load_wavefronts = phases,
          .shared_store_requests = 1,
          .shared_store_wavefronts = phases};
}
__global__ void pattern_shared_float2(const float* in, float* out) { exchange<float2>(in, out); }
PATTERN(shared_float2, 4, 128, exchanged(2), {.barriers = 1})
__global__ void pattern_shared_float4(const float* in, float* out) { exchange<float4>(in, out); }
PATTERN(shared_float4, 4, 128, exchanged(4), {.barriers = 1})

__global__ void pattern_shared_broadcast(const float* in, float* out) {
  SHARED(tile, float[128]);
  tile[threadIdx.x] = in[THREAD];
  __syncthreads();
  out[THREAD] = tile[blockIdx.x];
}
PATTERN(shared_broadcast, 4, 128,
        copied({.shared_load_requests = 1,
                .shared_load_wavefronts = 1,
                .shared_store_requests = 1,
                .shared_store_wavefronts = 1}),
        {.barriers = 1})

// Atomics, on words that the block set before.

__global__ void pattern_atomic_one_word(const float*, float* out) {
  unsigned* words = reinterpret_cast<unsigned*>(out);
  words[THREAD] = 0;
  __syncthreads();
  atomicAdd(&words[blockIdx.x * blockDim.x], LANE);
}
PATTERN(atomic_one_word, 4, 128, stored({.atomics = 1}), {.barriers = 1})

__global__ void pattern_atomic_32_words(const float*, float* out) {
  unsigned* words = reinterpret_cast<unsigned*>(out);
  words[THREAD] = 0;
  __syncthreads();
  atomicAdd(&words[THREAD], LANE);
}
PATTERN(atomic_32_words, 4, 128, stored({.atomics = 1}), {.barriers = 1})

__global__ void pattern_atomic_shared(const float*, float* out) {
  SHARED(words, unsigned[128]);
  words[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&words[LANE], THREAD);
  __syncthreads();
  reinterpret_cast<unsigned*>(out)[THREAD] = words[threadIdx.x];
}
PATTERN(atomic_shared, 4, 128,
        stored({.shared_load_requests = 1,
                .shared_load_wavefronts = 1,
                .shared_store_requests = 1,
                .shared_store_wavefronts = 1,
                .atomics = 1}),
        {.barriers = 2})

// Threads that work together.

// A double is two shuffles of 4 bytes.
__global__ void pattern_collectives(const float* in, float* out) {
  float value = in[THREAD];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAll, value, step);
  const double sum = __shfl_down_sync(kAll, double(value), 1);
  for (int i = 0; i < 3; ++i) __syncthreads();
  const unsigned votes = __ballot_sync(kAll, value > 0) + unsigned(__any_sync(kAll, value > 1)) +
                         unsigned(__all_sync(kAll, value > 2)) + unsigned(__syncthreads_count(value > 3));
  out[THREAD] = float(sum) + float(votes);
}
PATTERN(collectives, 2, 256, copied({.shuffles = 5 + 2, .votes = 3}), {.barriers = 4})

__device__ float add(float a, float b) { return a + b; }
template <unsigned kSize>
__device__ void reduce(const float* in, float* out) {
  const cg::thread_block_tile<kSize> tile = cg::tiled_partition<kSize>(cg::this_thread_block());
  out[THREAD] = cg::reduce(tile, in[THREAD], add);
}
__global__ void pattern_reduce32(const float* in, float* out) { reduce<32>(in, out); }
PATTERN(reduce32, 4, 128, copied({.shuffles = 5}))
// Both halves of a warp shuffle at once.
__global__ void pattern_reduce16(const float* in, float* out) { reduce<16>(in, out); }
PATTERN(reduce16, 4, 128, copied({.shuffles = 4}))

}  // namespace
