#pragma once
// What translate.py puts in front of a plain CUDA file: the contract, the device's words, and for g++ what else nvcc would
// know without an include.

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/prelude.hpp"

#if SOFTMAX_BACKEND_CUDA

namespace softmax::device::plain {
inline namespace SOFTMAX_BACKEND {
// A launch that the GPU refuses says so here, or nowhere.
inline void check_launch() { SOFTMAX_CUDA_CHECK(cudaGetLastError()); }
}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device::plain

#else

#define __constant__ static
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_INF double(INFINITY)

// __shared__ with an alignment of its own.
#define SHARED_ALIGNED(bytes, name, type, dimensions) \
  struct alignas(bytes) name##_aligned {              \
    type value dimensions;                            \
  };                                                  \
  SHARED(name##_box, name##_aligned);                 \
  auto& name = name##_box.value

namespace softmax::device::plain {
inline namespace SOFTMAX_BACKEND {

// kernel<<<blocks, threads, shared, stream>>>(args...). `call` names the kernel, so that templates deduce and overloads
// resolve; the arguments are evaluated once, and are no memory of the kernel's.
class Launch {
 public:
  SIMT_WORD Launch(dim3 blocks, dim3 threads, std::size_t shared = 0, const void* = nullptr)
      : geometry_{.grid = blocks, .block = threads, .dynamic_shared = shared} {}
  template <class Call, class... A>
  SIMT_WORD void operator()(Call call, A... args) const {
    auto body = [&]() __attribute__((no_sanitize_thread)) { call(args...); };
    simt::run(
        geometry_, [](void* b) { (*static_cast<decltype(body)*>(b))(); }, &body);
  }

 private:
  simt::Geometry geometry_;
};

SIMT_WORD void check_launch() {}
// The judge knows this sentence: it is no fault of the kernel's.
[[noreturn]] SIMT_WORD void refuse(const char* what) {
  throw std::runtime_error(std::string("the CPU device has no ") + what);
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device::plain

// The runtime's calls that a launch function may make.
inline namespace SOFTMAX_BACKEND {

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
enum cudaError_t { cudaSuccess, cudaErrorUnknown };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxThreadsPerBlock,
  cudaDevAttrMaxThreadsPerMultiProcessor,
  cudaDevAttrMaxSharedMemoryPerBlock,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrWarpSize,
};
struct cudaDeviceProp {
  int multiProcessorCount, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  size_t sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
};

SIMT_WORD cudaError_t cudaGetLastError() { return cudaSuccess; }
SIMT_WORD cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
SIMT_WORD cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
SIMT_WORD cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
SIMT_WORD const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : "unknown error"; }
SIMT_WORD const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorUnknown"; }
template <class F>
SIMT_WORD cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute, int) {
  return cudaSuccess;
}
SIMT_WORD cudaError_t cudaSetDevice(int) { return cudaSuccess; }
SIMT_WORD cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
SIMT_WORD cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  using Limits = softmax::device::simt::Limits;
  switch (what) {
    case cudaDevAttrMultiProcessorCount: *value = Limits::kProcessors; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = Limits::kThreadsPerBlock; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = Limits::kThreadsPerProcessor; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = int(Limits::kStaticShared); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = int(Limits::kShared); break;
    case cudaDevAttrWarpSize: *value = Limits::kWarp; break;
  }
  return cudaSuccess;
}
SIMT_WORD cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  using Limits = softmax::device::simt::Limits;
  *p = {.multiProcessorCount = Limits::kProcessors,
        .maxThreadsPerBlock = Limits::kThreadsPerBlock,
        .maxThreadsPerMultiProcessor = Limits::kThreadsPerProcessor,
        .sharedMemPerBlock = Limits::kStaticShared,
        .sharedMemPerBlockOptin = Limits::kShared,
        .sharedMemPerMultiprocessor = Limits::kSharedPerProcessor};
  return cudaSuccess;
}
template <class F>
SIMT_WORD cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t) {
  return *blocks = softmax::device::simt::Limits::kThreadsPerProcessor / threads, cudaSuccess;
}

// Memory of a launch's own would be memory that no check knows; a file may name these where it is not judged.
#define SOFTMAX_REFUSED(name)               \
  template <class... A>                     \
  SIMT_WORD cudaError_t name(const A&...) { \
    softmax::device::plain::refuse(#name);  \
  }
SOFTMAX_REFUSED(cudaMalloc)
SOFTMAX_REFUSED(cudaMallocAsync)
SOFTMAX_REFUSED(cudaMallocManaged)
SOFTMAX_REFUSED(cudaMallocHost)
SOFTMAX_REFUSED(cudaFree)
SOFTMAX_REFUSED(cudaFreeAsync)
SOFTMAX_REFUSED(cudaFreeHost)
SOFTMAX_REFUSED(cudaMemcpy)
SOFTMAX_REFUSED(cudaMemcpyAsync)
SOFTMAX_REFUSED(cudaMemset)
SOFTMAX_REFUSED(cudaMemsetAsync)
SOFTMAX_REFUSED(cudaEventCreate)
SOFTMAX_REFUSED(cudaEventRecord)
SOFTMAX_REFUSED(cudaEventSynchronize)
SOFTMAX_REFUSED(cudaEventElapsedTime)
SOFTMAX_REFUSED(cudaEventDestroy)
SOFTMAX_REFUSED(cudaStreamCreate)
SOFTMAX_REFUSED(cudaStreamDestroy)
#undef SOFTMAX_REFUSED

}  // namespace SOFTMAX_BACKEND

#endif
