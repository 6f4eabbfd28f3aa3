// Cooperative groups: the block and its tiles.
#include <algorithm>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
namespace cg = cooperative_groups;

struct Record {
  unsigned rank, size, meta_rank, meta_size, block_rank, block_size;
  int first, next, partner;
};

template <unsigned Size>
__global__ void describe(Record* out) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<Size> tile = cg::tiled_partition<Size>(block);
  const int me = int(block.thread_rank());
  out[me] = {tile.thread_rank(), tile.size(),      tile.meta_group_rank(), tile.meta_group_size(), block.thread_rank(),
             block.size(),       tile.shfl(me, 0), tile.shfl_down(me, 1),  tile.shfl_xor(me, 1)};
}

struct __align__(8) MaxSum {
  int max, sum;
};
__device__ MaxSum merge(MaxSum a, MaxSum b) { return {max(a.max, b.max), a.sum + b.sum}; }

template <unsigned Size>
__global__ void reduce_pairs(MaxSum* out) {
  const cg::thread_block_tile<Size> tile = cg::tiled_partition<Size>(cg::this_thread_block());
  const int me = int(threadIdx.x);
  out[me] = cg::reduce(tile, MaxSum{me * 37 % 101, me}, merge);
}

// Tiles of one warp meet different numbers of times, then the block meets.
__global__ void tiles_run_apart(int* out) {
  SHARED(value, int[64]);
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const unsigned first = threadIdx.x / 8 * 8;
  value[threadIdx.x] = int(threadIdx.x);
  tile.sync();
  for (unsigned round = 0; round < tile.meta_group_rank(); ++round) {
    const int next = value[first + (threadIdx.x + 1) % 8];
    tile.sync();
    value[threadIdx.x] = next;
    tile.sync();
  }
  block.sync();
  out[threadIdx.x] = value[63 - threadIdx.x];
}

template <unsigned Size>
void check_tile() {
  under_every_schedule([] {
    std::vector<Record> out(96);
    launch(describe<Size>, {.blocks = 1, .threads = dim3(24, 4)}, out.data());
    for (int i = 0; i < 96; ++i) {
      const Record& r = out[std::size_t(i)];
      const int size = int(Size), first = i / size * size;
      ASSERT_EQ(r.rank, unsigned(i - first));
      ASSERT_EQ(r.size, Size);
      ASSERT_EQ(r.meta_rank, unsigned(i / size));
      ASSERT_EQ(r.meta_size, 96 / Size);
      ASSERT_EQ(r.block_rank, unsigned(i));
      ASSERT_EQ(r.block_size, 96u);
      ASSERT_EQ(r.first, first);
      ASSERT_EQ(r.next, i + 1 < first + size ? i + 1 : i);
      ASSERT_EQ(r.partner, i ^ 1);
    }
    std::vector<MaxSum> pairs(96);
    launch(reduce_pairs<Size>, {.blocks = 1, .threads = 96}, pairs.data());
    for (unsigned i = 0; i < 96; ++i) {
      MaxSum expected{-1, 0};
      for (int j = int(i / Size * Size); j < int(i / Size * Size + Size); ++j)
        expected = {std::max(expected.max, j * 37 % 101), expected.sum + j};
      ASSERT_EQ(pairs[i].max, expected.max) << i;
      ASSERT_EQ(pairs[i].sum, expected.sum) << i;
    }
  });
}

TEST(SimtTile, Of32) { check_tile<32>(); }
TEST(SimtTile, Of16) { check_tile<16>(); }
TEST(SimtTile, Of8) { check_tile<8>(); }

TEST(SimtTile, TilesOfAWarpDoNotWaitForEachOther) {
  under_every_schedule([] {
    int out[64];
    launch(tiles_run_apart, {.blocks = 1, .threads = 64}, out);
    for (int i = 0; i < 64; ++i) {
      const int t = 63 - i, tile = t / 8;
      EXPECT_EQ(out[i], tile * 8 + (t + tile) % 8);
    }
  });
}

}  // namespace
