#pragma once
// A right softmax in steps. A saboteur derives from Right and gets one step wrong; the laws must notice.

#include "kernels/prelude.hpp"

namespace softmax::sabotage {
inline namespace SOFTMAX_BACKEND {

struct Right {
  __device__ static float first_max() { return -INFINITY; }
  __device__ static bool keep(float) { return true; }  // does this element count?
  __device__ static float element(float x) { return x; }
  __device__ static long end(long cols) { return cols; }  // of what is summed
  __device__ static unsigned max_warps(unsigned warps) { return warps; }
  __device__ static float reference(float max) { return max; }
  __device__ static float first_sum(float) { return 0; }  // given the sum of the block's previous row
  __device__ static float add(float sum, float e) { return sum + e; }
  __device__ static void barrier() { __syncthreads(); }
  __device__ static float output(float e, float sum, long, long) { return e / sum; }  // of column i out of cols
  __device__ static long written(long cols) { return cols; }
  static long blocks(long rows, long) { return rows < 2 ? rows : 2; }  // so that a block has several rows
};

// A block takes every gridDim.x-th row, with one shared array for both reductions.
template <class S>
__global__ void softmax_in_steps(const float* in, float* out, int rows, long cols, long in_stride, long out_stride) {
  SHARED(partial, float[32]);
  const unsigned thread = threadIdx.x, threads = blockDim.x, warp = thread / 32, warps = threads / 32;
  float sum = 0;
  for (long row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* x = in + row * in_stride;
    float* y = out + row * out_stride;

    float max = S::first_max();
    for (long i = thread; i < S::end(cols); i += threads)
      if (S::keep(x[i])) max = fmaxf(max, S::element(x[i]));
    for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
    if (thread % 32 == 0) partial[warp] = max;
    S::barrier();
    max = partial[0];
    for (unsigned w = 1; w < S::max_warps(warps); ++w) max = fmaxf(max, partial[w]);
    __syncthreads();
    const float reference = S::reference(max);

    sum = S::first_sum(sum);
    for (long i = thread; i < S::end(cols); i += threads)
      if (S::keep(x[i])) sum = S::add(sum, expf(S::element(x[i]) - reference));
    for (int step = 16; step > 0; step /= 2) sum = S::add(sum, __shfl_xor_sync(0xffffffffu, sum, step));
    if (thread % 32 == 0) partial[warp] = sum;
    __syncthreads();
    sum = partial[0];
    for (unsigned w = 1; w < warps; ++w) sum = S::add(sum, partial[w]);
    __syncthreads();

    for (long i = thread; i < S::written(cols); i += threads)
      y[i] = S::output(expf(S::element(x[i]) - reference), sum, i, cols);
  }
}

template <class S>
void launch(const Problem& p) {
  device::launch(softmax_in_steps<S>,
                 {.blocks = unsigned(S::blocks(p.rows, p.block)), .threads = unsigned(p.block), .stream = p.stream},
                 static_cast<const float*>(p.in), static_cast<float*>(p.out), int(p.rows), p.cols, p.in_stride,
                 p.out_stride);
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::sabotage

#define SABOTAGE(version, saboteur, idea)                                                                  \
  SOFTMAX_KERNEL(version, #saboteur, idea, ::softmax::sabotage::launch<saboteur>, .blocks = {32, 96, 256}, \
                 .algorithm = ::softmax::Algorithm::safe, .summation = ::softmax::Summation::block_serial)
