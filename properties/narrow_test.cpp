// fp16 and bf16 against their definition: all numbers by powers of two, all roundings by the neighbours' midpoint.

#include "kernels/narrow.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace softmax {
namespace {

struct Format {
  int fraction_bits, least_exponent;  // of a normal number
  std::uint16_t infinity;
};
constexpr Format kFp16{10, -14, 0x7c00}, kBf16{7, -126, 0x7f80};

// Of a number that is not negative; what would follow the largest one stands for infinity.
double value(const Format& f, unsigned bits) {
  const unsigned fraction = bits & ((1u << f.fraction_bits) - 1), exponent = bits >> f.fraction_bits;
  if (exponent == 0) return std::ldexp(fraction, f.least_exponent - f.fraction_bits);
  return std::ldexp((1u << f.fraction_bits) + fraction, f.least_exponent - f.fraction_bits + int(exponent) - 1);
}

template <class To, class From>
void check(const Format& f, To to, From from) {
  for (unsigned bits = 0; bits < f.infinity; ++bits) {
    const float x = from(std::uint16_t(bits)), middle = float((value(f, bits) + value(f, bits + 1)) / 2);
    ASSERT_EQ(double(x), value(f, bits)) << bits;
    ASSERT_EQ(double(from(std::uint16_t(bits | 0x8000))), -value(f, bits)) << bits;
    ASSERT_EQ(to(x), bits);
    ASSERT_EQ(to(-x), bits | 0x8000);
    ASSERT_EQ(to(middle), bits + bits % 2) << bits;
    ASSERT_EQ(to(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(to(std::nextafter(middle, INFINITY)), bits + 1) << bits;
    ASSERT_EQ(to(-std::nextafter(middle, INFINITY)), (bits + 1) | 0x8000) << bits;
  }
  EXPECT_EQ(to(INFINITY), f.infinity);
  EXPECT_EQ(from(f.infinity), INFINITY);
  EXPECT_EQ(from(std::uint16_t(f.infinity | 0x8000)), -INFINITY);
  EXPECT_EQ(to(std::bit_cast<float>(0x7f800001u)), 0x7fff);
  EXPECT_EQ(to(-NAN), 0x7fff);
  for (unsigned bits = f.infinity + 1u; bits < 0x8000; ++bits) ASSERT_TRUE(std::isnan(from(std::uint16_t(bits))));
}

TEST(Narrow, Fp16) { check(kFp16, to_fp16, from_fp16); }
TEST(Narrow, Bf16) { check(kBf16, to_bf16, from_bf16); }

TEST(Narrow, ElementsOfMemory) {
  for (const DataType type : {DataType::fp32, DataType::fp16, DataType::bf16}) {
    float memory[3] = {};
    set_element(memory, 1, type, 0x1.00fp0f);
    EXPECT_EQ(element(memory, 1, type), rounded(0x1.00fp0f, type));
    EXPECT_EQ(element(memory, 0, type), 0);
    EXPECT_EQ(element(memory, 2, type), 0);
    EXPECT_EQ(rounded(largest(type), type), largest(type));
    EXPECT_EQ(rounded(std::nextafter(largest(type), INFINITY), type),
              type == DataType::fp32 ? INFINITY : largest(type));
  }
}

}  // namespace
}  // namespace softmax
