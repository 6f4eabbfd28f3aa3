// Idea: one thread takes one row and walks it three times: for the maximum, the sum, and the quotients.
// Against the previous: there is none; this is the definition, made safe, and what the others are measured against.
// Cost: 3 reads and 1 write of every element; no barrier. A load of a warp touches 32 sectors for its 128 bytes.
// Limit: parallelism is the number of rows, and a long row's left-to-right sum is coarse (thousands of ulp).
#include "kernels/prelude.hpp"

namespace {

__global__ void softmax_v1(const float* __restrict__ in, float* __restrict__ out, int rows, long cols, long in_stride,
                           long out_stride) {
  const long row = blockIdx.x * long(blockDim.x) + threadIdx.x;
  if (row >= rows) return;
  const float* x = in + row * in_stride;
  float* y = out + row * out_stride;

  float max = -INFINITY;
  for (long i = 0; i < cols; ++i) max = fmaxf(max, x[i]);

  // fmaxf drops a NaN; exp brings it back into the sum, and so into the whole row.
  float sum = 0;
  for (long i = 0; i < cols; ++i) sum += expf(x[i] - max);

  for (long i = 0; i < cols; ++i) y[i] = expf(x[i] - max) / sum;
}

void launch(const softmax::Problem& p) {
  const unsigned threads = unsigned(p.block), blocks = unsigned((p.rows + threads - 1) / threads);
  softmax::device::launch(softmax_v1, {.blocks = blocks, .threads = threads, .stream = p.stream},
                          static_cast<const float*>(p.in), static_cast<float*>(p.out), int(p.rows), p.cols, p.in_stride,
                          p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(1, "v1_naive", "safe: one thread a row, three passes over global memory", launch,
               .algorithm = softmax::Algorithm::safe, .summation = softmax::Summation::sequential, .reads = 3)
