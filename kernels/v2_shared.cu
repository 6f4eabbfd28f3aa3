// Idea: a block takes a row; each thread folds every blockDim.x-th element, a tree in shared memory the threads.
// Against the previous: a warp's loads are neighbours, so sectors are used whole; no long row waits for one thread.
// Cost: 3 reads and 1 write of every element; 2 log2(block) + 3 barriers; one float of shared memory a thread.
// Limit: a block must be a power of two; half of the threads stop at each step of the tree.
#include "kernels/prelude.hpp"

namespace {

__global__ void softmax_v2(const float* __restrict__ in, float* __restrict__ out, long cols, long in_stride,
                           long out_stride) {
  SHARED_DYNAMIC(partial, float);  // one a thread
  const unsigned thread = threadIdx.x, threads = blockDim.x;
  const float* x = in + blockIdx.x * in_stride;
  float* y = out + blockIdx.x * out_stride;

  float max = -INFINITY;  // stays so in a thread without any element
  for (long i = thread; i < cols; i += threads) max = fmaxf(max, x[i]);
  partial[thread] = max;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) partial[thread] = fmaxf(partial[thread], partial[thread + half]);
  }
  __syncthreads();
  max = partial[0];
  __syncthreads();  // all have read the maximum before any sum overwrites it

  float sum = 0;
  for (long i = thread; i < cols; i += threads) sum += expf(x[i] - max);
  partial[thread] = sum;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) partial[thread] += partial[thread + half];
  }
  __syncthreads();
  sum = partial[0];

  for (long i = thread; i < cols; i += threads) y[i] = expf(x[i] - max) / sum;
}

void launch(const softmax::Problem& p) {
  const unsigned threads = unsigned(p.block);
  softmax::device::launch(
      softmax_v2,
      {.blocks = unsigned(p.rows), .threads = threads, .shared = threads * sizeof(float), .stream = p.stream},
      static_cast<const float*>(p.in), static_cast<float*>(p.out), p.cols, p.in_stride, p.out_stride);
}

}  // namespace

SOFTMAX_KERNEL(2, "v2_shared", "safe: a block a row, tree reductions in shared memory", launch,
               .algorithm = softmax::Algorithm::safe, .summation = softmax::Summation::block_tree, .reads = 3)
