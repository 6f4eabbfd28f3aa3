// Which lane a shuffle reads, against the rules of CUDA's programming guide, for values of 4 and 8 bytes.
#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

enum Kind { idx, up, down, exclusive };
struct __align__(8) Pair {
  int first, second;
  bool operator==(const Pair&) const = default;
};

template <class T>
T value_of(int thread) {
  return T(thread + 1);
}
template <>
Pair value_of(int thread) {
  return {thread + 1, -thread};
}

template <class T>
__global__ void shuffle(const T* in, T* out, Kind kind, int operand, int width) {
  constexpr unsigned mask = 0xffffffffu;
  const T mine = in[threadIdx.x];
  T theirs{};
  if (kind == idx) theirs = __shfl_sync(mask, mine, operand, width);
  if (kind == up) theirs = __shfl_up_sync(mask, mine, unsigned(operand), width);
  if (kind == down) theirs = __shfl_down_sync(mask, mine, unsigned(operand), width);
  if (kind == exclusive) theirs = __shfl_xor_sync(mask, mine, operand, width);
  out[threadIdx.x] = theirs;
}

// A group of `width` lanes is an entity of its own. idx: the operand modulo width. up and down do not wrap; a lane
// without a partner keeps its value. xor may reach into an earlier group, never into a later one.
int source(Kind kind, int lane, int operand, int width) {
  const int group = lane / width, place = lane % width;
  switch (kind) {
    case idx: return group * width + (operand % width + width) % width;
    case up: return place - operand >= 0 ? lane - operand : lane;
    case down: return place + operand < width ? lane + operand : lane;
    case exclusive: return (lane ^ operand) / width <= group ? lane ^ operand : lane;
  }
  return -1;
}

template <class T>
class SimtShuffle : public testing::Test {};
using Types = testing::Types<int, float, double, long, Pair>;
TYPED_TEST_SUITE(SimtShuffle, Types);

TYPED_TEST(SimtShuffle, ReadsTheLaneThatTheGuideSays) {
  constexpr int kThreads = 64;
  TypeParam in[kThreads];
  for (int t = 0; t < kThreads; ++t) in[t] = value_of<TypeParam>(t);
  for (const Kind kind : {idx, up, down, exclusive})
    for (const int width : {32, 16, 8})
      for (const int operand : {0, 1, 2, 5, 7, 8, 15, 16, 24, 31, 32, -1}) {
        if (operand < 0 && kind != idx) continue;
        under_every_schedule([&] {
          TypeParam out[kThreads];
          launch(shuffle<TypeParam>, {.blocks = 1, .threads = kThreads}, in, out, kind, operand, width);
          for (int t = 0; t < kThreads; ++t)
            ASSERT_TRUE(out[t] == in[t / 32 * 32 + source(kind, t % 32, operand, width)])
                << "kind " << kind << ", width " << width << ", operand " << operand << ", thread " << t;
        });
      }
}

// The whole table once more, as numbers that a person can check.
TEST(SimtShuffleTable, WidthEight) {
  const int expected[4][16] = {{3, 3, 3, 3, 3, 3, 3, 3, 11, 11, 11, 11, 11, 11, 11, 11},
                               {0, 1, 2, 0, 1, 2, 3, 4, 8, 9, 10, 8, 9, 10, 11, 12},
                               {3, 4, 5, 6, 7, 5, 6, 7, 11, 12, 13, 14, 15, 13, 14, 15},
                               {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12}};
  int in[32], out[32];
  for (int t = 0; t < 32; ++t) in[t] = t;
  for (const Kind kind : {idx, up, down, exclusive}) {
    launch(shuffle<int>, {.blocks = 1, .threads = 32}, in, out, kind, 3, 8);
    for (int t = 0; t < 16; ++t) EXPECT_EQ(out[t], expected[kind][t]) << "kind " << kind << ", lane " << t;
  }
}

}  // namespace
