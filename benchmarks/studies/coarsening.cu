// Claim (3.2, 4.1): thread coarsening, several elements a thread, makes fewer threads do more each and pays.
// Measured: sums of rows over 1 GiB in all. A block of 256 takes a row of 256 * elements: with elements:1 every element costs
// a share of a reduction and of a thread's start, with elements:128 next to none. `loop` has one load in flight a thread,
// `unrolled` eight.
// Refuted if one element a thread is as fast as many, or if more elements help `loop` as much as `unrolled`: then it would be
// fixed costs alone, and not loads in flight.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;
constexpr int kThreads = 256;

template <int kBatch>
__device__ float sum_of_mine(const float* x, int elements) {
  float sum = 0;
#pragma unroll 1
  for (int first = 0; first < elements; first += kBatch) {
    float batch[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; ++u) batch[u] = first + u < elements ? x[(first + u) * kThreads] : 0;
#pragma unroll
    for (int u = 0; u < kBatch; ++u) sum += batch[u];
  }
  return sum;
}

template <int kBatch>
__global__ void sum_rows(const float* __restrict__ in, float* __restrict__ out, int elements) {
  SHARED(sums, float[kThreads / 32]);
  float sum = sum_of_mine<kBatch>(in + blockIdx.x * std::int64_t(kThreads) * elements + threadIdx.x, elements);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int w = 1; w < kThreads / 32; ++w) sum += sums[w];
  out[blockIdx.x] = sum;
}

template <int kBatch>
void launch(const Problem& p) {
  softmax::device::launch(
      sum_rows<kBatch>, {.blocks = unsigned(p.elements / kThreads / p.arg[0]), .threads = kThreads, .stream = p.stream},
      p.in, p.out, int(p.arg[0]));
}

Cost cost(const Problem& p) {
  const std::int64_t elements = p.simulated ? 1 << 15 : 1 << 28, sums = elements / kThreads / p.arg[0];
  return {.elements = elements, .outputs = sums, .bytes = 4 * (elements + sums)};
}
// Each of n - 1 additions, in any order, errs by at most 2^-24 of a partial sum, and none is above the sum of absolute values
// by more than what it erred before: 1.01 covers that.
Want row_sum(const Input& in, std::int64_t r, const Problem& p) {
  const std::int64_t n = kThreads * p.arg[0];
  double sum = 0, absolute = 0;
  for (std::int64_t i = r * n; i < (r + 1) * n; ++i) {
    sum += in(i);
    absolute += fabs(double(in(i)));
  }
  return {sum, 1.01 * double(n - 1) * 0x1p-24 * absolute};
}

}  // namespace

SOFTMAX_STUDY("coarsening",
              .variants = {{"loop", "row sums, one load in flight", launch<1>},
                           {"unrolled", "row sums, eight loads in flight", launch<8>}},
              .axes = {{"elements", {1, 2, 4, 8, 16, 32, 64, 128}}}, .blocks = {kThreads},
              .modes = {softmax::Mode::cold}, .cost = cost, .expected = row_sum)
