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
struct Enclosure {
  Enclosure(const Problem&, std::int64_t) {}
};
inline void end_launch() { SOFTMAX_CUDA_CHECK(cudaGetLastError()); }
inline std::int64_t workspace(const Problem&) { return 0; }
}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device::plain

#else

#include <sys/mman.h>

#define __constant__ static
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_INF double(INFINITY)

// __shared__ with an alignment of its own.
#define SHARED_ALIGNED(bytes, name, type, dimensions)                                                                 \
  struct alignas(bytes) name##_aligned {                                                                              \
    type value dimensions;                                                                                            \
  };                                                                                                                  \
  static const char name##_key = 0;                                                                                   \
  auto& name = static_cast<name##_aligned*>(::softmax::device::simt::shared(                                          \
                                                &name##_key, #name, sizeof(name##_aligned), alignof(name##_aligned))) \
                   ->value

namespace softmax::device::plain {
inline namespace SOFTMAX_BACKEND {

// Memory of the device, which a host does not get at: neither to compute there nor to look what is asked. Its pages are
// the launch's alone (Buffer's guard bands see to that).
struct Pages {
  std::uintptr_t first = 0, last = 0;
  SIMT_WORD void set(const void* at, std::int64_t bytes) {
    constexpr std::uintptr_t kPage = 4096;
    first = reinterpret_cast<std::uintptr_t>(at) / kPage * kPage;
    last = at ? (reinterpret_cast<std::uintptr_t>(at) + std::uintptr_t(bytes) + kPage - 1) / kPage * kPage : first;
  }
  SIMT_WORD void allow(int access) const {
    if (first != last) mprotect(reinterpret_cast<void*>(first), last - first, access);
  }
};
inline Pages pages[3];
SIMT_WORD void allow(int access) {
  for (const Pages& p : pages) p.allow(access);
}
// Until it goes, also by an exception.
struct Allowed {
  SIMT_WORD Allowed() { allow(PROT_READ | PROT_WRITE); }
  SIMT_WORD ~Allowed() { allow(PROT_NONE); }
};

// kernel<<<blocks, threads, shared, stream>>>(args...). `call` names the kernel, so that templates deduce and overloads
// resolve; the arguments are evaluated once, and are no memory of the kernel's.
class Launch {
 public:
  SIMT_WORD Launch(dim3 blocks, dim3 threads, std::size_t shared = 0, const void* = nullptr)
      : geometry_{.grid = blocks, .block = threads, .dynamic_shared = shared} {}
  template <class Call, class... A>
  SIMT_WORD void operator()(Call call, A... args) const {
    auto body = [&]() __attribute__((no_sanitize_thread)) { call(args...); };
    const Allowed allowed;
    simt::run(
        geometry_, [](void* b) { (*static_cast<decltype(body)*>(b))(); }, &body);
  }

 private:
  simt::Geometry geometry_;
};

// The judge knows this sentence: it is no fault of the kernel's.
[[noreturn]] SIMT_WORD void refuse(const char* what) {
  throw std::runtime_error(std::string("the CPU device has no ") + what);
}

// Memory that a launch function allocates comes out of the workspace, which the checks know, and goes back before it ends.
struct Scratch {
  char *next = nullptr, *end = nullptr;
  int pieces = 0;
};
inline Scratch scratch;
SIMT_WORD std::int64_t workspace(const Problem& p) { return 8 * p.rows * p.cols + 1024 * p.rows + (1 << 16); }
// Around the launch function.
struct Enclosure {
  SIMT_WORD Enclosure(const Problem& p, std::int64_t workspace_bytes) {
    scratch.next = static_cast<char*>(p.workspace);
    scratch.end = scratch.next + workspace_bytes;
    scratch.pieces = 0;
    const std::int64_t bytes = p.rows * p.cols * std::int64_t(sizeof(float));
    pages[0].set(p.in, bytes);
    pages[1].set(p.out, bytes);
    pages[2].set(p.workspace, workspace_bytes);
    allow(PROT_NONE);
  }
  SIMT_WORD ~Enclosure() { allow(PROT_READ | PROT_WRITE); }
};
SIMT_WORD void end_launch() {
  if (scratch.pieces > 0) refuse("memory that outlives a launch (cudaMalloc without cudaFree)");
}
SIMT_WORD void* allocate(std::size_t bytes) {
  char* const piece = scratch.next;
  const std::size_t rounded = (bytes + 255) / 256 * 256;
  if (rounded > std::size_t(scratch.end - scratch.next)) refuse("memory of that size for cudaMalloc");
  scratch.next += rounded;
  ++scratch.pieces;
  return piece;
}
// As a kernel of its own, so that what it writes counts as written.
SIMT_WORD void set(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return;
  Launch(unsigned((bytes + 4095) / 4096), 32)(
      [](unsigned char* at, unsigned char byte, std::size_t count) {
        for (std::size_t i = blockIdx.x * std::size_t(4096) + threadIdx.x;
             i < count && i < (blockIdx.x + 1) * std::size_t(4096); i += 32)
          at[i] = byte;
      },
      static_cast<unsigned char*>(to), static_cast<unsigned char>(value), bytes);
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

template <class T>
SIMT_WORD cudaError_t cudaMalloc(T** to, size_t bytes) {
  *to = static_cast<T*>(softmax::device::plain::allocate(bytes));
  return cudaSuccess;
}
template <class T>
SIMT_WORD cudaError_t cudaMallocAsync(T** to, size_t bytes, cudaStream_t) {
  return cudaMalloc(to, bytes);
}
SIMT_WORD cudaError_t cudaFree(void* piece) {
  return softmax::device::plain::scratch.pieces -= piece != nullptr, cudaSuccess;
}
SIMT_WORD cudaError_t cudaFreeAsync(void* piece, cudaStream_t) { return cudaFree(piece); }
SIMT_WORD cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return softmax::device::plain::set(to, value, bytes), cudaSuccess;
}
SIMT_WORD cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(to, value, bytes);
}

// A file may name these where it is not judged.
#define SOFTMAX_REFUSED(name)               \
  template <class... A>                     \
  SIMT_WORD cudaError_t name(const A&...) { \
    softmax::device::plain::refuse(#name);  \
  }
SOFTMAX_REFUSED(cudaMallocManaged)
SOFTMAX_REFUSED(cudaMallocHost)
SOFTMAX_REFUSED(cudaFreeHost)
SOFTMAX_REFUSED(cudaMemcpy)
SOFTMAX_REFUSED(cudaMemcpyAsync)
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
