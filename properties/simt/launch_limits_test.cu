// A launch that no GPU would take is refused before any thread runs, with what was asked and what is possible.
#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::Grid;
using softmax::device::launch;
using softmax::device::simt::last_launch;

__global__ void count(long* threads) { atomicAdd(threads, 1L); }

long threads_run(const Grid& grid) {
  long threads = 0;
  launch(count, grid, &threads);
  return threads;
}

testing::AssertionResult refused(const Grid& grid, std::initializer_list<std::string> parts) {
  long threads = 0;
  const std::string text = report<softmax::device::simt::Fault>([&] { launch(count, grid, &threads); });
  if (threads) return testing::AssertionFailure() << threads << " threads ran";
  return mentions(text, parts);
}

TEST(SimtLaunchLimits, Threads) {
  EXPECT_TRUE(refused({.blocks = 1, .threads = 0u}, {"1 to 1024", "not 0"}));
  EXPECT_TRUE(refused({.blocks = 1, .threads = 1025}, {"1 to 1024", "not 1025"}));
  EXPECT_TRUE(refused({.blocks = 1, .threads = dim3(32, 32, 2)}, {"1 to 1024", "not 2048"}));
  EXPECT_TRUE(refused({.blocks = 1, .threads = dim3(1, 1, 65)}, {"64", "65"}));
  EXPECT_EQ(threads_run({.blocks = 1, .threads = 1}), 1);
  EXPECT_EQ(threads_run({.blocks = 2, .threads = dim3(8, 2, 64)}), 2048);
}

TEST(SimtLaunchLimits, Blocks) {
  EXPECT_TRUE(refused({.blocks = 0u, .threads = 32}, {"at least 1", "not 0 x 1 x 1"}));
  EXPECT_TRUE(refused({.blocks = dim3(1, 65536), .threads = 32}, {"65535", "65536"}));
  EXPECT_TRUE(refused({.blocks = dim3(1, 1, 65536), .threads = 32}, {"65535", "65536"}));
  EXPECT_TRUE(refused({.blocks = 0x80000000u, .threads = 32}, {"2147483647", "2147483648"}));
  EXPECT_EQ(threads_run({.blocks = 100000, .threads = 1}), 100000);
}

TEST(SimtLaunchLimits, DynamicSharedMemory) {
  EXPECT_TRUE(refused({.blocks = 1, .threads = 1, .shared = (227 << 10) + 1}, {"232448", "232449"}));
  EXPECT_EQ(threads_run({.blocks = 1, .threads = 1, .shared = 227 << 10}), 1);
}

TEST(SimtLaunchLimits, Clusters) {
  EXPECT_TRUE(refused({.blocks = 8, .threads = 1, .cluster = 3}, {"x = 8", "not 3"}));
  EXPECT_TRUE(refused({.blocks = dim3(2, 2), .threads = 1, .cluster = 4}, {"x = 2", "not 4"}));
  EXPECT_TRUE(refused({.blocks = 34, .threads = 1, .cluster = 17}, {"1 to 16", "not 17"}));
  EXPECT_TRUE(refused({.blocks = 8, .threads = 1, .cluster = 0}, {"1 to 16", "not 0"}));
  EXPECT_EQ(threads_run({.blocks = 32, .threads = 2, .cluster = 16}), 64);
}

// 8 multiprocessors, each with 2048 threads, 32 blocks and 228 KiB of which every block takes one more than it asked
// for.
TEST(SimtLaunchLimits, CooperativeGridsAreResident) {
  EXPECT_TRUE(refused({.blocks = 17, .threads = 1024, .cooperative = true}, {"17 blocks", "only 16"}));
  EXPECT_TRUE(refused({.blocks = 257, .threads = 32, .cooperative = true}, {"257 blocks", "only 256"}));
  EXPECT_TRUE(refused({.blocks = 9, .threads = 32, .shared = 114 << 10, .cooperative = true}, {"9 blocks", "only 8"}));
  EXPECT_EQ(threads_run({.blocks = 16, .threads = 1024, .cooperative = true}), 16384);
  EXPECT_EQ(threads_run({.blocks = 256, .threads = 32, .cooperative = true}), 8192);
  EXPECT_EQ(threads_run({.blocks = 16, .threads = 32, .shared = 113 << 10, .cooperative = true}), 512);
  EXPECT_EQ(threads_run({.blocks = 300, .threads = 1024}), 307200) << "a plain grid need not be resident";
}

// What the device says can be resident is what it takes, and not one block more.
TEST(SimtLaunchLimits, ResidentBlocks) {
  for (Grid grid : {Grid{.blocks = 1, .threads = 1024}, Grid{.blocks = 1, .threads = 32, .shared = 114 << 10},
                    Grid{.blocks = 1, .threads = 96, .shared = 20000, .cluster = 16},
                    Grid{.blocks = 1, .threads = 1024, .cluster = 16}}) {
    const int blocks = softmax::device::resident_blocks(count, grid);
    EXPECT_EQ(blocks % int(grid.cluster), 0);
    grid.cooperative = true;
    grid.blocks = unsigned(blocks);
    EXPECT_EQ(threads_run(grid), long(blocks) * grid.threads.count());
    grid.blocks = unsigned(blocks) + grid.cluster;
    EXPECT_TRUE(refused(grid, {"only " + std::to_string(blocks)}));
  }
  EXPECT_EQ(softmax::device::resident_blocks(count, {.blocks = 1, .threads = 32, .shared = 228 << 10}), 0);
  EXPECT_EQ(softmax::device::limits().multiprocessors, 8);
  EXPECT_EQ(softmax::device::limits().shared_per_block, 232448);
  EXPECT_EQ(softmax::device::limits().compute_capability, 90);
}

TEST(SimtLaunchLimits, TheLastLaunchIsOnRecord) {
  threads_run({.blocks = dim3(3, 2), .threads = dim3(8, 4), .shared = 100});
  EXPECT_EQ(last_launch().blocks, 6);
  EXPECT_EQ(last_launch().threads, 32);
  EXPECT_EQ(last_launch().shared_bytes, 100);
}

}  // namespace
