// Shared memory: one copy a block, one variable a declaration, poisoned before each block.
#include <cmath>
#include <set>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
namespace cg = cooperative_groups;

__global__ void keep_own(int* out) {
  SHARED(value, int);
  SHARED_DYNAMIC(dynamic, int);
  if (threadIdx.x == 0) value = dynamic[0] = int(blockIdx.x);
  cg::this_grid().sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = value * 100 + dynamic[0];
}

// Reads what nobody wrote, then leaves something behind for the next block to find.
__global__ void read_unwritten(float* out) {
  SHARED(value, float[8]);
  SHARED_DYNAMIC(dynamic, float);
  out[2 * blockIdx.x] = value[7];
  out[2 * blockIdx.x + 1] = dynamic[7];
  for (int i = 0; i < 8; ++i) value[i] = dynamic[i] = 1;
}

template <class T>
__device__ void* scratch() {
  SHARED(value, T[4]);
  return value;
}
template <int N>
__device__ void* sized() {
  SHARED(value, int[N]);
  return value;
}

enum { int_scratch, int_scratch_again, float_scratch, sized_4, sized_5, outer, inner, start, start_again, kPointers };
__global__ void addresses(void** out) {
  void** mine = out + threadIdx.x * kPointers;
  mine[int_scratch] = scratch<int>();
  mine[int_scratch_again] = scratch<int>();
  mine[float_scratch] = scratch<float>();
  mine[sized_4] = sized<4>();
  mine[sized_5] = sized<5>();
  SHARED(value, int[4]);
  mine[outer] = value;
  {
    SHARED(value, int[4]);
    mine[inner] = value;
  }
  SHARED_DYNAMIC(dynamic, float);
  mine[start] = dynamic;
  SHARED_DYNAMIC(same, char);
  mine[start_again] = same;
}

__global__ void alignments(std::uintptr_t* out) {
  SHARED(byte, char);
  SHARED(vector, float4[2]);
  SHARED(other_byte, char);
  SHARED(pair, float2);
  SHARED_DYNAMIC(dynamic, float4);
  byte = other_byte = 0;
  out[0] = reinterpret_cast<std::uintptr_t>(&vector) % 16;
  out[1] = reinterpret_cast<std::uintptr_t>(&pair) % 8;
  out[2] = reinterpret_cast<std::uintptr_t>(dynamic) % 16;
}

TEST(SimtShared, EveryBlockHasItsOwn) {
  under_every_schedule([] {
    int out[8 * 40];
    launch(keep_own, {.blocks = 8, .threads = 40, .shared = 4, .cooperative = true}, out);
    for (int i = 0; i < 8 * 40; ++i) ASSERT_EQ(out[i], i / 40 * 101);
  });
}

TEST(SimtShared, EveryBlockStartsPoisoned) {
  under_every_schedule([] {
    const Unwatched unwatched;
    std::vector<float> out(2 * 4 * 2, 0.0f);
    for (int twice = 0; twice < 2; ++twice)
      launch(read_unwritten, {.blocks = 4, .threads = 1, .shared = 32}, out.data() + twice * 8);
    for (const float x : out) EXPECT_TRUE(std::isnan(x)) << x;
  });
}

TEST(SimtShared, ADeclarationIsAVariable) {
  under_every_schedule([] {
    void* of[64][kPointers];
    launch(addresses, {.blocks = 1, .threads = 64, .shared = 16}, &of[0][0]);
    for (const auto& mine : of)
      for (int i = 0; i < kPointers; ++i) ASSERT_EQ(mine[i], of[0][i]) << "the threads of a block share variable " << i;
    EXPECT_EQ(of[0][int_scratch], of[0][int_scratch_again]);
    EXPECT_EQ(of[0][start], of[0][start_again]);
    EXPECT_EQ(std::set<void*>(of[0], of[0] + kPointers).size(), kPointers - 2u);
  });
}

TEST(SimtShared, IsAligned) {
  std::uintptr_t off[3];
  launch(alignments, {.blocks = 1, .threads = 1, .shared = 16}, off);
  EXPECT_EQ(off[0], 0u);
  EXPECT_EQ(off[1], 0u);
  EXPECT_EQ(off[2], 0u);
}

}  // namespace
