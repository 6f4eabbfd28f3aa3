// Claim (3.4): a warp reduces fastest by shuffles.
// Measured: each warp of a block takes the maximum of 32 values in registers, thousands of times, each needed for the next
// (chains:1) or four at once (chains:4): by five shuffles, and by redux, one instruction since sm_80, but on sm_90 for
// integers only. So a float goes through an integer of the same order and back; a float sum cannot. ns/op is for a warp's
// maximum, over all warps of the one block.
// Refuted if redux with both conversions is the faster one.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;
constexpr unsigned kAll = 0xffffffffu;

struct Shuffle {
  static __device__ float max(float v) {
    for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAll, v, step));
    return v;
  }
};
struct Redux {
  // Of a negative float all bits but the sign count the other way. The same again is the way back.
  static __device__ int ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
  static __device__ float max(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    __trap();
    return v;
#else
    return __int_as_float(ordered(__reduce_max_sync(kAll, ordered(__float_as_int(v)))));
#endif
  }
};

template <class Way, int k>
__global__ void chain(const float* in, float* out, int count) {
  const unsigned first = threadIdx.x / 32 * 32 * k + threadIdx.x % 32;
  float x[k], v[k];
  for (int c = 0; c < k; ++c) v[c] = x[c] = in[first + 32 * c];
#pragma unroll 1
  for (int i = 0; i < count; ++i)
    for (int c = 0; c < k; ++c) v[c] = Way::max(v[c]) + x[c];
  for (int c = 0; c < k; ++c) out[first + 32 * c] = v[c];
}

constexpr int count(const Problem& p) { return p.simulated ? 3 : 8192; }

template <class Way>
void launch(const Problem& p) {
  softmax::device::launch(p.arg[0] == 1 ? chain<Way, 1> : chain<Way, 4>,
                          {.blocks = 1, .threads = unsigned(p.block), .stream = p.stream}, p.in, p.out, count(p));
}
Cost cost(const Problem& p) {
  const std::int64_t values = p.arg[0] * p.block;
  return {.elements = values, .outputs = values, .operations = count(p) * p.arg[0] * p.block / 32};
}
// -1 to -32; the -1 is in another lane of every warp. So every maximum is one less than the last.
std::uint32_t word(std::int64_t i, const Problem&) {
  return __builtin_bit_cast(std::uint32_t, float(-1 - 13 * (i + i / 32) % 32));
}
Want max(const Input& in, std::int64_t i, const Problem& p) { return {double(in(i)) - count(p), 0}; }

}  // namespace

SOFTMAX_STUDY("reduce-max",
              .variants = {{"shuffle", "five shuffles", launch<Shuffle>},
                           {.name = "redux",
                            .idea = "__reduce_max_sync on integers of the floats' order",
                            .launch = launch<Redux>,
                            .capability = 80}},
              .axes = {{"chains", {1, 4}}}, .blocks = {32, 1024}, .modes = {softmax::Mode::hot}, .cost = cost,
              .expected = max, .word = word)
