// Wrong: a barrier is missing where the array is used again.
// launch: softmax_float4<<<N, 64>>>(reinterpret_cast<float4*>(out), reinterpret_cast<const float4*>(in), C / 4)
// takes: C % 4 == 0 && C <= 8192
#include <cuda_runtime.h>

__global__ void softmax_float4(float4* out, const float4* in, int vectors) {
  __shared__ __align__(16) float partial[64];
  const int t = threadIdx.x;
  const float4* x = in + (size_t)blockIdx.x * vectors;
  float m = -INFINITY;
  for (int i = t; i < vectors; i += 64) {
    const float4 v = x[i];
    m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  partial[t] = m;
  for (int step = 32; step > 0; step /= 2) {
    __syncthreads();
    if (t < step) partial[t] = fmaxf(partial[t], partial[t + step]);
  }
  __syncthreads();
  m = partial[0];
  float sum = 0;
  for (int i = t; i < vectors; i += 64) {
    const float4 v = __ldg(&x[i]);
    sum += expf(v.x - m) + expf(v.y - m) + expf(v.z - m) + expf(v.w - m);
  }
  partial[t] = sum;
  for (int step = 32; step > 0; step /= 2) {
    __syncthreads();
    if (t < step) partial[t] += partial[t + step];
  }
  __syncthreads();
  sum = partial[0] + (m - m);
  for (int i = t; i < vectors; i += 64) {
    const float4 v = x[i];
    out[(size_t)blockIdx.x * vectors + i] =
        make_float4(expf(v.x - m) / sum, expf(v.y - m) / sum, expf(v.z - m) / sum, expf(v.w - m) / sum);
  }
}
