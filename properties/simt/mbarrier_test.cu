// Barriers that count bytes, and the copies that they count.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::bulk_load;
using softmax::device::Grid;
using softmax::device::launch;
using softmax::device::Mbarrier;
using softmax::device::mbarrier_expect;
using softmax::device::mbarrier_fence_init;
using softmax::device::mbarrier_init;
using softmax::device::mbarrier_wait;
using softmax::device::store_async;
namespace cg = cooperative_groups;

enum class Slip { none, init, sync, expect, too_few, wait, parity, one_waits, meet, reuse };

// Rounds of a block: thread 0 fetches a row of 64, all add it up.
__global__ void fetch(const float* in, float* out, int rounds, Slip slip) {
  SHARED(full, Mbarrier[2]);
  SHARED_DYNAMIC(row, float);  // two of them
  const unsigned t = threadIdx.x;
  if (t == 0 && slip != Slip::init) {
    mbarrier_init(&full[0], 1);
    mbarrier_init(&full[1], 1);
    mbarrier_fence_init();
  }
  if (slip != Slip::sync) __syncthreads();
  const auto start = [&](int i) {
    Mbarrier* const barrier = &full[i % 2];
    if (slip != Slip::expect) mbarrier_expect(barrier, slip == Slip::too_few ? 128 : 256);
    bulk_load(row + (slip == Slip::reuse ? 0 : i % 2 * 64), in + i * 64, 256, barrier);
  };
  if (t == 0) start(0);
  float sum = 0;
  for (int i = 0; i < rounds; ++i) {
    if (t == 0 && i + 1 < rounds) start(i + 1);
    if (slip == Slip::meet) __syncthreads();
    if (slip != Slip::wait && slip != Slip::meet && (slip != Slip::one_waits || t == 0))
      mbarrier_wait(&full[i % 2], unsigned(i / 2 % 2) ^ (slip == Slip::parity));
    sum += row[(slip == Slip::reuse ? 0 : i % 2 * 64) + (t + 1) % 64];
    __syncthreads();  // before it is overwritten
  }
  out[t] = sum;
}

std::string fetch_rows(Slip slip, std::vector<float>& out) {
  alignas(128) static float in[5 * 64];
  for (int i = 0; i < 5 * 64; ++i) in[i] = float(i);
  return report([&] {
    launch(fetch, {.blocks = 1, .threads = 64, .shared = 512}, static_cast<const float*>(in), out.data(), 5, slip);
  });
}

TEST(SimtMbarrier, PhasesFollowEachOther) {
  under_every_schedule([] {
    std::vector<float> out(64);
    EXPECT_EQ(fetch_rows(Slip::none, out), "nothing thrown");
    for (unsigned t = 0; t < 64; ++t) EXPECT_EQ(out[t], float(5 * ((t + 1) % 64) + 10 * 64));
  });
}

TEST(SimtMbarrier, WhatIsForgottenIsCaught) {
  under_every_schedule([] {
    const auto said = [](Slip slip) {
      std::vector<float> out(64);
      return fetch_rows(slip, out);
    };
    EXPECT_TRUE(mentions(said(Slip::init), {"of an mbarrier that nobody has initialised", "mbarrier_test.cu:"}));
    EXPECT_NE(said(Slip::sync), "nothing thrown");
    EXPECT_TRUE(mentions(said(Slip::wait), {"race: ", "a copy that an mbarrier of block 0 counts"}));
    EXPECT_TRUE(mentions(said(Slip::parity), {"race: "}));
    EXPECT_TRUE(mentions(said(Slip::one_waits), {"race: "}));
    EXPECT_TRUE(mentions(said(Slip::meet), {"race: "})) << "no barrier of threads waits for a copy";
    EXPECT_TRUE(mentions(said(Slip::reuse), {"race: "}));
  });
}

TEST(SimtMbarrier, AWaitForWhatNobodyExpectsIsForEver) {
  std::vector<float> out(64);
  EXPECT_TRUE(mentions(fetch_rows(Slip::expect, out),
                       {"threads spin for ever: ", "threads 0-63 are spinning at mbarrier_test.cu:"}));
  EXPECT_TRUE(mentions(fetch_rows(Slip::too_few, out), {"threads spin for ever: "}));
}

__global__ void fetch_and_leave(const float* in) {
  SHARED(full, Mbarrier);
  SHARED_DYNAMIC(row, float);
  mbarrier_init(&full, 1);
  mbarrier_expect(&full, 64);
  bulk_load(row, in, 64, &full);
}
__global__ void fetch_badly(const float* in, unsigned bytes) {
  SHARED(full, Mbarrier);
  SHARED_DYNAMIC(row, float);
  mbarrier_init(&full, 1);
  mbarrier_expect(&full, bytes);
  bulk_load(row, in, bytes, &full);
  mbarrier_wait(&full, 0);
}
TEST(SimtMbarrier, CopiesKeepTheRules) {
  alignas(16) float in[64] = {};
  const float* const from = in;
  EXPECT_TRUE(mentions(report([&] { launch(fetch_and_leave, {.blocks = 1, .threads = 1, .shared = 64}, from); }),
                       {"block 0 ends while copies to its shared memory are under way"}));
  const auto run = [&](const float* at, unsigned bytes) {
    return report([&] { launch(fetch_badly, {.blocks = 1, .threads = 1, .shared = 128}, at, bytes); });
  };
  EXPECT_EQ(run(from, 128), "nothing thrown");
  EXPECT_TRUE(mentions(run(from, 100), {"multiples of 16 bytes, not 100"}));
  EXPECT_TRUE(mentions(run(from + 1, 16), {"misaligned: "}));
  EXPECT_TRUE(mentions(run(from, 144), {"out of bounds: "}));
}

// Rounds of a cluster: every block tells all others a number of its own and adds up what it hears. Two slots and two
// barriers: who is in round i + 2 has heard of everyone's round i + 1, so everyone has read what came in round i.
__global__ void exchange(std::uint64_t* out, int rounds, Slip slip) {
  SHARED(heard, std::uint64_t[2][16]);
  SHARED(full, Mbarrier[2]);
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned t = threadIdx.x, rank = cluster.block_rank(), blocks = cluster.num_blocks();
  if (t == 0) {
    mbarrier_init(&full[0], 1);
    mbarrier_init(&full[1], 1);
    mbarrier_fence_init();
  }
  cluster.barrier_arrive();
  if (slip != Slip::sync) cluster.barrier_wait();
  std::uint64_t sum = 0;
  for (int i = 0; i < rounds; ++i) {
    const int which = slip == Slip::reuse ? 0 : i % 2, phase = slip == Slip::reuse ? i : i / 2;
    __syncthreads();
    if (t == 0 && slip != Slip::expect) mbarrier_expect(&full[which], 8 * blocks);
    if (t < blocks)
      store_async(cluster.map_shared_rank(&heard[which][rank], t), std::uint64_t(rank + 1) << (8 * i),
                  cluster.map_shared_rank(&full[which], t));
    if (slip != Slip::wait) mbarrier_wait(&full[which], unsigned(phase % 2));
    for (unsigned b = 0; b < blocks; ++b) sum += heard[which][b];
  }
  if (slip == Slip::sync) cluster.barrier_wait();
  cluster.sync();
  out[blockIdx.x * 64 + t] = sum;
}

std::string exchange_in(unsigned blocks, Slip slip, std::vector<std::uint64_t>& out) {
  return report(
      [&] { launch(exchange, {.blocks = 2 * blocks, .threads = 64, .cluster = blocks}, out.data(), 5, slip); });
}

TEST(SimtMbarrier, AClusterExchangesByAsynchronousStores) {
  for (const unsigned blocks : {1u, 2u, 8u, 16u})
    under_every_schedule([=] {
      std::vector<std::uint64_t> out(2 * blocks * 64);
      ASSERT_EQ(exchange_in(blocks, Slip::none, out), "nothing thrown");
      for (const std::uint64_t sum : out) ASSERT_EQ(sum, 0x0101010101u * (std::uint64_t(blocks) * (blocks + 1) / 2));
    });
}

// What tells the barriers of a block apart has 16 bits; a launch may have more of them.
TEST(SimtMbarrier, ALaunchHasAnyNumberOfBarriers) {
  constexpr unsigned kBlocks = 33000;  // two barriers each
  std::vector<std::uint64_t> out(kBlocks * std::size_t(64));
  EXPECT_EQ(report([&] { launch(exchange, {.blocks = kBlocks, .threads = 1}, out.data(), 1, Slip::none); }),
            "nothing thrown");
}

TEST(SimtMbarrier, WhatAClusterForgetsIsCaught) {
  const auto said = [](Slip slip) {
    std::vector<std::uint64_t> out(8 * 64);
    return exchange_in(4, slip, out);
  };
  under_every_schedule([&] {
    EXPECT_NE(said(Slip::sync), "nothing thrown");
    EXPECT_TRUE(mentions(said(Slip::wait), {"race: "}));
    EXPECT_NE(said(Slip::reuse), "nothing thrown");
  });
  EXPECT_TRUE(mentions(said(Slip::expect), {"threads spin for ever: "}));
}

}  // namespace
