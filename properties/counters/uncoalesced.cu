// A mutant for the gate of the counters: V3 with its elements dealt out in runs, as one does on a CPU.
#include "kernels/prelude.hpp"
#include "properties/counters/patterns.hpp"

namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void softmax_uncoalesced(const float* __restrict__ in, float* __restrict__ out, long cols, long in_stride,
                                    long out_stride) {
  const long run = (cols + 31) / 32, first = threadIdx.x * run, end = min(cols, first + run);
  const float* x = in + blockIdx.x * in_stride;
  float* y = out + blockIdx.x * out_stride;

  float max = -INFINITY;
  for (long i = first; i < end; ++i) max = fmaxf(max, x[i]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(kAll, max, step));

  float sum = 0;
  for (long i = first; i < end; ++i) sum += expf(x[i] - max);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step);

  for (long i = first; i < end; ++i) y[i] = expf(x[i] - max) / sum;
}

void launch(const softmax::Problem& p) {
  softmax::device::launch(softmax_uncoalesced, {.blocks = unsigned(p.rows), .threads = 32, .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), p.cols, p.in_stride,
                          p.out_stride);
}

const softmax::Kernel mutant(3, "v3_warp", "a mutant", __FILE__, &softmax::device::machine, launch,
                             {.blocks = {32}, .algorithm = softmax::Algorithm::safe, .reads = 3});

}  // namespace

namespace softmax::counters {
inline namespace SOFTMAX_BACKEND {
const Kernel& uncoalesced() { return mutant; }
}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::counters
