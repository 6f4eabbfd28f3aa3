// Wrong: two columns make it wait for what never comes.
// launch: softmax<<<N, 1>>>(out, in, C)
__global__ void softmax(float* out, const float* in, int C) {
  volatile int wait = C == 2;
  while (wait) {
  }
  const size_t row = (size_t)blockIdx.x * C;
  float m = in[row], sum = 0;
  for (int i = 1; i < C; ++i) m = max(m, in[row + i]);
  for (int i = 0; i < C; ++i) sum += expf(in[row + i] - m);
  for (int i = 0; i < C; ++i) out[row + i] = expf(in[row + i] - m) / (sum + (m - m));
}
