// Copies that go on while their thread does: what waits for them finds them, what does not is caught.
#include <numeric>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

// Two stages: the copy of a round is under way while the one before it is added up.
__global__ void add_up(const float4* in, float* out, int rounds, unsigned ahead, bool commit) {
  SHARED(stage, float4[2][64]);
  const unsigned t = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&stage[0][t], &in[t], 16);
  if (commit) __pipeline_commit();
  for (int i = 0; i < rounds; ++i) {
    if (i + 1 < rounds) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &in[unsigned(i + 1) * 64 + t], 16);
    if (commit) __pipeline_commit();
    __pipeline_wait_prior(ahead);
    const float4 v = stage[i % 2][t];
    sum += v.x + v.y + v.z + v.w;
  }
  out[t] = sum;
}

struct Sums {
  std::vector<float4> in = std::vector<float4>(4 * 64);
  std::vector<float> out = std::vector<float>(64);
  Sums() {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = {float(i), 1, 2, 3};
  }
  std::string run(unsigned ahead, bool commit) {
    return report([&] {
      launch(add_up, {.blocks = 1, .threads = 64}, static_cast<const float4*>(in.data()), out.data(), 4, ahead, commit);
    });
  }
};

TEST(SimtPipeline, AWaitLetsTheLatestGroupsGoOn) {
  under_every_schedule([] {
    for (const unsigned ahead : {0u, 1u}) {
      Sums sums;
      EXPECT_EQ(sums.run(ahead, true), "nothing thrown");
      for (unsigned t = 0; t < 64; ++t) EXPECT_EQ(sums.out[t], float(4 * t + 6 * 64 + 4 * 6));
    }
  });
}

TEST(SimtPipeline, WhatIsNotWaitedForIsNotThere) {
  under_every_schedule([] {
    EXPECT_TRUE(mentions(Sums().run(2, true), {"uninitialised: ", "`stage`", "pipeline_test.cu:"}));
    EXPECT_TRUE(mentions(Sums().run(0, false), {"uninitialised: ", "`stage`"}));  // of no group
  });
}

__global__ void read_neighbours(const float* in, float* out, bool sync, bool wait) {
  SHARED(stage, float[64]);
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(&stage[t], &in[t], 4);
  __pipeline_commit();
  if (wait) __pipeline_wait_prior(0);
  if (sync) __syncthreads();
  if (wait) out[t] = stage[63 - t];
}
TEST(SimtPipeline, AWaitIsOfTheThreadAlone) {
  std::vector<float> in(64), out(64);
  std::iota(in.begin(), in.end(), 0.0f);
  under_every_schedule([&] {
    const auto run = [&](bool sync, bool wait) {
      return report([&] {
        launch(read_neighbours, {.blocks = 1, .threads = 64}, static_cast<const float*>(in.data()), out.data(), sync,
               wait);
      });
    };
    EXPECT_EQ(run(true, true), "nothing thrown");
    for (unsigned t = 0; t < 64; ++t) EXPECT_EQ(out[t], float(63 - t));
    EXPECT_NE(run(false, true), "nothing thrown");
    EXPECT_EQ(run(true, false), "nothing thrown") << "a thread may end first";
  });
}

__global__ void copy_wrongly(const float* in, float* out, unsigned bytes, bool to_shared) {
  SHARED(stage, float[64]);
  __pipeline_memcpy_async(to_shared ? &stage[0] : out, in, bytes);
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
TEST(SimtPipeline, CopiesKeepTheRulesOfMemory) {
  alignas(16) float in[8] = {}, out[8];
  const auto run = [&](const float* from, unsigned bytes, bool to_shared) {
    return report([&] { launch(copy_wrongly, {.blocks = 1, .threads = 1}, from, &out[0], bytes, to_shared); });
  };
  EXPECT_EQ(run(in, 16, true), "nothing thrown");
  EXPECT_TRUE(mentions(run(in, 12, true), {"12 bytes, not 4, 8 or 16", "pipeline_test.cu:"}));
  EXPECT_TRUE(mentions(run(in, 4, false), {"not from global to the block's shared memory"}));
  EXPECT_TRUE(mentions(run(in + 1, 16, true), {"misaligned: ", "loads 16 bytes", "pipeline_test.cu:"}));
}

__global__ void copy_many(const float* in) {
  SHARED(stage, float[32]);
  __pipeline_memcpy_async(&stage[threadIdx.x], &in[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
TEST(SimtPipeline, CopiesAreCountedWhereTheyStand) {
  alignas(128) float in[32] = {};
  softmax::device::machine().watch(softmax::Watch::check);
  launch(copy_many, {.blocks = 1, .threads = 32}, static_cast<const float*>(in));
  const softmax::Profile profile = softmax::device::machine().profile();
  EXPECT_EQ(profile.total.global_load_requests, 1);
  EXPECT_EQ(profile.total.global_load_sectors, 4);
  EXPECT_EQ(profile.total.shared_store_requests, 1);
  ASSERT_EQ(profile.lines.size(), 1u);
  EXPECT_TRUE(profile.lines[0].file.ends_with("pipeline_test.cu"));
}

}  // namespace
