#pragma once
// CUDA's 16-bit numbers as the CPU device speaks them: they are stored and converted, and calculate as floats.

#include "kernels/device/simt/words.hpp"

inline namespace SOFTMAX_BACKEND {

struct alignas(2) __half {
  unsigned short simt_bits;
};
struct alignas(2) __nv_bfloat16 {
  unsigned short simt_bits;
};
// A pair is copied whole, as vectors are.
template <class T>
struct alignas(4) simt_pair {
  union {
    struct {
      T x, y;
    };
    unsigned all;
  };
  simt_pair() = default;
  SIMT_WORD simt_pair(T x, T y) : x(x), y(y) {}
  SIMT_WORD simt_pair(const simt_pair& other) : all(other.all) {}
  SIMT_WORD simt_pair& operator=(const simt_pair& other) { return all = other.all, *this; }
};
using __half2 = simt_pair<__half>;
using __nv_bfloat162 = simt_pair<__nv_bfloat16>;
SIMT_WORD __half2 __halves2half2(__half x, __half y) { return {x, y}; }
SIMT_WORD __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }

SIMT_WORD unsigned short __half_as_ushort(__half x) { return x.simt_bits; }
SIMT_WORD __half __ushort_as_half(unsigned short x) { return {x}; }
SIMT_WORD unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.simt_bits; }
SIMT_WORD __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return {x}; }

// Ten bits of fraction and a bias of 15. As a float's, the bits of a finite half mean 2^-112 of it, subnormal or not.
SIMT_WORD float __half2float(__half x) {
  const unsigned sign = unsigned(x.simt_bits & 0x8000) << 16, rest = unsigned(x.simt_bits & 0x7fff) << 13;
  if (rest > 0x7c00u << 13) return __uint_as_float(0x7fffffff);
  const unsigned bits = rest == 0x7c00u << 13 ? 0x7f800000 : __float_as_uint(__uint_as_float(rest) * 0x1p112f);
  return __uint_as_float(sign | bits);
}
// To the nearest, ties to even: carries run from the fraction into the exponent, as they should.
SIMT_WORD __half __float2half_rn(float x) {
  const unsigned sign = __float_as_uint(x) >> 16 & 0x8000, rest = __float_as_uint(x) & 0x7fffffff;
  unsigned bits;
  if (rest > 0x7f800000)
    return {0x7fff};
  else if (rest >= 0x477ff000)  // 65520 and above
    bits = 0x7c00;
  else if (rest < 0x38800000)  // subnormal: next to 0.5 a float counts in steps of 2^-24 too
    bits = __float_as_uint(__uint_as_float(rest) + 0.5f) - 0x3f000000;
  else
    bits = (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;
  return {static_cast<unsigned short>(sign | bits)};
}
// The upper half of a float.
SIMT_WORD float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float(unsigned(x.simt_bits) << 16); }
SIMT_WORD __nv_bfloat16 __float2bfloat16_rn(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {0x7fff};
  return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
SIMT_WORD float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
SIMT_WORD __half2 __float22half2_rn(float2 v) { return {__float2half_rn(v.x), __float2half_rn(v.y)}; }
SIMT_WORD float2 __bfloat1622float2(__nv_bfloat162 v) { return {__bfloat162float(v.x), __bfloat162float(v.y)}; }
SIMT_WORD __nv_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__float2bfloat16_rn(v.x), __float2bfloat16_rn(v.y)};
}
// Of each two the larger one, of a NaN and a number the number.
// (C's fmaxf makes an exception of signalling ones.)
SIMT_WORD __half __hmax(__half a, __half b) {
  const float x = __half2float(a), y = __half2float(b);
  return x > y || y != y ? a : b;
}
SIMT_WORD __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
SIMT_WORD __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  const float x = __bfloat162float(a), y = __bfloat162float(b);
  return x > y || y != y ? a : b;
}
SIMT_WORD __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
// The low word of (high:low) >> shift % 32.
SIMT_WORD unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31));
}

}  // namespace SOFTMAX_BACKEND
