// Claim (4.3): wide loads and unrolling, several elements at a time, make a kernel that waits for memory faster.
// Measured: a copy of 256 MiB by as many threads always, few enough that latency shows: two blocks of 256 on each
// multiprocessor of an H200. width:4 to 16 bytes a load, unroll:1 to 8 loads before the first store. `offset-4` begins 4 bytes
// past a line, where 128 bytes of a warp reach into five sectors and two lines.
// Refuted if, at equal bytes in flight (width x unroll), width alone makes a difference, or if neither does.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;

// Pointers that may be to the same make the compiler keep all loads of a batch before all stores, and batches apart.
template <class Vector, int kUnroll>
__global__ void copy(const Vector* in, Vector* out, std::int64_t count, bool skipped) {
  const std::int64_t threads = std::int64_t(gridDim.x) * blockDim.x;
  const std::int64_t mine = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x;
  if (skipped && mine == 0) out[-1] = in[-1];
  Vector batch[kUnroll];
#pragma unroll 1
  for (std::int64_t first = mine; first < count; first += kUnroll * threads) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u * threads < count) batch[u] = in[first + u * threads];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u * threads < count) out[first + u * threads] = batch[u];
  }
}
template <class Vector, int kUnroll>
void start(const Problem& p, std::int64_t skip) {
  softmax::device::launch(copy<Vector, kUnroll>,
                          {.blocks = p.simulated ? 4u : 2 * 132u, .threads = unsigned(p.block), .stream = p.stream},
                          reinterpret_cast<const Vector*>(p.in + skip), reinterpret_cast<Vector*>(p.out + skip),
                          (p.elements - skip) / std::int64_t(sizeof(Vector) / sizeof(float)), skip > 0);
}
template <class Vector>
void unrolled(const Problem& p, std::int64_t skip) {
  if (p.arg[1] == 1) start<Vector, 1>(p, skip);
  if (p.arg[1] == 2) start<Vector, 2>(p, skip);
  if (p.arg[1] == 4) start<Vector, 4>(p, skip);
  if (p.arg[1] == 8) start<Vector, 8>(p, skip);
}
void launch(const Problem& p) {
  if (p.arg[0] == 4) unrolled<float>(p, 0);
  if (p.arg[0] == 8) unrolled<float2>(p, 0);
  if (p.arg[0] == 16) unrolled<float4>(p, 0);
}
void launch_off(const Problem& p) { unrolled<float>(p, 1); }

Cost cost(const Problem& p) {
  const std::int64_t elements = p.simulated ? 1 << 14 : 1 << 26;
  return {.elements = elements, .outputs = elements, .bytes = 8 * elements};
}
Want same(const Input& in, std::int64_t i, const Problem&) { return {in(i), 0}; }

}  // namespace

SOFTMAX_STUDY("access", .variants = {{"aligned", "a copy by a fixed number of threads", launch}},
              .axes = {{"width", {4, 8, 16}}, {"unroll", {1, 2, 4, 8}}}, .blocks = {256},
              .modes = {softmax::Mode::cold}, .cost = cost, .expected = same)
SOFTMAX_STUDY("access", .variants = {{"offset-4", "the same, 4 bytes past a line", launch_off}},
              .axes = {{"width", {4}}, {"unroll", {1, 2, 4, 8}}}, .blocks = {256}, .modes = {softmax::Mode::cold},
              .cost = cost, .expected = same)
