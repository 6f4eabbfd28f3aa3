// A guard against a slow executor: fibers must switch in tens of nanoseconds and accesses be seen in less than that, or
// nobody runs the suite.
#include <cstdio>
#include <ctime>

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

// A thread a row of 256 floats, as V1, then neighbours: what a lane touches next is far away, then near.
constexpr unsigned kRow = 256;
__global__ void accesses(const float* in, float* out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  float sum = 0;
  for (unsigned i = 0; i < kRow; ++i) sum += in[kRow * thread + i];
  for (unsigned i = 0; i < kRow; ++i) out[threads * i + thread] = in[threads * i + thread] + sum;
}

#ifdef SIMT_TEST_SLOW_BUILD
constexpr double kSlowBuild = 20;
#else
constexpr double kSlowBuild = 1;
#endif

// The best of three runs.
void expect_millions_of_accesses_a_second(const char* what, softmax::Watch watch, double millions) {
  constexpr unsigned kBlocks = 8, kThreads = 128;
  constexpr std::size_t kFloats = std::size_t{kBlocks} * kThreads * kRow;
  softmax::Machine& machine = softmax::device::machine();
  softmax::Buffer in(machine, kFloats * sizeof(float)), out(machine, kFloats * sizeof(float));
  machine.fill_noise(in.floats(), kFloats, 1);
  machine.watch(watch);
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const std::clock_t start = std::clock();
    machine.within({{"the input", in.data(), 1, kFloats, kFloats, sizeof(float), softmax::Region::Use::input},
                    {"the output", out.data(), 1, kFloats, kFloats, sizeof(float), softmax::Region::Use::output}},
                   [&] { launch(accesses, {.blocks = kBlocks, .threads = kThreads}, in.floats(), out.floats()); });
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;  // of this process, not of others beside it
    best = std::fmax(best, double(3 * kFloats) / seconds / 1e6);
  }
  EXPECT_EQ(machine.profile().accesses, 3 * 3 * std::int64_t(kFloats));
  machine.watch(softmax::Watch::check);
  std::printf("%s: %.1f million accesses a second\n", what, best);
  EXPECT_GT(best, millions / kSlowBuild);
}

template <class Run>
void expect_at_most_a_microsecond_each(const char* what, long switches, Run run) {
  const std::clock_t start = std::clock();
  run();
  const double each = 1e9 * double(std::clock() - start) / CLOCKS_PER_SEC / double(switches);
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
TEST(SimtSpeed, AccessesAreCounted) { expect_millions_of_accesses_a_second("counting", softmax::Watch::count, 10); }
TEST(SimtSpeed, AccessesAreChecked) { expect_millions_of_accesses_a_second("checking", softmax::Watch::check, 3); }

}  // namespace
