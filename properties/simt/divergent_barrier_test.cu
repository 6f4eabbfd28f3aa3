// A barrier that not every thread of the block reaches stops the launch, with a report of who waits where.
#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

std::string here(int line) { return "divergent_barrier_test.cu:" + std::to_string(line); }

__global__ void half_returns(int* line) {
  if (blockIdx.x == 2 && threadIdx.x >= 32) return;
  *line = __LINE__ + 1;
  __syncthreads();
}

__global__ void some_return(int* line) {
  const unsigned t = threadIdx.x;
  if (t == 0 || t == 2 || (t >= 40 && t < 50)) return;
  *line = __LINE__ + 1;
  __syncthreads();
}

// The same count of barriers on both paths: hardware may let it pass, the CUDA model does not.
__global__ void two_calls(int* lines) {
  lines[0] = __LINE__ + 3;
  lines[1] = __LINE__ + 4;
  if (threadIdx.x % 2)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void stuck_in_warp(int* lines) {
  if (threadIdx.x < 31) {
    lines[0] = __LINE__ + 1;
    __syncwarp();
  }
  lines[1] = __LINE__ + 1;
  __syncthreads();
}

// A barrier that every thread passed once must not count the threads of its next round twice.
__global__ void returns_after_two_rounds(int* line) {
  for (int round = 0; round < 4; ++round) {
    if (round == 2 && threadIdx.x == 63) return;
    *line = __LINE__ + 1;
    __syncthreads();
  }
}

TEST(SimtDivergentBarrier, NamesBlockThreadsAndLineWhenSomeReturned) {
  under_every_schedule([] {
    int line = 0;
    const std::string text = report([&] { launch(half_returns, {.blocks = 4, .threads = 64}, &line); });
    EXPECT_TRUE(mentions(text, {"not every thread reaches __syncthreads: block 2: ",
                                "threads 0-31 wait at __syncthreads at " + here(line), "threads 32-63 returned"}));
  });
}

TEST(SimtDivergentBarrier, WritesThreadsAsRanges) {
  under_every_schedule([] {
    int line = 0;
    const std::string text = report([&] { launch(some_return, {.blocks = 1, .threads = 70}, &line); });
    EXPECT_TRUE(mentions(
        text, {"threads 0, 2, 40-49 returned", "threads 1, 3-39, 50-69 wait at __syncthreads at " + here(line)}));
  });
}

TEST(SimtDivergentBarrier, SeesThreadsAtAnotherCall) {
  under_every_schedule([] {
    int lines[2] = {};
    const std::string text = report([&] { launch(two_calls, {.blocks = 1, .threads = 64}, lines); });
    EXPECT_TRUE(mentions(text, {"different calls of __syncthreads", "block 0: ", here(lines[0]), here(lines[1])}));
  });
}

TEST(SimtDivergentBarrier, SeesThreadsStuckInAWarpOperation) {
  under_every_schedule([] {
    int lines[2] = {};
    const std::string text = report([&] { launch(stuck_in_warp, {.blocks = 1, .threads = 64}, lines); });
    EXPECT_TRUE(mentions(text, {"wait for ever", "block 0: ", "threads 0-30 wait for their warp at " + here(lines[0]),
                                "threads 31-63 wait at __syncthreads at " + here(lines[1])}));
  });
}

TEST(SimtDivergentBarrier, CountsEachRoundAnew) {
  under_every_schedule([] {
    int line = 0;
    const std::string text = report([&] { launch(returns_after_two_rounds, {.blocks = 1, .threads = 64}, &line); });
    EXPECT_TRUE(mentions(text, {"threads 0-62 wait at __syncthreads at " + here(line), "threads 63 returned"}));
  });
}

}  // namespace
