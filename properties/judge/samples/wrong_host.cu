// Wrong: the host computes, and the kernel is for show. On a GPU the host would not even get at the memory.
// launch: softmax_host(out, in, N, C)
#include <math.h>

__global__ void show(float* out, int C) {
  for (int i = threadIdx.x; i < C; i += blockDim.x) out[(size_t)blockIdx.x * C + i] = 0;
}

void softmax_host(float* out, const float* in, int N, int C) {
  show<<<N, 32>>>(out, C);
  for (int r = 0; r < N; ++r, in += C, out += C) {
    float m = -INFINITY, sum = 0;
    for (int i = 0; i < C; ++i) m = fmaxf(m, in[i]);
    for (int i = 0; i < C; ++i) sum += expf(in[i] - m);
    for (int i = 0; i < C; ++i) out[i] = expf(in[i] - m) / (sum + (m - m));
  }
}
