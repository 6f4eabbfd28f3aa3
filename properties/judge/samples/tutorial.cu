// A block a row, warp shuffles, then shared memory: the way of llm.c.
#include <cuda_runtime.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#define CEIL_DIV(m, n) (((m) + (n)-1) / (n))
#define cudaCheck(error) cudaCheck_((error), __FILE__, __LINE__)

static inline void cudaCheck_(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess) {
    printf("%s at %s:%d\n", cudaGetErrorString(error), file, line);
    exit(EXIT_FAILURE);
  }
}

__device__ inline float warpReduceMax(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val = fmaxf(val, __shfl_down_sync(0xFFFFFFFF, val, offset));
  return val;
}

static __device__ __forceinline__ float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(0xFFFFFFFF, val, offset);
  return val;
}

__global__ void softmax(float* out, const float* inp, int N, int C) {
  extern __shared__ float shared[];  // the warps' maxima, then their sums
  const int tid = threadIdx.x, warpId = tid / 32, laneId = tid % 32, warps = blockDim.x / 32;
  float *maxvals = shared, *sumvals = &shared[warps];
  const float* x = inp + (size_t)blockIdx.x * C;
  float* y = out + (size_t)blockIdx.x * C;

  float maxval = -INFINITY;
  for (int i = tid; i < C; i += blockDim.x) maxval = fmaxf(maxval, x[i]);
  maxval = warpReduceMax(maxval);
  if (laneId == 0) maxvals[warpId] = maxval;
  __syncthreads();
  if (tid == 0) {
    float val = maxvals[0];
    for (int i = 1; i < warps; i++) val = fmaxf(val, maxvals[i]);
    maxvals[0] = val;
  }
  __syncthreads();
  const float offset = maxvals[0];

  float sumval = 0.0f;
  for (int i = tid; i < C; i += blockDim.x) {
    y[i] = expf(x[i] - offset);
    sumval += y[i];
  }
  sumval = warpReduceSum(sumval);
  if (laneId == 0) sumvals[warpId] = sumval;
  __syncthreads();
  if (tid == 0) {
    float val = sumvals[0];
    for (int i = 1; i < warps; ++i) val += sumvals[i];
    sumvals[0] = val + (offset - offset);  // a maximum of inf makes a row of NaN
  }
  __syncthreads();
  const float sum = sumvals[0];
  for (int i = tid; i < C; i += blockDim.x) y[i] = y[i] / sum;
}

void softmax_forward(float* out, const float* inp, int N, int C, const int block_size) {
  softmax<<<N, block_size, 2 * (block_size / 32) * sizeof(float)>>>(out, inp, N, C);
  cudaCheck(cudaGetLastError());
}
// launch: softmax_forward(out, in, N, C, 128)

int main() {
  float *in, *out;
  cudaCheck(cudaMalloc(&in, 4096 * sizeof(float)));
  cudaCheck(cudaMalloc(&out, 4096 * sizeof(float)));
  softmax_forward(out, in, 4, 1024, CEIL_DIV(1024, 32) * 32);
  cudaCheck(cudaDeviceSynchronize());
}
