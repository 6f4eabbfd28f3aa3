// Warp operations wait for the lanes that their mask names, in the caller's warp, and for nobody else.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
constexpr unsigned kAll = 0xffffffffu;

__device__ int warp_sum(unsigned mask, int value, int width) {
  for (int delta = width / 2; delta > 0; delta /= 2) value += __shfl_down_sync(mask, value, unsigned(delta), width);
  return value;
}

__global__ void only_warp_zero(int* out) {
  SHARED(sum, int);
  if (threadIdx.x < 32) {
    const int all = warp_sum(kAll, int(threadIdx.x), 32);
    if (threadIdx.x == 0) sum = all;
  }
  __syncthreads();
  out[threadIdx.x] = sum;
}

// The halves meet a different number of times, so that each must run ahead of the other under some schedule.
__global__ void two_masks(int* out) {
  const bool low = threadIdx.x % 32 < 16;
  int sum = 0;
  for (int round = 0; round < (low ? 3 : 5); ++round)
    sum += warp_sum(low ? 0xffffu : 0xffff0000u, int(threadIdx.x), 16);
  out[threadIdx.x] = sum;
}

__global__ void sync_with(unsigned mask, unsigned leaves) {
  if (threadIdx.x != leaves) __syncwarp(mask);
}

__global__ void shuffle_with(unsigned mask, unsigned leaves) {
  if (threadIdx.x != leaves) __shfl_xor_sync(mask, 1, 1);
}

__global__ void sync_partial_warp(int* out) {
  const unsigned mask = threadIdx.x < 32 ? kAll : 0xffu;
  out[threadIdx.x] = __shfl_sync(mask, int(threadIdx.x), 7);
}

__global__ void read_unnamed() {
  if (threadIdx.x < 16) __shfl_down_sync(0xffffu, 1, 1);
}
__global__ void read_no_lane(int bits) { __shfl_xor_sync(kAll, 1, bits); }
__global__ void shuffle_and_vote() {
  if (threadIdx.x < 16)
    __shfl_sync(kAll, true, 0);  // as many bytes as a vote
  else
    __ballot_sync(kAll, 1);
}
__global__ void shuffle_two_sizes() {
  if (threadIdx.x < 16)
    __shfl_sync(kAll, 1.0f, 0);
  else
    __shfl_sync(kAll, 1.0, 0);
}

__global__ void exchange_in_warp(int* out) {
  SHARED(value, int[64]);
  value[threadIdx.x] = int(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = value[threadIdx.x ^ 31];
}

TEST(SimtWarpMask, OneWarpWorksWhileOthersWaitAtTheBarrier) {
  under_every_schedule([] {
    std::vector<int> out(96, -1);
    launch(only_warp_zero, {.blocks = 1, .threads = 96}, out.data());
    EXPECT_EQ(out, std::vector<int>(96, 31 * 32 / 2));
  });
}

TEST(SimtWarpMask, DisjointMasksDoNotWaitForEachOther) {
  under_every_schedule([] {
    int out[64] = {};
    launch(two_masks, {.blocks = 1, .threads = 64}, out);
    for (const int first : {0, 16, 32, 48})
      EXPECT_EQ(out[first], (first % 32 ? 5 : 3) * (16 * first + 15 * 16 / 2)) << "lanes from " << first;
  });
}

TEST(SimtWarpMask, SyncwarpOrdersTheAccessesOfTheWarp) {
  under_every_schedule([] {
    int out[64] = {};
    launch(exchange_in_warp, {.blocks = 1, .threads = 64}, out);
    for (int t = 0; t < 64; ++t) EXPECT_EQ(out[t], t ^ 31);
  });
}

TEST(SimtWarpMask, ThePartialLastWarpNamesOnlyItsOwn) {
  under_every_schedule([] {
    int out[40] = {};
    launch(sync_partial_warp, {.blocks = 1, .threads = 40}, out);
    for (int t = 0; t < 40; ++t) EXPECT_EQ(out[t], t < 32 ? 7 : 39);
    EXPECT_NO_THROW(launch(sync_with, {.blocks = 2, .threads = 40}, kAll, kAll)) << "who is not there need not come";
    EXPECT_TRUE(mentions(report([] { launch(shuffle_with, {.blocks = 2, .threads = 40}, kAll, kAll); }),
                         {"of block ", "names lane 8, which does not exist", "warp_mask_test.cu:"}));
  });
}

// Forwards lane 0 has returned when the others come, and lane 31 returns while they wait.
TEST(SimtWarpMask, ALaneThatReturnedIsAFault) {
  EXPECT_TRUE(mentions(report([] { launch(shuffle_with, {.blocks = 1, .threads = 32}, kAll, 0u); }),
                       {"thread 1 of block 0 names lane 0, which has returned"}));
  EXPECT_TRUE(mentions(report([] { launch(shuffle_with, {.blocks = 1, .threads = 32}, kAll, 31u); }),
                       {"a lane that others wait for has returned: thread 31", "threads 0-30 wait for their warp"}));
  under_every_schedule([] {
    EXPECT_TRUE(
        mentions(report([] { launch(shuffle_with, {.blocks = 1, .threads = 32}, kAll, 3u); }), {"has returned"}));
    for (const unsigned leaves : {0u, 3u, 31u})
      EXPECT_NO_THROW(launch(sync_with, {.blocks = 1, .threads = 32}, kAll, leaves))
          << "who has returned need not come";
  });
}

TEST(SimtWarpMask, TheCallerMustBeInItsMask) {
  under_every_schedule([] {
    EXPECT_TRUE(mentions(report([] { launch(sync_with, {.blocks = 1, .threads = 32}, kAll & ~(1u << 9), kAll); }),
                         {"thread 9 of block 0", "not named in its own mask"}));
  });
}

TEST(SimtWarpMask, ReadingAnUnnamedLaneIsAFault) {
  under_every_schedule([] {
    EXPECT_TRUE(mentions(report([] { launch(read_unnamed, {.blocks = 1, .threads = 32}); }),
                         {"a shuffle", "thread 15 ", "reads lane 16, which the mask does not name"}));
  });
}

TEST(SimtWarpMask, ReadingALaneThatNoWarpHasIsAFault) {
  EXPECT_TRUE(
      mentions(report([] { launch(read_no_lane, {.blocks = 1, .threads = 32}, -1); }), {"a shuffle", "reads lane -"}));
}

TEST(SimtWarpMask, MixedOperationsAreAFault) {
  under_every_schedule([] {
    EXPECT_TRUE(
        mentions(report([] { launch(shuffle_and_vote, {.blocks = 1, .threads = 32}); }), {"a shuffle", "a vote"}));
    EXPECT_TRUE(
        mentions(report([] { launch(shuffle_two_sizes, {.blocks = 1, .threads = 32}); }), {"came to a shuffle"}));
  });
}

}  // namespace
