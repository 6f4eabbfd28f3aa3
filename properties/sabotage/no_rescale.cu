// Online, but the sum is not rescaled when the maximum grows.
#include "kernels/prelude.hpp"

namespace {

__global__ void softmax_no_rescale(const float* in, float* out, long cols, long in_stride, long out_stride) {
  const float* x = in + blockIdx.x * in_stride;
  float* y = out + blockIdx.x * out_stride;
  float max = -INFINITY, sum = 0;
  for (long i = threadIdx.x; i < cols; i += 32) {
    max = fmaxf(max, x[i]);
    if (max > -INFINITY) sum += expf(x[i] - max);
  }
  for (int step = 16; step > 0; step /= 2) {
    const float other_max = __shfl_xor_sync(0xffffffffu, max, step),
                other_sum = __shfl_xor_sync(0xffffffffu, sum, step);
    const float larger = fmaxf(max, other_max);
    sum = sum * (max == larger ? 1 : expf(max - larger)) +
          other_sum * (other_max == larger ? 1 : expf(other_max - larger));
    max = larger;
  }
  for (long i = threadIdx.x; i < cols; i += 32) y[i] = expf(x[i] - max) / sum;
}

void launch(const softmax::Problem& p) {
  softmax::device::launch(softmax_no_rescale, {.blocks = unsigned(p.rows), .threads = 32, .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), p.cols, p.in_stride,
                          p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(920, "no_rescale", "online without the rescale", launch, .blocks = {32},
               .algorithm = softmax::Algorithm::online, .summation = softmax::Summation::warp)
