// threadIdx, blockIdx, blockDim, gridDim and the rank of a thread, which decides its warp, in up to three dimensions.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

struct Record {
  dim3 thread, block, block_dim, grid_dim;
  unsigned rank, size, warp_first;  // warp_first: the rank of lane 0
};

__device__ dim3 copy(const softmax::device::simt::Index& i) { return dim3(i.x, i.y, i.z); }

__global__ void record(Record* out, int* next) {
  const cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
  const unsigned rank = block.thread_rank(), mask = __ballot_sync(0xffffffffu, 1);
  out[atomicAdd(next, 1)] = {
      copy(threadIdx), copy(blockIdx), copy(blockDim), copy(gridDim), rank, block.size(), __shfl_sync(mask, rank, 0)};
}

bool same(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

void check(const dim3& grid, const dim3& block) {
  const std::size_t threads = std::size_t(block.count()), blocks = std::size_t(grid.count());
  std::vector<Record> all(threads * blocks);
  int next = 0;
  launch(record, {.blocks = grid, .threads = block}, all.data(), &next);
  ASSERT_EQ(std::size_t(next), all.size());
  std::vector<int> seen(all.size(), 0);
  for (const Record& r : all) {
    ASSERT_TRUE(same(r.block_dim, block) && same(r.grid_dim, grid));
    ASSERT_TRUE(r.thread.x < block.x && r.thread.y < block.y && r.thread.z < block.z);
    ASSERT_TRUE(r.block.x < grid.x && r.block.y < grid.y && r.block.z < grid.z);
    ASSERT_EQ(r.rank, r.thread.x + block.x * (r.thread.y + block.y * r.thread.z)) << "x is the fastest, z the slowest";
    ASSERT_EQ(r.size, threads);
    ASSERT_EQ(r.warp_first, r.rank / 32 * 32);
    ++seen[(r.block.x + grid.x * (r.block.y + grid.y * r.block.z)) * threads + r.rank];
  }
  EXPECT_EQ(seen, std::vector<int>(all.size(), 1)) << "every thread of every block runs once";
}

TEST(SimtIndex, OneDimension) {
  under_every_schedule([] { check(5, 64); });
}
TEST(SimtIndex, TwoDimensions) {
  under_every_schedule([] { check(dim3(2, 3), dim3(16, 6)); });
}
TEST(SimtIndex, ThreeDimensions) {
  under_every_schedule([] { check(dim3(2, 3, 4), dim3(4, 8, 3)); });
}

}  // namespace
