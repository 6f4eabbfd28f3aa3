#pragma once
// How the threads of a block, the blocks of a cluster and the blocks of a grid that share a row come to one (max, sum).
// All threads call; each gets the row's.

#include "kernels/collective/online.hpp"
#include "kernels/kernel.hpp"

namespace softmax::collective {
inline namespace SOFTMAX_BACKEND {

__device__ __forceinline__ std::uint64_t as_word(MaxSum x) {
  return std::uint64_t(__float_as_uint(x.sum)) << 32 | __float_as_uint(x.max);
}
__device__ __forceinline__ MaxSum as_pair(std::uint64_t x) {
  return {__uint_as_float(unsigned(x)), __uint_as_float(unsigned(x >> 32))};
}

// Of `slots` pairs in shared memory, by one warp; each lane gets the result.
template <int Slots>
__device__ __forceinline__ MaxSum warp_merge(const std::uint64_t* pairs, int slots, int lane, float scale) {
  if constexpr (Slots <= 32) {
    const MaxSum one = lane < slots ? as_pair(pairs[lane]) : MaxSum{-INFINITY, 0};
    return warp_merge(one, scale);
  }
  MaxSum some[Slots / 32];
  float max = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < Slots / 32; ++i) {
    some[i] = i * 32 + lane < slots ? as_pair(pairs[i * 32 + lane]) : MaxSum{-INFINITY, 0};
    max = fmaxf(max, some[i].max);
  }
  max = lanes_max<32>(max);
#pragma unroll
  for (int i = 0; i < Slots / 32; ++i) sum += some[i].sum * shifted_exp(some[i].max, anchor(max), scale);
  return {max, lanes_sum<32>(sum)};
}

// The same of a power of two, up to 32: lanes that look at the same pairs spare a step for each halving.
template <int Slots>
__device__ __forceinline__ MaxSum repeated_merge(const std::uint64_t* pairs, int lane, float scale) {
  const MaxSum one = as_pair(pairs[lane % Slots]);
  const float max = lanes_max<32>(one.max);
  return {max, lanes_sum<Slots>(one.sum * shifted_exp(one.max, anchor(max), scale))};
}

// A block of `Threads` threads; `pairs` has a place for each warp. The place is free again after the next barrier.
template <int Threads>
__device__ __forceinline__ MaxSum block_exchange(MaxSum of_warp, std::uint64_t* pairs, float scale) {
  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
  if (lane == 0) pairs[warp] = as_word(of_warp);
  __syncthreads();
  return repeated_merge<Threads / 32>(pairs, lane, scale);
}

// Every warp of a cluster tells every block; one wait takes the place of a barrier of the block and one of the cluster.
template <int Threads>
struct ClusterExchange {
  static constexpr int kWarps = Threads / 32, kBlocks = 16;
  std::uint64_t* pairs;       // shared memory: a place for each warp of the cluster
  device::Mbarrier* arrived;  // shared memory

  // Before the loads, so that the other blocks' start is not waited for.
  __device__ __forceinline__ void begin(int blocks) {
    if (threadIdx.x == 0) {
      device::mbarrier_init(arrived, 1);
      device::mbarrier_fence_init();
      device::mbarrier_expect(arrived, unsigned(blocks * kWarps * 8));
    }
    device::cluster_arrive_relaxed();
  }
  static __device__ __forceinline__ int rank() { return int(cooperative_groups::this_cluster().block_rank()); }
  __device__ __forceinline__ MaxSum operator()(MaxSum of_warp, int blocks, float scale) {
    const auto cluster = cooperative_groups::this_cluster();
    const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
    cluster.barrier_wait();
    if (lane < blocks)
      device::store_async(cluster.map_shared_rank(pairs, unsigned(lane)) + rank() * kWarps + warp, as_word(of_warp),
                          cluster.map_shared_rank(arrived, unsigned(lane)));
    device::mbarrier_wait(arrived, 0);
    return warp_merge<kWarps * kBlocks>(pairs, blocks * kWarps, lane, scale);
  }
};

// What the blocks of a grid tell each other through global memory: in one word of 16 bytes the pair and the round that it is
// of, so no fence and no counter is between a block and its reader. No place holds a round's number from before: groups may
// have another size in the next launch. Two places a block, taken in turn: who is a round ahead overwrites nothing unread.
struct GridWorkspace {
  unsigned round, left;  // the last round of the launch before; blocks that are done with this one
  unsigned pad[30];
  uint4 told[1];  // 2 * blocks

  static constexpr int kBlocks = 4096;           // at most
  static constexpr unsigned kRounds = 1u << 31;  // from here on it begins anew, all zero: none comes round
  static constexpr std::int64_t kBytes = 128 + 32 * kBlocks;
};
template <int Threads>
struct GridExchange {
  GridWorkspace* global;
  std::uint64_t* pairs;  // shared memory: two places for each warp
  unsigned* shared;      // shared memory: a word
  int group, rank, blocks;
  unsigned first = 0, round = 0;

  // All blocks must have read the round before the last one leaves. Nobody waits for it before the row has come.
  __device__ __forceinline__ void begin() {
    if (threadIdx.x == 0) first = device::load_relaxed(&global->round);
  }
  __device__ __forceinline__ MaxSum operator()(MaxSum of_warp, float scale) {
    if (threadIdx.x == 0) *shared = first;
    const MaxSum mine = block_exchange<Threads>(of_warp, pairs, scale);
    const unsigned now = *shared + ++round;
    uint4* const told = global->told + now % 2 + 2 * group * blocks;
    if (threadIdx.x == 0)
      device::store_relaxed(told + 2 * rank, make_uint4(now, 0, __float_as_uint(mine.max), __float_as_uint(mine.sum)));
    // A thread for each block: one that asked for several in turn would wait a round trip for each.
    const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
    MaxSum some = {-INFINITY, 0};
    if (warp * 32 < blocks) {
      for (int other = thread; other < blocks; other += Threads) {
        uint4 word = device::load_relaxed(told + 2 * other);
        while (word.x != now) {
          device::spin();
          word = device::load_relaxed(told + 2 * other);
        }
        some = merge(some, {__uint_as_float(word.z), __uint_as_float(word.w)}, scale);
      }
      some = warp_merge(some, scale);
    }
    if (lane == 0) pairs[Threads / 32 + warp] = as_word(some);
    __syncthreads();
    return repeated_merge<Threads / 32>(pairs + Threads / 32, lane, scale);
  }
  // `rounds`: at least as many as any block went through, below 2^31. What all have told must lie there before it is zeroed.
  __device__ __forceinline__ void end(unsigned rounds) {
    if (threadIdx.x != 0) return;
    unsigned last = first + rounds;
    const bool anew = last >= GridWorkspace::kRounds;
    if (anew) __threadfence();
    if (atomicInc(&global->left, gridDim.x - 1) != gridDim.x - 1) return;
    if (anew) {
      __threadfence();
#pragma unroll 1
      for (int i = 0; i < 2 * GridWorkspace::kBlocks; ++i)
        device::store_relaxed(global->told + i, make_uint4(0, 0, 0, 0));
      last = 0;
    }
    device::store_relaxed(&global->round, last);
  }
};

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
