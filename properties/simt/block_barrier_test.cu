// __syncthreads: what any thread of the block did before it, every thread of the block sees after it.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

// Mirrored, so that every thread of the block but the middle one reads what another warp wrote.
__global__ void mirror(int* out) {
  SHARED(value, int[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  value[t] = int(1000 * blockIdx.x + t);
  __syncthreads();
  out[blockIdx.x * n + t] = value[n - 1 - t];
}

// Only a later block meets the barrier, so nothing learnt from the first one may decide who waits.
__global__ void mirror_in_block_two(int* out) {
  SHARED(value, int[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  value[t] = int(1000 * blockIdx.x + t);
  if (blockIdx.x == 2) __syncthreads();
  out[blockIdx.x * n + t] = blockIdx.x == 2 ? value[n - 1 - t] : value[t];
}

__global__ void rotate(int* out, int steps) {
  SHARED(ring, int[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  ring[t] = int(t);
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const int next = ring[(t + 1) % n];
    __syncthreads();
    ring[t] = next;
    __syncthreads();
  }
  out[t] = ring[t];
}

TEST(SimtBlockBarrier, OrdersTheAccessesOfTheBlock) {
  for (const unsigned threads : {1u, 32u, 33u, 100u, 1024u})
    under_every_schedule([=] {
      std::vector<int> out(3 * threads, -1);
      launch(mirror, {.blocks = 3, .threads = threads}, out.data());
      for (unsigned i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], int(1000 * (i / threads) + threads - 1 - i % threads))
            << threads << " threads, element " << i;
    });
}

TEST(SimtBlockBarrier, HoldsWhereOnlyALaterBlockMeetsIt) {
  under_every_schedule([] {
    std::vector<int> out(4 * 96, -1);
    launch(mirror_in_block_two, {.blocks = 4, .threads = 96}, out.data());
    for (unsigned i = 0; i < out.size(); ++i) {
      const unsigned block = i / 96, t = i % 96;
      ASSERT_EQ(out[i], int(1000 * block + (block == 2 ? 95 - t : t))) << "element " << i;
    }
  });
}

TEST(SimtBlockBarrier, HoldsManyTimesInALoop) {
  under_every_schedule([] {
    std::vector<int> out(80, -1);
    launch(rotate, {.blocks = 1, .threads = 80}, out.data(), 333);
    for (int t = 0; t < 80; ++t) ASSERT_EQ(out[std::size_t(t)], (t + 333) % 80);
  });
}

}  // namespace
