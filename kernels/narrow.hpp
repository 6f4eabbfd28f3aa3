#pragma once
// fp16 and bf16 as their bits, on the host and in the machines' own kernels: rounded to nearest, ties to even, NaN to the
// one that CUDA gives.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel.hpp"

namespace softmax {

constexpr std::uint16_t to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
constexpr float from_bf16(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t(h) << 16); }

constexpr std::uint16_t to_fp16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return 0x7fff;
  if (size >= std::bit_cast<std::uint32_t>(65520.0f)) return std::uint16_t(sign | 0x7c00);
  // Below 2^-14 numbers are 2^-24 apart, as floats from 0.5 on are: the addition rounds.
  if (size < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    const float sum = std::bit_cast<float>(size) + 0.5f;
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  const std::uint32_t biased = size - (112u << 23);  // 127 - 15 less in the exponent
  return std::uint16_t(sign | (biased + 0xfff + (biased >> 13 & 1)) >> 13);
}
constexpr float from_fp16(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 0) {
    const float size = float(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
  }
  return std::bit_cast<float>(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

// The nearest number of a type.
constexpr float rounded(float x, DataType type) {
  switch (type) {
    case DataType::fp16: return from_fp16(to_fp16(x));
    case DataType::bf16: return from_bf16(to_bf16(x));
    default: return x;
  }
}
constexpr float largest(DataType type) {
  return type == DataType::fp16 ? 65504.0f : type == DataType::bf16 ? 0x1.fep127f : 0x1.fffffep127f;
}

// The i-th element of memory of a type.
inline float element(const void* from, std::size_t i, DataType type) {
  switch (type) {
    case DataType::fp16: return from_fp16(static_cast<const std::uint16_t*>(from)[i]);
    case DataType::bf16: return from_bf16(static_cast<const std::uint16_t*>(from)[i]);
    default: return static_cast<const float*>(from)[i];
  }
}
inline void set_element(void* to, std::size_t i, DataType type, float x) {
  switch (type) {
    case DataType::fp16: static_cast<std::uint16_t*>(to)[i] = to_fp16(x); break;
    case DataType::bf16: static_cast<std::uint16_t*>(to)[i] = to_bf16(x); break;
    default: static_cast<float*>(to)[i] = x;
  }
}

}  // namespace softmax
