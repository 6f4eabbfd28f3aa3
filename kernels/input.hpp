#pragma once
// The rows that programs time and test on, the same bits on every machine: integers until the last step.

#include <cstdint>

namespace softmax {

// splitmix64's finaliser (Steele, Lea, Flood 2014): a counter becomes 64 well-mixed bits.
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) { return mix(mix(seed) ^ index); }

// About normal(0, 1): four 16-bit uniforms added (Irwin-Hall), so |x| < 3.47. Its variance is 4 * 2^32 / 12.
constexpr float normal(std::uint64_t bits) {
  const int sum = int(bits & 0xffff) + int(bits >> 16 & 0xffff) + int(bits >> 32 & 0xffff) + int(bits >> 48);
  return float(sum - 0x1fffe) * 0x1.bb67aep-16f;  // sqrt(12 / 4) / 2^16
}

// What benchmarks run on. One element in 16384 is an outlier, 4 times as far out: enough for a maximum that is missed to show,
// and so little that rows of any length stay spread, and a part that is left out of a sum shows too.
constexpr float noise(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = random_bits(seed, index);
  const float x = normal(bits);
  return mix(bits) % 16384 == 0 ? 4 * x : x;
}

}  // namespace softmax
