// Atomic words: nothing is lost over a block or over blocks, and each returns what was there before.
#include <algorithm>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

template <class T>
__global__ void add(T* total, T* per_block) {
  SHARED(sum, T);
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = 0; i < 3; ++i) atomicAdd(&sum, T(threadIdx.x));
  atomicAdd(total, T(1));
  __syncthreads();
  if (threadIdx.x == 0) per_block[blockIdx.x] = sum;
}

__global__ void take_tickets(unsigned* next, int* taken) { ++taken[atomicAdd(next, 1u)]; }

// Only the first to exchange finds the -1, only one finds the 5.
__global__ void extremes(int* max, int* last, int* swapped, int* winners) {
  const int me = int((blockIdx.x * blockDim.x + threadIdx.x) * 37 % 1009);
  atomicMax(max, me);
  if (atomicExch(last, me) == -1) ++winners[0];
  if (atomicCAS(swapped, 5, 10 + me) == 5) {
    ++winners[1];
    winners[2] = 10 + me;
  }
}

// The last block to finish adds up what all blocks left: a grid-wide sum without any barrier.
__global__ void last_block_sums(int* partial, unsigned* finished, int* sum) {
  SHARED(is_last, bool);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = int(blockIdx.x);
    __threadfence();
    is_last = atomicAdd(finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  __threadfence();
  for (unsigned b = 0; b < gridDim.x; ++b) *sum += partial[b];
}

template <class T>
void check_add() {
  under_every_schedule([] {
    T total = 0, per_block[5] = {};
    launch(add<T>, {.blocks = 5, .threads = 100}, &total, per_block);
    EXPECT_EQ(total, T(500));
    for (const T& sum : per_block) EXPECT_EQ(sum, T(3 * 4950));
  });
}

TEST(SimtAtomic, AddsUp) {
  check_add<int>();
  check_add<unsigned long long>();
  check_add<float>();
}

TEST(SimtAtomic, EveryThreadGetsItsOwnTicket) {
  under_every_schedule([] {
    unsigned next = 0;
    std::vector<int> taken(300, 0);
    launch(take_tickets, {.blocks = 3, .threads = 100}, &next, taken.data());
    EXPECT_EQ(taken, std::vector<int>(300, 1));
  });
}

TEST(SimtAtomic, MaxExchangeAndCompare) {
  under_every_schedule([] {
    int max = -1, last = -1, winners[3] = {}, swapped = 5;
    launch(extremes, {.blocks = 4, .threads = 250}, &max, &last, &swapped, winners);
    int expected = 0;
    for (int i = 0; i < 1000; ++i) expected = std::max(expected, i * 37 % 1009);
    EXPECT_EQ(max, expected);
    EXPECT_NE(last, -1);
    EXPECT_EQ(swapped, winners[2]);
    EXPECT_EQ(winners[0], 1);
    EXPECT_EQ(winners[1], 1);
  });
}

TEST(SimtAtomic, TheLastBlockSeesAllOthers) {
  under_every_schedule([] {
    int partial[20] = {}, sum = 0;
    unsigned finished = 0;
    launch(last_block_sums, {.blocks = 20, .threads = 64}, partial, &finished, &sum);
    EXPECT_EQ(sum, 190);
  });
}

}  // namespace
