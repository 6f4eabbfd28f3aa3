// Votes of a warp and of a block.
#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

struct Votes {
  unsigned ballot;
  int any, all;
};

__global__ void vote(const int* predicate, Votes* out, unsigned mask) {
  if (!(mask >> threadIdx.x % 32 & 1)) return;
  const int p = predicate[threadIdx.x];
  out[threadIdx.x] = {__ballot_sync(mask, p), __any_sync(mask, p), __all_sync(mask, p)};
}

__global__ void block_vote(const int* predicate, int* out) {
  const unsigned t = threadIdx.x;
  const int count = __syncthreads_count(predicate[t]);
  const int any = __syncthreads_or(predicate[t]);
  const int all = __syncthreads_and(predicate[t]);
  const int none = __syncthreads_count(0);  // no vote is left from before
  out[t] = count * 8 + any * 4 + all * 2 + (none == 0);
}

// Predicates of lanes, one pattern a warp; 2 and -1 are as true as 1.
int pattern(int warp, int lane) { return warp == 0 ? 0 : warp == 1 ? 2 : warp == 2 ? -(lane % 3 == 0) : lane != 30; }

TEST(SimtVote, AWarpVotesAlone) {
  for (const unsigned mask : {0xffffffffu, 0x0f0ff00fu, 1u << 31})
    under_every_schedule([=] {
      int predicate[128];
      Votes out[128] = {};
      for (int t = 0; t < 128; ++t) predicate[t] = pattern(t / 32, t % 32);
      launch(vote, {.blocks = 1, .threads = 128}, predicate, out, mask);
      for (int t = 0; t < 128; ++t) {
        if (!(mask >> t % 32 & 1)) continue;
        unsigned ballot = 0;
        for (int lane = 0; lane < 32; ++lane)
          if ((mask >> lane & 1) && pattern(t / 32, lane)) ballot |= 1u << lane;
        ASSERT_EQ(out[t].ballot, ballot) << "thread " << t << ", mask " << mask;
        ASSERT_EQ(out[t].any != 0, ballot != 0) << "thread " << t << ", mask " << mask;
        ASSERT_EQ(out[t].all != 0, ballot == mask) << "thread " << t << ", mask " << mask;
      }
    });
}

TEST(SimtVote, ABlockCountsItsThreads) {
  for (const int voters : {0, 1, 77, 199, 200})
    under_every_schedule([=] {
      int predicate[200], out[200];
      for (int t = 0; t < 200; ++t) predicate[t] = t * 7 % 200 < voters ? (t % 2 ? -1 : 2) : 0;
      launch(block_vote, {.blocks = 2, .threads = 200}, predicate, out);
      for (int t = 0; t < 200; ++t) ASSERT_EQ(out[t], voters * 8 + (voters > 0) * 4 + (voters == 200) * 2 + 1) << t;
    });
}

}  // namespace
