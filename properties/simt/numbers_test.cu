// 16-bit numbers, over all of their bit patterns, against a computation from what the bits mean.
#include <cmath>
#include <cstdint>
#include <limits>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;

struct Format {
  int fraction, bias;  // bits of the fraction
  int exponents() const { return 1 << (15 - fraction); }
};
constexpr Format kHalf{10, 15}, kBfloat{7, 127};

double meaning(Format f, unsigned bits) {
  const unsigned fraction = bits & ((1u << f.fraction) - 1);
  const int exponent = int(bits >> f.fraction) % f.exponents();
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == f.exponents() - 1) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  const double digits = fraction + (exponent ? std::ldexp(1, f.fraction) : 0);
  return sign * std::ldexp(digits, std::max(exponent, 1) - f.bias - f.fraction);
}

// The finite number next to infinity is followed by what would come if exponents went on: from the middle on, it is
// infinity.
double next_meaning(Format f, unsigned bits) {
  const double next = meaning(f, bits + 1);
  return std::isinf(next) ? std::copysign(std::ldexp(1, f.exponents() - 1 - f.bias), next) : next;
}

template <class Widen, class Narrow>
void check_all(Format f, Widen widen, Narrow narrow) {
  const unsigned infinity = (f.exponents() - 1u) << f.fraction;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    SCOPED_TRACE(bits);
    const float wide = widen(bits);
    if ((bits & 0x7fff) > infinity) {
      ASSERT_TRUE(std::isnan(wide));
      ASSERT_EQ(narrow(wide), 0x7fffu);
      continue;
    }
    ASSERT_EQ(double(wide), meaning(f, bits));
    ASSERT_EQ(std::signbit(wide), bits >= 0x8000);
    ASSERT_EQ(narrow(wide), bits);
    if ((bits & 0x7fff) == infinity) continue;
    // The middle between two neighbours goes to the even one, what is a little less or more to the nearer one.
    const float middle = float((double(wide) + next_meaning(f, bits)) / 2), away = std::copysign(INFINITY, wide);
    ASSERT_EQ(narrow(middle), bits + bits % 2);
    ASSERT_EQ(narrow(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(narrow(std::nextafter(middle, away)), bits + 1);
  }
  for (const float huge : {3.4e38f, INFINITY}) {
    ASSERT_EQ(narrow(huge), f.bias == 15 || std::isinf(huge) ? infinity : narrow(3.3895e38f) + 1);
    ASSERT_EQ(narrow(-huge), narrow(huge) | 0x8000u);
  }
  for (const float tiny : {1e-45f, 1e-42f}) ASSERT_EQ(narrow(-tiny), 0x8000u | narrow(tiny));
}

TEST(SimtNumbers, HalvesAreExactAndRoundToNearestEven) {
  check_all(
      kHalf, [](unsigned bits) { return __half2float(__ushort_as_half(static_cast<unsigned short>(bits))); },
      [](float x) { return unsigned(__half_as_ushort(__float2half_rn(x))); });
}

TEST(SimtNumbers, BfloatsAreExactAndRoundToNearestEven) {
  check_all(
      kBfloat, [](unsigned bits) { return __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(bits))); },
      [](float x) { return unsigned(__bfloat16_as_ushort(__float2bfloat16_rn(x))); });
}

__global__ void there_and_back(const __half2* halves, const __nv_bfloat162* bfloats, __half2* out,
                               __nv_bfloat162* bfloats_out, unsigned* shifted) {
  const unsigned t = threadIdx.x;
  const float2 h = __half22float2(halves[t]), b = __bfloat1622float2(bfloats[t]);
  out[t] = __float22half2_rn(make_float2(h.y, h.x));
  bfloats_out[t] = __float22bfloat162_rn(make_float2(b.y, b.x));
  shifted[t] = __funnelshift_r(0x89abcdefu, 0x01234567u, t);
}
TEST(SimtNumbers, PairsAreOneAccessAndKeepTheirOrder) {
  __half2 halves[64], out[64];
  __nv_bfloat162 bfloats[64], bfloats_out[64];
  unsigned shifted[64];
  for (unsigned t = 0; t < 64; ++t) {
    halves[t] = {__float2half_rn(float(t)), __float2half_rn(-float(t))};
    bfloats[t] = {__float2bfloat16_rn(float(t)), __float2bfloat16_rn(0.5f * float(t))};
  }
  softmax::device::machine().watch(softmax::Watch::check);
  launch(there_and_back, {.blocks = 1, .threads = 64}, halves, bfloats, out, bfloats_out, shifted);
  EXPECT_EQ(softmax::device::machine().profile().accesses, 5 * 64);
  for (unsigned t = 0; t < 64; ++t) {
    EXPECT_EQ(__half2float(out[t].x), -float(t));
    EXPECT_EQ(__half2float(out[t].y), float(t));
    EXPECT_EQ(__bfloat162float(bfloats_out[t].x), 0.5f * float(t));
    EXPECT_EQ(__bfloat162float(bfloats_out[t].y), float(t));
    EXPECT_EQ(shifted[t], unsigned(0x0123456789abcdefull >> t % 32)) << t;
  }
}

}  // namespace
