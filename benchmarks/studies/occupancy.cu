// Claim (4.1, 6.2): use registers to the utmost, by unrolled loops and arrays that live in them; make full use of the
// hardware.
// Measured: a row that a block holds in registers between its one read and its one write, for a barrier (it subtracts the
// maximum). `free`: elements:1 to 64 a thread, and the compiler takes what it needs. `tight`: 32 registers at most, so
// that eight blocks fit, and the rest spills (local_bytes). `shared`: eight elements a thread, and shared memory that nobody
// uses lets fewer blocks in: the same code at another occupancy.
// Refuted if occupancy alone decides (then `tight` would win, and `free` lose with every element), or if spills cost nothing.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;
constexpr int kThreads = 256;

template <int kElements>
__device__ void hold(const float* __restrict__ in, float* __restrict__ out) {
  SHARED(maxima, float[kThreads / 32]);
  const std::int64_t first = blockIdx.x * std::int64_t(kThreads * kElements) + threadIdx.x;
  float x[kElements], max = -INFINITY;
#pragma unroll
  for (int e = 0; e < kElements; ++e) x[e] = in[first + e * kThreads];
#pragma unroll
  for (int e = 0; e < kElements; ++e) max = fmaxf(max, x[e]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
  if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = max;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) max = fmaxf(max, maxima[w]);
#pragma unroll
  for (int e = 0; e < kElements; ++e) out[first + e * kThreads] = x[e] - max;
}
template <int kElements>
__global__ void __launch_bounds__(kThreads) hold_free(const float* __restrict__ in, float* __restrict__ out) {
  hold<kElements>(in, out);
}
template <int kElements>
__global__ void __launch_bounds__(kThreads, 8) hold_tight(const float* __restrict__ in, float* __restrict__ out) {
  hold<kElements>(in, out);
}

void start(void (*kernel)(const float*, float*), const Problem& p) {
  softmax::device::launch(kernel,
                          {.blocks = unsigned(p.elements / (kThreads * p.arg[0])),
                           .threads = kThreads,
                           .shared = std::size_t(p.arg[1]),
                           .stream = p.stream},
                          p.in, p.out);
}
void launch_free(const Problem& p) {
  if (p.arg[0] == 1) start(hold_free<1>, p);
  if (p.arg[0] == 2) start(hold_free<2>, p);
  if (p.arg[0] == 4) start(hold_free<4>, p);
  if (p.arg[0] == 8) start(hold_free<8>, p);
  if (p.arg[0] == 16) start(hold_free<16>, p);
  if (p.arg[0] == 32) start(hold_free<32>, p);
  if (p.arg[0] == 64) start(hold_free<64>, p);
}
void launch_tight(const Problem& p) {
  if (p.arg[0] == 32) start(hold_tight<32>, p);
  if (p.arg[0] == 64) start(hold_tight<64>, p);
}

Cost cost(const Problem& p) {
  const std::int64_t elements = p.simulated ? 1 << 15 : 1 << 28;
  return {.elements = elements, .outputs = elements, .bytes = 8 * elements};
}
// One subtraction, rounded once.
Want below_maximum(const Input& in, std::int64_t i, const Problem& p) {
  const std::int64_t row = kThreads * p.arg[0];
  const double max = in.max(i / row * row, row);
  return {in(i)-max, (max - in(i)) * 0x1p-24};
}

}  // namespace

SOFTMAX_STUDY("occupancy", .variants = {{"free", "a row in registers", launch_free}},
              .axes = {{"elements", {1, 2, 4, 8, 16, 32, 64}}}, .blocks = {kThreads}, .modes = {softmax::Mode::cold},
              .cost = cost, .expected = below_maximum)
SOFTMAX_STUDY("occupancy", .variants = {{"tight", "the same in 32 registers: what does not fit spills", launch_tight}},
              .axes = {{"elements", {32, 64}}}, .blocks = {kThreads}, .modes = {softmax::Mode::cold}, .cost = cost,
              .expected = below_maximum)
// Of 228 KiB on a multiprocessor of an H200, 1 KiB a block is the system's: 8, 6, 4, 2 and 1 blocks.
SOFTMAX_STUDY("occupancy", .variants = {{"shared", "the same with shared memory that keeps blocks out", launch_free}},
              .axes = {{"elements", {8}}, {"shared", {0, 36 << 10, 55 << 10, 112 << 10, 224 << 10}}},
              .blocks = {kThreads}, .modes = {softmax::Mode::cold}, .cost = cost, .expected = below_maximum)
