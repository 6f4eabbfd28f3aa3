// A kernel that keeps whole multiprocessors to itself for as long as the host wants.
#include <cuda_runtime.h>

namespace softmax::properties {
namespace {

__global__ void hold(const volatile int* go, volatile int* here) {
  here[blockIdx.x] = 1;
  while (*go == 0) __nanosleep(1000);
}

}  // namespace

// Each block takes all shared memory of a multiprocessor, tells here[block] that it is there, and stays until *go is not 0.
cudaError_t hold_multiprocessors(int blocks, const int* go, int* here, cudaStream_t stream) {
  int shared = 0;
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  hold<<<blocks, 1, shared, stream>>>(go, here);
  return cudaGetLastError();
}

}  // namespace softmax::properties
