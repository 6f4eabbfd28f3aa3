// A cooperative launch: all blocks are resident, grid.sync orders them, and who waits for another by spinning lets it
// run.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
namespace cg = cooperative_groups;

// Each round every thread needs what the threads of all other blocks wrote in the round before.
__global__ void sum_of_all(long* value, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned count = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x;
  value[me] = 1;
  grid.sync();
  for (int round = 0; round < rounds; ++round) {
    long sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += value[i];
    grid.sync();
    value[me] = sum / count + 1;
    grid.sync();
  }
}

__global__ void ranks(unsigned long long* out) {
  const cg::grid_group grid = cg::this_grid();
  out[grid.block_rank()] = grid.num_blocks() * 100 + blockIdx.x + 10 * blockIdx.y;
}

// Blocks take turns, against their numbers: forwards, the one that runs first waits longest.
__global__ void take_turns(unsigned* turn, unsigned* order) {
  const unsigned place = gridDim.x - 1 - blockIdx.x;
  if (threadIdx.x == 0) {
    while (atomicAdd(turn, 0u) != place) __nanosleep(20);
    order[place] = blockIdx.x;
    atomicAdd(turn, 1u);
  }
  __syncthreads();
}

// `spinners` threads a block wait for a word that nobody writes; the others wait for them.
__global__ void wait_for_ever(const volatile int* word, unsigned spinners) {
  if (threadIdx.x < spinners)
    while (*word == 0) __nanosleep(20);
  __syncthreads();
}

__global__ void sync_grid() { cg::this_grid().sync(); }
__global__ void block_zero_returns() {
  if (blockIdx.x > 0) cg::this_grid().sync();
}

TEST(SimtCooperative, GridSyncOrdersTheBlocks) {
  under_every_schedule([] {
    std::vector<long> value(8 * 40, 0);
    launch(sum_of_all, {.blocks = 8, .threads = 40, .cooperative = true}, value.data(), 20);
    EXPECT_EQ(value, std::vector<long>(8 * 40, 21));
  });
}

TEST(SimtCooperative, TheGridHasRanks) {
  unsigned long long out[6];
  launch(ranks, {.blocks = dim3(3, 2), .threads = 1, .cooperative = true}, out);
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(out[i], 600 + i % 3 + 10 * (i / 3));
}

TEST(SimtCooperative, ASpinningWaitMakesProgress) {
  under_every_schedule([] {
    unsigned turn = 0, order[16];
    launch(take_turns, {.blocks = 16, .threads = 64, .cooperative = true}, &turn, order);
    EXPECT_EQ(turn, 16u);
    for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(order[i], 15 - i);
  });
}

TEST(SimtCooperative, AnEndlessSpinIsReported) {
  under_every_schedule([] {
    const int never = 0;
    const std::string text = report([&] { launch(wait_for_ever, {.blocks = 1, .threads = 64}, &never, 1u); });
    EXPECT_TRUE(mentions(text, {"spin for ever", "block 0: ", "threads 0 are spinning",
                                "threads 1-63 wait at __syncthreads at cooperative_test.cu:"}));
  });
}

// The patience is for all spinning threads together, so that a full device does not take a thousand times as long.
TEST(SimtCooperative, AnEndlessSpinOfAFullDeviceIsReportedToo) {
  const int never = 0;
  EXPECT_TRUE(mentions(
      report([&] { launch(wait_for_ever, {.blocks = 16, .threads = 1024, .cooperative = true}, &never, 1024u); }),
      {"threads 0-1023 are spinning"}));
}

TEST(SimtCooperative, GridSyncNeedsACooperativeLaunch) {
  EXPECT_TRUE(mentions(report([] { launch(sync_grid, {.blocks = 1, .threads = 32}); }),
                       {"grid.sync at cooperative_test.cu:", "not cooperative"}));
  EXPECT_NO_THROW(launch(sync_grid, {.blocks = 1, .threads = 32, .cooperative = true}));
}

TEST(SimtCooperative, ABlockThatReturnedIsMissedAtGridSync) {
  under_every_schedule([] {
    EXPECT_TRUE(mentions(report([] { launch(block_zero_returns, {.blocks = 4, .threads = 32, .cooperative = true}); }),
                         {"not every thread reaches grid.sync"}));
  });
}

}  // namespace
