#pragma once
// Elements in memory and in arithmetic: fp32, fp16 and bf16 as they lie there, float to calculate with.

#include "kernels/device/device.hpp"

namespace softmax::collective {
inline namespace SOFTMAX_BACKEND {

// N neighbours as they lie in memory, by 32-bit words; those of 8 or 16 bytes are one load or store.
template <class T, int N>
struct Pack {
  static constexpr int kWords = N * int(sizeof(T)) / 4;
  static_assert(kWords == 1 || kWords == 2 || kWords == 4);
  unsigned word[kWords];
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ void from_float(float x, float& to) { to = x; }
__device__ __forceinline__ void from_float(float x, __half& to) { to = __float2half_rn(x); }
__device__ __forceinline__ void from_float(float x, __nv_bfloat16& to) { to = __float2bfloat16_rn(x); }

// Two 16-bit numbers of one word.
__device__ __forceinline__ float2 widen(unsigned word, __half) {
  __half2 both;
  memcpy(&both, &word, 4);
  return __half22float2(both);
}
__device__ __forceinline__ float2 widen(unsigned word, __nv_bfloat16) {
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}
__device__ __forceinline__ unsigned narrow(float2 x, __half) {
  const __half2 both = __float22half2_rn(x);
  unsigned word;
  memcpy(&word, &both, 4);
  return word;
}
__device__ __forceinline__ unsigned narrow(float2 x, __nv_bfloat16) {
  const __nv_bfloat162 both = __float22bfloat162_rn(x);
  unsigned word;
  memcpy(&word, &both, 4);
  return word;
}

// The larger ones of each two; a NaN gives way to a number.
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, __half) {
  __half2 x, y;
  memcpy(&x, &a, 4), memcpy(&y, &b, 4);
  x = __hmax2(x, y);
  memcpy(&a, &x, 4);
  return a;
}
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, __nv_bfloat16) {
  __nv_bfloat162 x, y;
  memcpy(&x, &a, 4), memcpy(&y, &b, 4);
  x = __hmax2(x, y);
  memcpy(&a, &x, 4);
  return a;
}

template <class T, int N>
__device__ __forceinline__ void unpack(const Pack<T, N>& from, float (&to)[N]) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = __uint_as_float(from.word[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const float2 two = widen(from.word[i / 2], T());
      to[i] = two.x, to[i + 1] = two.y;
    }
  }
}
template <class T, int N>
__device__ __forceinline__ Pack<T, N> pack(const float (&from)[N]) {
  Pack<T, N> to;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < N; ++i) to.word[i] = __float_as_uint(from[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) to.word[i / 2] = narrow(make_float2(from[i], from[i + 1]), T());
  }
  return to;
}
// What counts for nothing in a maximum and in a sum.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> nothing() {
  float x[N];
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = -INFINITY;
  return pack<T, N>(x);
}

// `once`: the line is not wanted again and may leave the cache first.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> load(const T* from, bool once) {
  Pack<T, N> to;
  if constexpr (to.kWords == 4) {
    const uint4* at = reinterpret_cast<const uint4*>(from);
    const uint4 w = once ? __ldcs(at) : *at;
    to.word[0] = w.x, to.word[1] = w.y, to.word[2] = w.z, to.word[3] = w.w;
  } else {
    const uint2* at = reinterpret_cast<const uint2*>(from);
    const uint2 w = once ? __ldcs(at) : *at;
    to.word[0] = w.x, to.word[1] = w.y;
  }
  return to;
}
// An assignment of a uint4 may become four stores.
template <class T, int N>
__device__ __forceinline__ void store(T* to, const unsigned (&word)[Pack<T, N>::kWords]) {
  if constexpr (Pack<T, N>::kWords == 4)
    __stwb(reinterpret_cast<uint4*>(to), make_uint4(word[0], word[1], word[2], word[3]));
  else
    __stwb(reinterpret_cast<uint2*>(to), make_uint2(word[0], word[1]));
}

// The i-th of them.
template <class T, int N>
__device__ __forceinline__ void store_one(T* to, const Pack<T, N>& from, int i) {
  if constexpr (sizeof(T) == 4)
    *to = __uint_as_float(from.word[i]);
  else
    *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(from.word[i / 2] >> i % 2 * 16);
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
