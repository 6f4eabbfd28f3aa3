// Blocks of a cooperative grid that tell each other numbers through global memory, 16 bytes at once.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
using softmax::device::load_relaxed;
using softmax::device::store_relaxed;

// A word carries its round, so no fence is needed. Two words a block: who is in round i + 2 has heard of all in i + 1.
__global__ void exchange(uint4* words, unsigned* out, int rounds, bool plain) {
  const unsigned blocks = gridDim.x, t = threadIdx.x;
  SHARED(heard, unsigned[32]);
  unsigned sum = 0;
  for (unsigned i = 1; i <= unsigned(rounds); ++i) {
    uint4* const round = words + i % 2 * blocks;
    if (t == 0) store_relaxed(&round[blockIdx.x], make_uint4(i, blockIdx.x + i, 7, i));
    if (t < blocks) {
      uint4 v;
      do {
        v = plain ? round[t] : load_relaxed(&round[t]);
        if (v.x != i) __nanosleep(20);
      } while (v.x != i);
      heard[t] = v.y + (v.w - i);
    }
    __syncthreads();
    for (unsigned b = 0; b < blocks; ++b) sum += heard[b];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + t] = sum;
}

TEST(SimtRelaxed, APayloadInTheWordNeedsNoFence) {
  under_every_schedule([] {
    for (const unsigned blocks : {1u, 3u, 16u}) {
      std::vector<uint4> words(2 * blocks, make_uint4(0, 0, 0, 0));
      std::vector<unsigned> out(blocks * 64);
      launch(exchange, {.blocks = blocks, .threads = 64, .cooperative = true}, words.data(), out.data(), 5, false);
      for (const unsigned sum : out) ASSERT_EQ(sum, 5 * blocks * (blocks - 1) / 2 + 15 * blocks);
    }
  });
}

TEST(SimtRelaxed, APlainLoadRaces) {
  under_every_schedule([] {
    std::vector<uint4> words(6, make_uint4(0, 0, 0, 0));
    std::vector<unsigned> out(3 * 64);
    EXPECT_TRUE(mentions(report([&] {
                           launch(exchange, {.blocks = 3, .threads = 64, .cooperative = true}, words.data(), out.data(),
                                  5, true);
                         }),
                         {"race: ", "relaxed_test.cu:"}));
  });
}

// What lies beside the word is not ordered by it; between fences it is.
__global__ void hand_over(unsigned* flag, float* payload, float* out, bool fences) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *payload = 7;
    if (fences) __threadfence();
    store_relaxed(flag, 1u);
  } else {
    while (load_relaxed(flag) == 0) continue;  // it gives way without sleeping
    if (fences) __threadfence();
    *out = *payload;
  }
}
TEST(SimtRelaxed, APayloadBesideTheWordNeedsFences) {
  for (const bool fences : {false, true})
    under_every_schedule([=] {
      unsigned flag = 0;
      float payload = 0, out = 0;
      const std::string said = report(
          [&] { launch(hand_over, {.blocks = 2, .threads = 32, .cooperative = true}, &flag, &payload, &out, fences); });
      EXPECT_EQ(said.substr(0, 6), fences ? "nothin" : "race: ") << said;
      EXPECT_EQ(out, 7);
    });
}

__global__ void misaligned(unsigned* words) {
  store_relaxed(reinterpret_cast<uint4*>(words + 1), make_uint4(1, 2, 3, 4));
}
TEST(SimtRelaxed, SixteenBytesAreAligned) {
  alignas(16) unsigned words[8] = {};
  EXPECT_TRUE(mentions(report([&] { launch(misaligned, {.blocks = 1, .threads = 1}, &words[0]); }), {"misaligned: "}));
}

}  // namespace
