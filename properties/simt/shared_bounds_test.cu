// How much shared memory there is, and what lies behind it.
#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
using softmax::device::simt::last_launch;

__global__ void write_static(int index) {
  SHARED(before, float[32]);
  SHARED(tile, float[32]);
  SHARED(after, float[32]);
  before[threadIdx.x] = tile[threadIdx.x] = after[threadIdx.x] = 0;
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x == 5) tile[index] = 1;
}
__global__ void write_dynamic(int index) {
  SHARED_DYNAMIC(memory, unsigned char);
  if (threadIdx.x == 5) memory[0] = memory[index] = 1;
}

__global__ void fill_static() {
  SHARED(most, char[32 << 10]);
  SHARED(rest, char[16 << 10]);
  most[(32 << 10) - 1] = rest[(16 << 10) - 1] = 1;
}
__global__ void overfill_static() {
  SHARED(most, char[32 << 10]);
  SHARED(too_much, char[(16 << 10) + 4]);
  most[0] = too_much[0] = 1;
}

TEST(SimtSharedBounds, AWritePastTheEndIsAFaultThatNamesTheVariable) {
  under_every_schedule([] {
    EXPECT_NO_THROW(launch(write_static, {.blocks = 3, .threads = 32}, 31));
    EXPECT_TRUE(mentions(report([] { launch(write_static, {.blocks = 3, .threads = 32}, 32); }),
                         {"`tile`", "byte 128", "128 bytes"}));
    EXPECT_TRUE(
        mentions(report([] { launch(write_static, {.blocks = 3, .threads = 32}, 47); }), {"`tile`", "128 bytes"}));
  });
}

TEST(SimtSharedBounds, DynamicMemoryHasAnEndToo) {
  for (const int bytes : {1, 12, 4096, 227 << 10})
    under_every_schedule([=] {
      const softmax::device::Grid grid{.blocks = 2, .threads = 32, .shared = std::size_t(bytes)};
      EXPECT_NO_THROW(launch(write_dynamic, grid, bytes - 1));
      EXPECT_TRUE(mentions(
          report([&] { launch(write_dynamic, grid, bytes); }),
          {"byte " + std::to_string(bytes) + " of `dynamic shared memory`", std::to_string(bytes) + " bytes"}));
    });
}

TEST(SimtSharedBounds, VariablesHave48KiB) {
  EXPECT_NO_THROW(launch(fill_static, {.blocks = 2, .threads = 2}));
  EXPECT_EQ(last_launch().shared_bytes, 48 << 10);
  EXPECT_TRUE(mentions(report([] { launch(overfill_static, {.blocks = 1, .threads = 2}); }), {"48 KiB", "`too_much`"}));
}

TEST(SimtSharedBounds, VariablesAndDynamicMemoryShare227KiB) {
  EXPECT_NO_THROW(launch(fill_static, {.blocks = 1, .threads = 1, .shared = 179 << 10}));
  EXPECT_EQ(last_launch().shared_bytes, 227 << 10);
  EXPECT_TRUE(mentions(report([] { launch(fill_static, {.blocks = 1, .threads = 1, .shared = (179 << 10) + 1}); }),
                       {"`rest`", std::to_string((227 << 10) + 1), std::to_string(227 << 10)}));
}

}  // namespace
