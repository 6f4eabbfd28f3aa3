// Claim (3.4, 4.2): a tree in shared memory takes log2(n) steps with a barrier each; shuffles need no barrier and have the
// least latency, but stop at 32 threads; the two together reach a whole block and are nearly as fast.
// Measured: a block alone on its multiprocessor reduces what its threads hold in registers, thousands of times, and each
// result goes into the next (chains:1: latency). With chains:4 four reductions go on at once, which hides latency.
// Refuted if two levels cost as much as the tree at 1024 threads, or five shuffles as much as a tree over 32.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace cg = cooperative_groups;

namespace {

using namespace softmax::studies;

// Over a warp. All lanes get the result.
struct Shuffle {
  static __device__ float warp(float v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
  }
};
struct Group {
  static __device__ float warp(float v) {
    return cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), v, cg::plus<float>());
  }
};
// Over a block, `k` values a thread at once. All threads get the results; `odd` differs from call to call.
template <int k, class>
struct Tree {
  static __device__ void block(float (&v)[k], unsigned) {
    SHARED(partial, float[k][1024]);
    const unsigned t = threadIdx.x;
    for (int c = 0; c < k; ++c) partial[c][t] = v[c];
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (t < half)
        for (int c = 0; c < k; ++c) partial[c][t] += partial[c][t + half];
    }
    __syncthreads();
    for (int c = 0; c < k; ++c) v[c] = partial[c][0];
    __syncthreads();  // all have read before the next call writes
  }
};
// As the article has it: one thread adds what the warps have.
template <int k, class Way>
struct Serial : Way {
  static __device__ void block(float (&v)[k], unsigned) {
    SHARED(partial, float[k][32]);
    for (int c = 0; c < k; ++c) v[c] = Way::warp(v[c]);
    if (threadIdx.x % 32 == 0)
      for (int c = 0; c < k; ++c) partial[c][threadIdx.x / 32] = v[c];
    __syncthreads();
    if (threadIdx.x == 0)
      for (int c = 0; c < k; ++c) {
        for (unsigned w = 1; w < blockDim.x / 32; ++w) v[c] += partial[c][w];
        partial[c][0] = v[c];
      }
    __syncthreads();
    for (int c = 0; c < k; ++c) v[c] = partial[c][0];
    __syncthreads();
  }
};
// Every warp reduces what the warps have: one barrier, since the next call writes elsewhere. A warp alone needs none.
template <int k, class Way>
struct ByWarp : Way {
  static __device__ void block(float (&v)[k], unsigned odd) {
    SHARED(partial, float[2][k][32]);
    const unsigned lane = threadIdx.x % 32;
    for (int c = 0; c < k; ++c) v[c] = Way::warp(v[c]);
    if (blockDim.x == 32) return;
    if (lane == 0)
      for (int c = 0; c < k; ++c) partial[odd][c][threadIdx.x / 32] = v[c];
    __syncthreads();
    for (int c = 0; c < k; ++c) v[c] = Way::warp(lane < blockDim.x / 32 ? partial[odd][c][lane] : 0.0f);
  }
};

template <class Block, int k>
__global__ void chain(const float* in, float* out, int count, float share) {
  float x[k], v[k];
  for (int c = 0; c < k; ++c) v[c] = x[c] = in[c * blockDim.x + threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    Block::block(v, unsigned(i) & 1);
    for (int c = 0; c < k; ++c) v[c] = fmaf(v[c], share, x[c]);
  }
  for (int c = 0; c < k; ++c) out[c * blockDim.x + threadIdx.x] = v[c];
}

constexpr int count(const Problem& p) { return p.simulated ? 3 : p.block < 256 ? 8192 : 2048; }

template <template <int, class> class Block, class Way = Shuffle>
void launch(const Problem& p) {
  softmax::device::launch(p.arg[0] == 1 ? chain<Block<1, Way>, 1> : chain<Block<4, Way>, 4>,
                          {.blocks = 1, .threads = unsigned(p.block), .stream = p.stream}, p.in, p.out, count(p),
                          1.0f / float(p.block));
}

Cost cost(const Problem& p) {
  const std::int64_t values = p.arg[0] * p.block;
  return {.elements = values, .outputs = values, .operations = count(p) * p.arg[0]};
}

// A permutation of 2 - n, 4 - n, ..., n, whose sum is n: so every sum is n larger than the last. All are integers below
// 2^24, so a float holds them exactly.
std::uint32_t word(std::int64_t i, const Problem& p) {
  const std::int64_t n = p.block;
  return __builtin_bit_cast(std::uint32_t, float(2 * (37 * i % n) - n + 2));
}
Want sum(const Input& in, std::int64_t i, const Problem& p) { return {count(p) + double(in(i)), 0}; }

}  // namespace

SOFTMAX_STUDY("reduce",
              .variants = {{"tree", "a tree in shared memory, log2(n) + 2 barriers", launch<Tree>},
                           {"shuffle", "shuffles in each warp, then over the warps", launch<ByWarp>},
                           {"serial", "shuffles in each warp, then one thread over the warps", launch<Serial>},
                           {"cg", "cg::reduce in each warp, then over the warps", launch<ByWarp, Group>}},
              .axes = {{"chains", {1, 4}}}, .blocks = {32, 64, 128, 256, 512, 1024}, .modes = {softmax::Mode::hot},
              .cost = cost, .expected = sum, .word = word)
