// A cluster: blocks that wait for each other and reach into each other's shared memory.
#include <cmath>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
namespace cg = cooperative_groups;

struct Record {
  unsigned rank, blocks;
  int right, pushed;
};

__global__ void exchange(Record* out) {
  SHARED(padding, char[7]);
  SHARED(value, int[64]);
  SHARED(inbox, int);
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned t = threadIdx.x, rank = cluster.block_rank(), blocks = cluster.num_blocks();
  if (t < 7) padding[t] = 0;
  if (t == 0) inbox = -1;  // of a cluster of one, nobody writes
  value[t] = int(1000 * blockIdx.x + t);
  cluster.sync();
  const unsigned right = (rank + 1) % blocks;
  const int read = cluster.map_shared_rank(value, right)[63 - t];
  if (t == 0) *cluster.map_shared_rank(&inbox, right) = int(blockIdx.x);
  cluster.sync();  // a block must not end while others read it
  out[blockIdx.x * 64 + t] = {rank, blocks, read, inbox};
}

// Two clusters that are resident together; each counts to a number of its own.
__global__ void uneven_rounds(int* out) {
  const int rounds = blockIdx.x < 2 ? 3 : 7;
  for (int i = 0; i < rounds; ++i) {
    atomicAdd(&out[blockIdx.x / 2], 1);
    cg::this_cluster().sync();
    if (out[blockIdx.x / 2] < 2 * 8 * (i + 1)) out[2] = 1;  // someone was let through early
    cg::this_cluster().sync();
  }
}

__global__ void ask_for(unsigned rank) {
  SHARED(value, int);
  *cg::this_cluster().map_shared_rank(&value, rank) = 0;
  cg::this_cluster().sync();
}

// Block 1 ends; block 0 asks for it afterwards, or kept an address from before.
__global__ void outlive(int* flag, bool ask_late, float* out) {
  SHARED(value, float);
  const cg::cluster_group cluster = cg::this_cluster();
  value = 1;
  cluster.sync();
  const float* early = cluster.map_shared_rank(&value, 1);
  cluster.sync();
  if (cluster.block_rank() == 1) {
    atomicExch(flag, 1);
    return;
  }
  while (atomicAdd(flag, 0) == 0) __nanosleep(20);
  *out = *(ask_late ? cluster.map_shared_rank(&value, 1) : early);
}

// Block 0 writes into block 1 after that one's end; the block that comes next must not find it.
__global__ void write_late(int* flags, float* found) {
  SHARED(value, float);
  const cg::cluster_group cluster = cg::this_cluster();
  found[blockIdx.x] = value;
  float* const right = cluster.map_shared_rank(&value, 1);
  cluster.sync();
  int* const flag = &flags[blockIdx.x / 2];
  if (cluster.block_rank() == 1) {
    atomicExch(flag, 1);
    return;
  }
  while (atomicAdd(flag, 0) == 0) __nanosleep(20);
  *right = 1;
}

// Works between the halves of the barrier. Slips: 1 writes what others read, 2 reads before it waits, 3 does not wait.
__global__ void arrive_early(int* out, int rounds, int slip) {
  SHARED(value, int[64]);
  SHARED(own, int[64]);
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned t = threadIdx.x, right = (cluster.block_rank() + 1) % cluster.num_blocks();
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    value[t] = int(blockIdx.x * 64 + t) + i;
    cluster.barrier_arrive();
    own[t] = i;
    __syncthreads();
    if (slip == 1) value[t] = 0;
    if (slip == 2) sum += cluster.map_shared_rank(value, right)[63 - t];
    if (slip != 3 || t != 5) cluster.barrier_wait();
    sum += cluster.map_shared_rank(value, right)[63 - t] - own[(t + 1) % 64];
    cluster.sync();
  }
  out[blockIdx.x * 64 + t] = sum;
}

__global__ void wait_only() { cg::this_cluster().barrier_wait(); }
__global__ void leave_between(bool wait) {
  auto token = cg::this_cluster().barrier_arrive();
  if (wait) cg::this_cluster().barrier_wait(static_cast<decltype(token)&&>(token));
}

__global__ void block_one_returns() {
  if (blockIdx.x != 1) cg::this_cluster().sync();
}

TEST(SimtCluster, BlocksReadAndWriteTheirNeighbours) {
  for (const unsigned size : {1u, 2u, 4u, 8u, 16u})
    under_every_schedule([=] {
      std::vector<Record> out(32 * 64);
      launch(exchange, {.blocks = 32, .threads = 64, .cluster = size}, out.data());
      for (unsigned b = 0; b < 32; ++b)
        for (unsigned t = 0; t < 64; ++t) {
          const Record& r = out[b * 64 + t];
          const unsigned first = b / size * size, rank = b % size;
          ASSERT_EQ(r.rank, rank);
          ASSERT_EQ(r.blocks, size);
          ASSERT_EQ(r.right, int(1000 * (first + (rank + 1) % size) + 63 - t)) << "block " << b << ", thread " << t;
          ASSERT_EQ(r.pushed, int(first + (rank + size - 1) % size)) << "block " << b << ", thread " << t;
        }
    });
}

TEST(SimtCluster, ClustersDoNotWaitForEachOther) {
  under_every_schedule([] {
    int out[3] = {};
    launch(uneven_rounds, {.blocks = 4, .threads = 8, .cooperative = true, .cluster = 2}, out);
    EXPECT_EQ(out[0], 3 * 16);
    EXPECT_EQ(out[1], 7 * 16);
    EXPECT_EQ(out[2], 0);
  });
}

TEST(SimtCluster, AnArrivalDoesNotWait) {
  under_every_schedule([] {
    const auto run = [](int slip, std::vector<int>& out) {
      return report([&] { launch(arrive_early, {.blocks = 8, .threads = 64, .cluster = 4}, out.data(), 3, slip); });
    };
    std::vector<int> out(8 * 64);
    EXPECT_EQ(run(0, out), "nothing thrown");
    for (unsigned b = 0; b < 8; ++b)
      for (unsigned t = 0; t < 64; ++t) ASSERT_EQ(out[b * 64 + t], int(3 * (b / 4 * 256 + (b + 1) % 4 * 64 + 63 - t)));
    EXPECT_TRUE(mentions(run(1, out), {"race: ", "`value`"}));
    EXPECT_NE(run(2, out), "nothing thrown");
    EXPECT_TRUE(mentions(run(3, out), {"without barrier_wait before it, at cluster_test.cu:"}));
  });
}

TEST(SimtCluster, ArrivalsAndWaitsComeInPairs) {
  const auto run = [](auto kernel, auto... args) {
    return report([&] { launch(kernel, {.blocks = 2, .threads = 32, .cluster = 2}, args...); });
  };
  EXPECT_TRUE(mentions(run(wait_only), {"barrier_wait without barrier_arrive at cluster_test.cu:"}));
  EXPECT_EQ(run(leave_between, true), "nothing thrown");
  EXPECT_TRUE(mentions(run(leave_between, false), {"returned between barrier_arrive and barrier_wait"}));
}

TEST(SimtCluster, ARankOutOfRangeIsAFault) {
  EXPECT_NO_THROW(launch(ask_for, {.blocks = 4, .threads = 1, .cluster = 4}, 0u));
  EXPECT_TRUE(mentions(report([] { launch(ask_for, {.blocks = 4, .threads = 1, .cluster = 4}, 4u); }),
                       {"map_shared_rank at cluster_test.cu:", "block 4 of a cluster of 4"}));
  EXPECT_TRUE(
      mentions(report([] { launch(ask_for, {.blocks = 4, .threads = 1}, 1u); }), {"block 1 of a cluster of 1"}));
}

TEST(SimtCluster, ABlockThatHasEndedIsOutOfReach) {
  for (const softmax::Schedule& s : {kForward, kReverse}) {
    const Scheduled scheduled(s);
    int flag = 0;
    float out = 0;
    EXPECT_TRUE(mentions(report([&] { launch(outlive, {.blocks = 2, .threads = 1, .cluster = 2}, &flag, true, &out); }),
                         {"block 1 of the cluster, which has ended"}));
    flag = 0;
    EXPECT_TRUE(
        mentions(report([&] { launch(outlive, {.blocks = 2, .threads = 1, .cluster = 2}, &flag, false, &out); }),
                 {"thread 0 of block 0 loads word 0 of `value` of block 1, which has ended", "cluster_test.cu:"}));
  }
}

TEST(SimtCluster, ALateWriteDoesNotReachTheNextBlock) {
  under_every_schedule([] {
    const Unwatched unwatched;
    int flags[3] = {};
    float found[6] = {};
    launch(write_late, {.blocks = 6, .threads = 1, .cluster = 2}, flags, found);
    for (const float x : found) EXPECT_TRUE(std::isnan(x)) << x;
  });
}

TEST(SimtCluster, ABlockThatReturnedIsMissedAtClusterSync) {
  under_every_schedule([] {
    EXPECT_TRUE(mentions(report([] { launch(block_one_returns, {.blocks = 4, .threads = 32, .cluster = 4}); }),
                         {"not every thread reaches cluster.sync"}));
  });
}

}  // namespace
