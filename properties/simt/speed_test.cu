// A guard against a slow executor: fibers must switch in tens of nanoseconds, or nobody runs the suite.
#include <chrono>
#include <cstdio>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

__global__ void barriers(int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
}
__global__ void shuffles(int count, int* out) {
  int value = int(threadIdx.x);
  for (int i = 0; i < count; ++i) value = __shfl_xor_sync(0xffffffffu, value, 1);
  out[threadIdx.x] = value;
}

template <class Run>
void expect_at_most_a_microsecond_each(const char* what, long switches, Run run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  const double each = time.count() / double(switches);
  std::printf("%s: %.0f ns a switch\n", what, each);
  EXPECT_LT(each, 1000);
}

TEST(SimtSpeed, AThousandBarriersOfAFullBlock) {
  expect_at_most_a_microsecond_each("__syncthreads", 1024 * 1000,
                                    [] { launch(barriers, {.blocks = 1, .threads = 1024}, 1000); });
}
TEST(SimtSpeed, AThousandShufflesOfAFullBlock) {
  int out[1024];
  expect_at_most_a_microsecond_each("__shfl_xor_sync", 1024 * 1000,
                                    [&] { launch(shuffles, {.blocks = 1, .threads = 1024}, 1000, out); });
}

}  // namespace
