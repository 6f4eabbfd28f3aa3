// Claim (3.4, 4.2): a tree in shared memory takes log2(n) steps with a barrier each; shuffles need no barrier and have the
// least latency, but stop at 32 threads; the two together reach a whole block and are nearly as fast.
// Measured: a block alone on its multiprocessor reduces what its threads hold in registers, thousands of times, and each
// result goes into the next (chains:1: latency). With chains:4 four reductions go on at once, which hides latency.
// Refuted if two levels cost as much as the tree at 1024 threads, or a shuffle as much as a step of the tree.
// `redux` is one instruction for a warp, but sm_90 has it for integers only: a float maximum goes through integers of the
// same order, and a float sum cannot. Its rows, and `warp-max` beside them, are maxima; all others are sums.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace cg = cooperative_groups;

namespace {

using namespace softmax::studies;
constexpr unsigned kAll = 0xffffffffu;

// Over a warp. All lanes get the result.
struct Shuffle {
  static constexpr bool kMax = false;
  static __device__ float warp(float v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(kAll, v, step);
    return v;
  }
};
struct ShuffleMax {
  static constexpr bool kMax = true;
  static __device__ float warp(float v) {
    for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAll, v, step));
    return v;
  }
};
struct Group {
  static constexpr bool kMax = false;
  static __device__ float warp(float v) {
    return cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), v, cg::plus<float>());
  }
};
struct Redux {
  static constexpr bool kMax = true;
  // Of a negative float all bits but the sign count the other way. The same again is the way back.
  static __device__ int ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
  static __device__ float warp(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    __trap();
    return v;
#else
    return __int_as_float(ordered(__reduce_max_sync(kAll, ordered(__float_as_int(v)))));
#endif
  }
};

// Over a block, `k` values a thread at once. All threads get the results; `odd` differs from call to call.
template <int k>
struct Tree {
  static constexpr bool kMax = false;
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
template <int k, class Way>
struct OneWarp : Way {
  static __device__ void block(float (&v)[k], unsigned) {
    for (int c = 0; c < k; ++c) v[c] = Way::warp(v[c]);
  }
};
// As the article has it: one thread adds what the warps have.
template <int k>
struct Serial : Shuffle {
  static __device__ void block(float (&v)[k], unsigned) {
    SHARED(partial, float[k][32]);
    for (int c = 0; c < k; ++c) v[c] = warp(v[c]);
    if (threadIdx.x % 32 == 0)
      for (int c = 0; c < k; ++c) partial[c][threadIdx.x / 32] = v[c];
    __syncthreads();
    if (threadIdx.x == 0)
      for (int c = 0; c < k; ++c) {
        float sum = partial[c][0];
        for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += partial[c][w];
        partial[c][0] = sum;
      }
    __syncthreads();
    for (int c = 0; c < k; ++c) v[c] = partial[c][0];
    __syncthreads();
  }
};
// Every warp reduces what the warps have: one barrier, since the next call writes elsewhere.
template <int k, class Way>
struct ByWarp : Way {
  static __device__ void block(float (&v)[k], unsigned odd) {
    SHARED(partial, float[2][k][32]);
    const unsigned lane = threadIdx.x % 32;
    for (int c = 0; c < k; ++c) v[c] = Way::warp(v[c]);
    if (lane == 0)
      for (int c = 0; c < k; ++c) partial[odd][c][threadIdx.x / 32] = v[c];
    __syncthreads();
    for (int c = 0; c < k; ++c)
      v[c] = Way::warp(lane < blockDim.x / 32 ? partial[odd][c][lane] : Way::kMax ? -INFINITY : 0.0f);
  }
};

template <class Way, int k>
__global__ void chain(const float* in, float* out, int count) {
  const unsigned first = blockIdx.x * k * blockDim.x + threadIdx.x;
  float x[k], v[k];
  for (int c = 0; c < k; ++c) v[c] = x[c] = in[first + c * blockDim.x];
  const float scale = Way::kMax ? 1.0f : 1.0f / float(blockDim.x);
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    Way::block(v, unsigned(i) & 1);
    for (int c = 0; c < k; ++c) v[c] = fmaf(v[c], scale, x[c]);
  }
  for (int c = 0; c < k; ++c) out[first + c * blockDim.x] = v[c];
}

// Blocks do the same on multiprocessors of their own; each has its largest value elsewhere.
constexpr unsigned blocks(const Problem& p) { return p.simulated ? 2 : 32; }
constexpr int count(const Problem& p) { return p.simulated ? 4 : 8192; }

template <class One, class Four>
void launch(const Problem& p) {
  softmax::device::launch(p.arg[0] == 1 ? chain<One, 1> : chain<Four, 4>,
                          {.blocks = blocks(p), .threads = unsigned(p.block), .stream = p.stream}, p.in, p.out,
                          count(p));
}

Cost cost(const Problem& p) {
  const std::int64_t values = blocks(p) * p.arg[0] * p.block;
  return {.elements = values, .outputs = values, .operations = count(p) * p.arg[0]};
}

// A permutation of 2 - n, 4 - n, ..., n, whose sum is n: so every sum is n larger than the last, and every maximum too. All
// are integers below 2^24, so a float holds them exactly.
std::uint32_t word(std::int64_t i, const Problem& p) {
  const std::int64_t n = p.block, t = i % n + 33 * (i / n);
  return __builtin_bit_cast(std::uint32_t, float(2 * (37 * t % n) - n + 2));
}
Want sums(const Input& in, std::int64_t i, const Problem& p) { return {count(p) + double(in(i)), 0}; }
Want maxima(const Input& in, std::int64_t i, const Problem& p) { return {double(count(p)) * p.block + in(i), 0}; }

#define TREE \
  { "tree", "a tree in shared memory, log2(n) + 2 barriers", launch<Tree<1>, Tree<4>> }
#define BLOCK_SUMS                                                                                                 \
  {                                                                                                                \
    TREE, {"serial", "shuffles in each warp, then one thread adds the warps' sums", launch<Serial<1>, Serial<4>>}, \
        {"warp", "shuffles in each warp, then in all over the warps' sums",                                        \
         launch<ByWarp<1, Shuffle>, ByWarp<4, Shuffle>>},                                                          \
    {                                                                                                              \
      "cg", "the same by cg::reduce", launch<ByWarp<1, Group>, ByWarp<4, Group>>                                   \
    }                                                                                                              \
  }

}  // namespace

SOFTMAX_STUDY("reduce", .variants = BLOCK_SUMS, .axes = {{"chains", {1}}}, .blocks = {64, 128, 256, 512, 1024},
              .modes = {softmax::Mode::hot}, .cost = cost, .expected = sums, .word = word)
SOFTMAX_STUDY("reduce", .variants = BLOCK_SUMS, .axes = {{"chains", {4}}}, .blocks = {256, 1024},
              .modes = {softmax::Mode::hot}, .cost = cost, .expected = sums, .word = word)
SOFTMAX_STUDY("reduce",
              .variants = {TREE,
                           {"shuffle", "five shuffles", launch<OneWarp<1, Shuffle>, OneWarp<4, Shuffle>>},
                           {"cg", "cg::reduce", launch<OneWarp<1, Group>, OneWarp<4, Group>>}},
              .axes = {{"chains", {1, 4}}}, .blocks = {32}, .modes = {softmax::Mode::hot}, .cost = cost,
              .expected = sums, .word = word)
SOFTMAX_STUDY("reduce",
              .variants = {{"redux", "a maximum by __reduce_max_sync", launch<ByWarp<1, Redux>, ByWarp<4, Redux>>},
                           {"warp-max", "a maximum by shuffles, as `warp`",
                            launch<ByWarp<1, ShuffleMax>, ByWarp<4, ShuffleMax>>}},
              .axes = {{"chains", {1, 4}}}, .blocks = {256, 1024}, .modes = {softmax::Mode::hot}, .cost = cost,
              .expected = maxima, .word = word)
SOFTMAX_STUDY("reduce",
              .variants = {{"redux", "a maximum by __reduce_max_sync", launch<OneWarp<1, Redux>, OneWarp<4, Redux>>},
                           {"shuffle-max", "five shuffles", launch<OneWarp<1, ShuffleMax>, OneWarp<4, ShuffleMax>>}},
              .axes = {{"chains", {1, 4}}}, .blocks = {32}, .modes = {softmax::Mode::hot}, .cost = cost,
              .expected = maxima, .word = word)
