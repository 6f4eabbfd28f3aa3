#pragma once
// CUDA's words as the CPU device speaks them: what g++ needs to compile a kernel file as C++.
//
// Kernel files are compiled so that every load and store of theirs can be seen. Whatever they inline must therefore be
// compiled with them and under a name of its own: the linker merges inline functions of one name, and a plain copy
// would hide accesses while a traced copy would report the host's. So all words live in this back end's inline
// namespace and are always inlined, and kernel files call nothing of the standard library.

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/device/simt/executor.hpp"

#define __global__ static
#define __device__ inline __attribute__((always_inline))
#define __host__
#define __forceinline__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define threadIdx (::softmax::device::simt::thread_index())
#define blockIdx (::softmax::device::simt::block_index())
#define blockDim (::softmax::device::simt::block_size())
#define gridDim (::softmax::device::simt::grid_size())
#define warpSize 32
// The C library has declared, but not defined, functions of these names.
#define __expf softmax_expf
#define __exp10f softmax_exp10f
#define __logf softmax_logf
#define __log2f softmax_log2f
#define __powf softmax_powf

// SHARED(name, float[32]) declares one variable for the whole block, SHARED_DYNAMIC(name, float) points at what the
// launch asked for.
#define SHARED(name, ...)                  \
  using name##_type = __VA_ARGS__;         \
  static const char name##_key = 0;        \
  auto& name = *static_cast<name##_type*>( \
      ::softmax::device::simt::shared(&name##_key, #name, sizeof(name##_type), alignof(name##_type)))
#define SHARED_DYNAMIC(name, ...) \
  auto* const name = static_cast<__VA_ARGS__*>(::softmax::device::simt::dynamic_shared())

#define SIMT_WORD [[gnu::always_inline]] inline

inline namespace SOFTMAX_BACKEND {

struct dim3 : softmax::device::simt::Index {
  SIMT_WORD dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : Index{x, y, z} {}
};

// A copy of a vector is one load and one store, as on a GPU: the compiler takes a plain struct apart.
template <class T>
struct alignas(2 * sizeof(T)) simt_vector2 {
  union {
    struct {
      T x, y;
    };
    T all __attribute__((vector_size(2 * sizeof(T))));
  };
  simt_vector2() = default;
  SIMT_WORD simt_vector2(T x, T y) : x(x), y(y) {}
  SIMT_WORD simt_vector2(const simt_vector2& other) : all(other.all) {}
  SIMT_WORD simt_vector2& operator=(const simt_vector2& other) { return all = other.all, *this; }
};
template <class T>
struct alignas(4 * sizeof(T)) simt_vector4 {
  union {
    struct {
      T x, y, z, w;
    };
    T all __attribute__((vector_size(4 * sizeof(T))));
  };
  simt_vector4() = default;
  SIMT_WORD simt_vector4(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
  SIMT_WORD simt_vector4(const simt_vector4& other) : all(other.all) {}
  SIMT_WORD simt_vector4& operator=(const simt_vector4& other) { return all = other.all, *this; }
};
using float2 = simt_vector2<float>;
using float4 = simt_vector4<float>;
using int2 = simt_vector2<int>;
using uint2 = simt_vector2<unsigned>;
using int4 = simt_vector4<int>;
using uint4 = simt_vector4<unsigned>;
struct float3 {
  float x, y, z;
};
SIMT_WORD int2 make_int2(int x, int y) { return {x, y}; }
SIMT_WORD int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
SIMT_WORD uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
SIMT_WORD uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
SIMT_WORD float3 make_float3(float x, float y, float z) { return {x, y, z}; }
SIMT_WORD float2 make_float2(float x, float y) { return {x, y}; }
SIMT_WORD float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace simt_words {
namespace simt = softmax::device::simt;
using simt::Meet;
using simt::Scope;
using simt::Where;

template <class T>
SIMT_WORD T shuffle(unsigned mask, T value, int source, int width, Where where) {
  static_assert(sizeof(T) <= 16);
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) simt::refuse_width(width, where);
  T result;
  simt::meet(Meet::shuffle, mask, &value, &result, sizeof(T), source, where);
  return result;
}
SIMT_WORD int lane() { return int(simt::thread_rank() % 32); }
SIMT_WORD unsigned ballot(unsigned mask, bool predicate, Where where) {
  unsigned result;
  simt::meet(Meet::ballot, mask, &predicate, &result, sizeof predicate, 0, where);
  return result;
}
// One fiber runs at a time, so a read and a write are atomic here.
template <class T, class Operation>
SIMT_WORD T atomic(T* address, Operation operation) {
  T old;
  simt::atomic_load(address, &old, sizeof(T));
  const T wanted = operation(old);
  simt::atomic_store(address, &wanted, sizeof(T));
  return old;
}
// memcpy and memset, so that their accesses are seen: by words where that is possible.
SIMT_WORD void* copy(void* to, const void* from, std::size_t bytes) {
  using Word [[gnu::may_alias]] = unsigned;
  const auto any = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (any % 4 == 0)
    for (std::size_t i = 0; i < bytes / 4; ++i) static_cast<Word*>(to)[i] = static_cast<const Word*>(from)[i];
  else
    for (std::size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
SIMT_WORD void* fill(void* to, int value, std::size_t bytes) {
  using Word [[gnu::may_alias]] = unsigned;
  if ((reinterpret_cast<std::uintptr_t>(to) | bytes) % 4 == 0)
    for (std::size_t i = 0; i < bytes / 4; ++i)
      static_cast<Word*>(to)[i] = 0x01010101u * static_cast<unsigned char>(value);
  else
    for (std::size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(value);
  return to;
}
}  // namespace simt_words
#define memcpy(...) simt_words::copy(__VA_ARGS__)
#define memset(...) simt_words::fill(__VA_ARGS__)

SIMT_WORD void __syncthreads(simt_words::Where where = {}) {
  simt_words::simt::barrier(simt_words::Scope::block, false, where);
}
SIMT_WORD int __syncthreads_count(int predicate, simt_words::Where where = {}) {
  return simt_words::simt::barrier(simt_words::Scope::block, predicate != 0, where);
}
SIMT_WORD int __syncthreads_or(int predicate, simt_words::Where where = {}) {
  return simt_words::simt::barrier(simt_words::Scope::block, predicate != 0, where) != 0;
}
SIMT_WORD int __syncthreads_and(int predicate, simt_words::Where where = {}) {
  return simt_words::simt::barrier(simt_words::Scope::block, predicate == 0, where) == 0;
}
SIMT_WORD void __syncwarp(unsigned mask = 0xffffffffu, simt_words::Where where = {}) {
  simt_words::simt::meet(simt_words::Meet::sync, mask, nullptr, nullptr, 0, 0, where);
}

// A segment of `width` lanes exchanges on its own; a source outside of it means the lane itself.
template <class T>
SIMT_WORD T __shfl_sync(unsigned mask, T value, int source, int width = 32, simt_words::Where where = {}) {
  const int lane = simt_words::lane(), first = lane & ~(width - 1);
  return simt_words::shuffle(mask, value, first + (source & (width - 1)), width, where);
}
template <class T>
SIMT_WORD T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, simt_words::Where where = {}) {
  const int lane = simt_words::lane(), last = lane | (width - 1), source = lane + int(delta);
  return simt_words::shuffle(mask, value, source > last ? lane : source, width, where);
}
template <class T>
SIMT_WORD T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, simt_words::Where where = {}) {
  const int lane = simt_words::lane(), first = lane & ~(width - 1), source = lane - int(delta);
  return simt_words::shuffle(mask, value, source < first ? lane : source, width, where);
}
template <class T>
SIMT_WORD T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, simt_words::Where where = {}) {
  const int lane = simt_words::lane(), last = lane | (width - 1), source = lane ^ bits;
  return simt_words::shuffle(mask, value, source > last ? lane : source, width, where);
}
// Of a whole warp; it counts as five shuffles.
template <class T>
SIMT_WORD T __reduce_max_sync(unsigned mask, T value, simt_words::Where where = {}) {
  for (int bits = 16; bits > 0; bits /= 2)
    if (const T other = __shfl_xor_sync(mask, value, bits, 32, where); value < other) value = other;
  return value;
}
SIMT_WORD unsigned __ballot_sync(unsigned mask, int predicate, simt_words::Where where = {}) {
  return simt_words::ballot(mask, predicate != 0, where);
}
SIMT_WORD void __trap(simt_words::Where where = {}) { softmax::device::simt::trap(where); }
// Of a warp that has not diverged; CUDA promises nothing about any other.
SIMT_WORD unsigned __activemask() { return softmax::device::simt::live_lanes(); }
SIMT_WORD int __any_sync(unsigned mask, int predicate, simt_words::Where where = {}) {
  return simt_words::ballot(mask, predicate != 0, where) != 0;
}
SIMT_WORD int __all_sync(unsigned mask, int predicate, simt_words::Where where = {}) {
  return simt_words::ballot(mask, predicate != 0, where) == mask;
}

#define SIMT_ATOMIC(name, wanted)                                                          \
  template <class T>                                                                       \
  SIMT_WORD T name(T* address, std::type_identity_t<T> value) {                            \
    return simt_words::atomic(address, [&]([[maybe_unused]] T old) { return T(wanted); }); \
  }
SIMT_ATOMIC(atomicAdd, old + value)
SIMT_ATOMIC(atomicSub, old - value)
SIMT_ATOMIC(atomicMin, value < old ? value : old)
SIMT_ATOMIC(atomicMax, value > old ? value : old)
SIMT_ATOMIC(atomicAnd, old& value)
SIMT_ATOMIC(atomicOr, old | value)
SIMT_ATOMIC(atomicExch, value)
#undef SIMT_ATOMIC
template <class T>
SIMT_WORD T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return simt_words::atomic(address, [&](T old) { return old == expected ? value : old; });
}
SIMT_WORD unsigned atomicInc(unsigned* address, unsigned last) {
  return simt_words::atomic(address, [&](unsigned old) { return old >= last ? 0 : old + 1; });
}
SIMT_WORD void __threadfence() { softmax::device::simt::fence(softmax::device::simt::Scope::grid); }
SIMT_WORD void __threadfence_block() { softmax::device::simt::fence(softmax::device::simt::Scope::block); }
// Late copies: one is made when its thread waits for it, or ends.
SIMT_WORD void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                       simt_words::Where where = {}) {
  softmax::device::simt::copy_async(shared, global, bytes, where);
}
SIMT_WORD void __pipeline_commit() { softmax::device::simt::commit_copies(); }
SIMT_WORD void __pipeline_wait_prior(std::size_t groups) { softmax::device::simt::wait_copies(groups); }
// A spinning wait must sleep, or the thread that it waits for never runs.
SIMT_WORD void __nanosleep(unsigned, simt_words::Where where = {}) { softmax::device::simt::spin(where); }

#define SIMT_LOAD(name)                \
  template <class T>                   \
  SIMT_WORD T name(const T* address) { \
    return *address;                   \
  }
#define SIMT_STORE(name)                     \
  template <class T>                         \
  SIMT_WORD void name(T* address, T value) { \
    *address = value;                        \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwb)
SIMT_STORE(__stwt)
#undef SIMT_LOAD
#undef SIMT_STORE
SIMT_WORD unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
SIMT_WORD float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
SIMT_WORD int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
SIMT_WORD float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
SIMT_WORD float __expf(float x) { return expf(x); }
SIMT_WORD float __exp10f(float x) { return exp10f(x); }
SIMT_WORD float __logf(float x) { return logf(x); }
SIMT_WORD float __log2f(float x) { return log2f(x); }
SIMT_WORD float __powf(float x, float y) { return powf(x, y); }
SIMT_WORD float __fdividef(float x, float y) { return x / y; }
SIMT_WORD float __fdiv_rn(float x, float y) { return x / y; }
SIMT_WORD float __frcp_rn(float x) { return 1 / x; }
SIMT_WORD float __fadd_rn(float x, float y) { return x + y; }
SIMT_WORD float __fsub_rn(float x, float y) { return x - y; }
SIMT_WORD float __fmul_rn(float x, float y) { return x * y; }
SIMT_WORD float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
#if !__GLIBC_PREREQ(2, 42)  // which has its own
SIMT_WORD float rsqrtf(float x) { return 1 / sqrtf(x); }
#endif

#define SIMT_MIN_MAX(type)                                     \
  SIMT_WORD type min(type a, type b) { return b < a ? b : a; } \
  SIMT_WORD type max(type a, type b) { return a < b ? b : a; }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX
// As fminf and fmaxf, they drop a NaN.
SIMT_WORD float min(float a, float b) { return fminf(a, b); }
SIMT_WORD float max(float a, float b) { return fmaxf(a, b); }
SIMT_WORD double min(double a, double b) { return fmin(a, b); }
SIMT_WORD double max(double a, double b) { return fmax(a, b); }

}  // namespace SOFTMAX_BACKEND

namespace std {
namespace simt_words = ::simt_words;  // std::memcpy(...) is one too
}

namespace softmax::device {
inline namespace SOFTMAX_BACKEND {

// What cuda/hopper.hpp says of them holds here. What a copy brings lands late, when a thread waits for it, and is no part
// of memory for anybody who has not waited.
using Mbarrier = std::uint64_t;
SIMT_WORD void mbarrier_init(Mbarrier* barrier, unsigned arrivals, simt::Where where = {}) {
  simt::mbarrier_init(barrier, arrivals, where);
}
SIMT_WORD void mbarrier_fence_init() {}
SIMT_WORD void mbarrier_expect(Mbarrier* barrier, unsigned bytes, simt::Where where = {}) {
  simt::mbarrier_expect(barrier, bytes, where);
}
SIMT_WORD void mbarrier_wait(Mbarrier* barrier, unsigned parity, simt::Where where = {}) {
  simt::mbarrier_wait(barrier, parity, where);
}
SIMT_WORD void store_async(std::uint64_t* address, std::uint64_t value, Mbarrier* barrier, simt::Where where = {}) {
  simt::store_async(address, value, barrier, where);
}
SIMT_WORD void bulk_load(void* shared, const void* global, unsigned bytes, Mbarrier* barrier, simt::Where where = {}) {
  simt::bulk_load(shared, global, bytes, barrier, where);
}
SIMT_WORD void bulk_prefetch(const void*, unsigned) {}
SIMT_WORD void async_fence() {}
// One access each; volatile ones do not race with each other.
SIMT_WORD void store_relaxed(uint4* address, uint4 value) {
  *reinterpret_cast<volatile decltype(value.all)*>(address) = value.all;
}
SIMT_WORD uint4 load_relaxed(const uint4* address) {
  uint4 value;
  value.all = *reinterpret_cast<const volatile decltype(value.all)*>(address);
  return value;
}
SIMT_WORD void store_relaxed(unsigned* address, unsigned value) { *const_cast<volatile unsigned*>(address) = value; }
SIMT_WORD unsigned load_relaxed(const unsigned* address) { return *const_cast<const volatile unsigned*>(address); }
SIMT_WORD void grid_dependency_wait() {}
SIMT_WORD void cluster_arrive_relaxed(simt::Where where = {}) { simt::arrive(where); }
SIMT_WORD void spin(simt::Where where = {}) { simt::spin(where); }
SIMT_WORD float exp2_approx(float x) {
  const float y = exp2f(x);
  return y < 0x1p-126f ? 0.0f : y;
}
SIMT_WORD void grid_dependency_launch() {}
SIMT_WORD void pause(unsigned) {}

struct Grid {
  dim3 blocks, threads;
  std::size_t shared = 0;  // dynamic, bytes a block
  void* stream = nullptr;
  bool cooperative = false;
  unsigned cluster = 1;
  bool overlap = false;  // here launches follow each other all the same
  SIMT_WORD simt::Geometry geometry() const {
    return {.grid = blocks, .block = threads, .dynamic_shared = shared, .cooperative = cooperative, .cluster = cluster};
  }
};

// Runs kernel(args...) to its end; throws simt::Fault at the first rule it breaks.
template <class... P, class... A>
SIMT_WORD void launch(void (*kernel)(P...), const Grid& grid, A... args) {
  // Arguments are no memory of the kernel's, so their loads are not its loads.
  auto body = [&]() __attribute__((no_sanitize_thread)) { kernel(P(args)...); };
  simt::run(
      grid.geometry(), [](void* b) { (*static_cast<decltype(body)*>(b))(); }, &body);
}

// Blocks of such a launch that can be resident on the whole machine at once; of clusters, those of whole ones. 0 if there
// is no room for any. The number of blocks in `grid` does not matter.
template <class... P>
SIMT_WORD int resident_blocks(void (*)(P...), const Grid& grid) {
  return simt::resident_blocks(grid.geometry());
}

struct Limits {
  int multiprocessors, shared_per_block;  // shared_per_block: bytes that a block can ask for
  int compute_capability;                 // 90 is 9.0
};
SIMT_WORD Limits limits() { return {simt::Limits::kProcessors, int(simt::Limits::kShared), simt::compute_capability}; }

Machine& machine();

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device
