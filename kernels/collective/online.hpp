#pragma once
// The pair that softmax is made of, and its merge over the lanes of a warp.

#include "kernels/device/device.hpp"

namespace softmax::collective {
inline namespace SOFTMAX_BACKEND {

constexpr unsigned kAll = 0xffffffffu;
constexpr float kLog2E = 1.442695041f, kLn2 = 0.6931471806f;
constexpr float kLog2ERest = 1.925963034e-08f;  // what the first lacks

// Of some elements x: their maximum, and the sum of exp((x - max) / temperature). Nothing at all is (-inf, 0).
struct MaxSum {
  float max, sum;
};

// exp((x - max) / temperature) where scale = log2(e) / temperature. The difference comes first: it is exact where it
// matters, and a product of huge numbers would overflow.
__device__ __forceinline__ float shifted_exp(float x, float max, float scale) {
  return device::exp2_approx((x - max) * scale);
}

// log2(e) / temperature as a float, and what that lacks.
struct FineScale {
  float scale, rest;
};
// The same to a few roundings at any distance, as 32-bit outputs show: what the product's rounding took, and what its scale
// lacks, are 60 spacings of the result at a distance of 80. They are given back to first order.
__device__ __forceinline__ float shifted_exp(float x, float max, FineScale by) {
  const float below = x - max, power = below * by.scale, y = device::exp2_approx(power);
  // How much too large the power is. Where that is no number, or a huge one, y is 0 or NaN.
  const float over = fmaxf(fmaf(-below, by.rest, fmaf(-below, by.scale, power)), -1.0f);
  return fmaf(over * -kLn2, y, y);
}
// What is added up feels the errors of its terms by their size, so far ones do not matter.
__device__ __forceinline__ float coarse(FineScale by) { return by.scale; }
__device__ __forceinline__ float coarse(float scale) { return scale; }

// What exps are taken relative to. Of nothing but -inf it may not be -inf itself, whose difference is NaN.
__device__ __forceinline__ float anchor(float max) { return max == -INFINITY ? 0.0f : max; }

__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b, float scale) {
  const float max = fmaxf(a.max, b.max), base = anchor(max);
  return {max, a.sum * shifted_exp(a.max, base, scale) + b.sum * shifted_exp(b.max, base, scale)};
}

// Of the same elements, for a maximum that is no smaller.
__device__ __forceinline__ MaxSum rescaled(MaxSum x, float max, float scale) {
  return {max, x.sum * shifted_exp(x.max, anchor(max), scale)};
}

// Over neighbouring lanes, `Lanes` of them, a power of two. All 32 lanes of the warp call; each gets its neighbours' result.
template <int Lanes>
__device__ __forceinline__ float lanes_max(float x) {
  if constexpr (Lanes == 32) {
    // A whole warp's integers have an instruction. As such, with all but the sign of negative ones turned, floats are in
    // the same order, and a NaN is at an end.
    const int bits = __float_as_int(x), key = bits ^ (bits >> 31 & 0x7fffffff);
    const int most = __reduce_max_sync(kAll, key);
    return __int_as_float(most ^ (most >> 31 & 0x7fffffff));
  } else {
#pragma unroll
    for (int step = Lanes / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, step));
    return x;
  }
}
template <int Lanes>
__device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAll, x, step);
  return x;
}
// Of a whole warp: one rescale a pair.
__device__ __forceinline__ MaxSum warp_merge(MaxSum mine, float scale) {
  const float max = lanes_max<32>(mine.max);
  return {max, lanes_sum<32>(mine.sum * shifted_exp(mine.max, anchor(max), scale))};
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
