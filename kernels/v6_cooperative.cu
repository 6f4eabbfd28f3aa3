// Idea: (max, sum) is one value with one merge; one cooperative-groups reduce merges the 32 pairs of a warp.
// Against the previous: V5's recurrence, but a warp takes a row, so its loads are neighbours; several rows a block.
// Cost: 2 reads and 1 write of every element; no barrier; 2 x 5 shuffles.
// Limit: a warp a row: with few rows most of the card idles; each lane has few loads in flight.
#include "kernels/prelude.hpp"

namespace cg = cooperative_groups;

namespace {

// Aligned to its 8 bytes, so that a pair in memory would be one load or store. Here it lives in registers, and the reduce
// shuffles its halves one after the other.
struct __align__(8) MaxSum {
  float max, sum;  // sum of exp(x - max) over what was seen
};

// Neither of two empty pairs (-inf, 0) may make a NaN of -inf - -inf, so equal maxima are not rescaled at all.
__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
  const bool a_bigger = a.max > b.max;
  const MaxSum big = a_bigger ? a : b, small = a_bigger ? b : a;
  const float scale = small.max == big.max ? 1.0f : expf(small.max - big.max);
  return {big.max, big.sum + small.sum * scale};
}

__global__ void softmax_v6(const float* __restrict__ in, float* __restrict__ out, int rows, long cols, long in_stride,
                           long out_stride) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const long row = blockIdx.x * long(warp.meta_group_size()) + warp.meta_group_rank();
  if (row >= rows) return;  // the whole warp leaves: nobody waits for it
  const float* x = in + row * in_stride;
  float* y = out + row * out_stride;

  MaxSum seen = {-INFINITY, 0};
  for (long i = warp.thread_rank(); i < cols; i += warp.size()) seen = merge(seen, {x[i], 1});
  const MaxSum all = cg::reduce(warp, seen, merge);
  // A row with +inf, or of nothing but -inf, must be NaN: inf - inf is, and any other maximum adds 0.
  const float sum = all.sum + (all.max - all.max);

  for (long i = warp.thread_rank(); i < cols; i += warp.size()) y[i] = expf(x[i] - all.max) / sum;
}

void launch(const softmax::Problem& p) {
  const unsigned threads = unsigned(p.block), rows_per_block = threads / 32;
  const unsigned blocks = unsigned((p.rows + rows_per_block - 1) / rows_per_block);
  softmax::device::launch(softmax_v6, {.blocks = blocks, .threads = threads, .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), int(p.rows), p.cols, p.in_stride,
                          p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(6, "v6_cooperative", "online: a warp a row, (max, sum) merged by one cooperative-groups reduce", launch,
               .algorithm = softmax::Algorithm::online, .summation = softmax::Summation::warp, .reads = 2)
