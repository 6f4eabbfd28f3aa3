// The laws of (max, sum), asked of the collective's own code: a neutral element on both sides, any order and any grouping.
#include "properties/certify/merge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "kernels/input.hpp"
#include "properties/bounds.hpp"

namespace softmax::merge {

namespace {
std::vector<Merger>& registered() {
  static std::vector<Merger> all;
  return all;
}
}  // namespace
bool register_merger(const Merger& merger) {
  registered().push_back(merger);
  return true;
}
const std::vector<Merger>& mergers() { return registered(); }

namespace {

constexpr float kInf = INFINITY, kLog2E = 1.442695041f;
constexpr Pair kNothing{-kInf, 0};
constexpr int kCount = 4096;

// Maxima that are near each other, far apart, equal, huge; sums of 1 to 2^24 elements; sometimes nothing.
Pair draw(std::uint64_t seed, int i) {
  const std::uint64_t bits = random_bits(seed, std::uint64_t(i));
  const float x = normal(random_bits(seed + 1, std::uint64_t(i)));
  const float max[] = {x, 50 * x, 3, -5e4f + x, 1e30f * x, -FLT_MAX};
  if (bits % 8 == 7) return kNothing;
  return {max[bits % 8 % 6], std::max(1.0f, std::ldexp(1.0f + float(bits / 64 % 1000) / 1000, int(bits / 8 % 24)))};
}
std::vector<Pair> draws(std::uint64_t seed) {
  std::vector<Pair> all;
  for (int i = 0; i < kCount; ++i) all.push_back(draw(seed, i));
  return all;
}
bool same(Pair a, Pair b) {
  const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  return bits(a.max) == bits(b.max) && bits(a.sum) == bits(b.sum);
}
std::string text(Pair p) { return "(" + std::to_string(p.max) + ", " + std::to_string(p.sum) + ")"; }

class Merge : public testing::TestWithParam<Merger> {
 protected:
  void SetUp() override {
    if (const std::string why = machine().unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  Machine& machine() const { return GetParam().machine(); }
  std::vector<Pair> two(const std::vector<Pair>& a, const std::vector<Pair>& b) const {
    return on_machine({a, b}, [&](const std::vector<Pair*>& at, Pair* out) {
      GetParam().two(at[0], at[1], out, int(a.size()), kLog2E);
    });
  }
  std::vector<Pair> warps(const std::vector<Pair>& in) const {
    return on_machine({in}, [&](const std::vector<Pair*>& at, Pair* out) {
      GetParam().warps(at[0], out, int(in.size()) / 32, kLog2E);
    });
  }
  // Of a merge at this depth, relative: each level an exp, a product and an addition, and the distance from the maximum.
  long double bound(int levels, long double distance) const {
    const reference::ExpError exp = arithmetic_of(machine()).shifted;
    const long double b = (levels * (exp.eps0 + 2) + (1 + exp.kappa) * distance) * reference::kUnit;
    return b < 1 ? b / (1 - b) : INFINITY;
  }

 private:
  template <class Launch>
  std::vector<Pair> on_machine(const std::vector<std::vector<Pair>>& inputs, Launch launch) const {
    std::vector<Buffer> buffers;
    std::vector<Pair*> at;
    const std::size_t bytes = inputs[0].size() * sizeof(Pair);
    for (const auto& input : inputs) {
      buffers.emplace_back(machine(), bytes);
      buffers.back().upload(input.data(), bytes);
      at.push_back(static_cast<Pair*>(buffers.back().data()));
    }
    Buffer out(machine(), bytes);
    launch(at, static_cast<Pair*>(out.data()));
    machine().synchronize();
    std::vector<Pair> results(inputs[0].size());
    out.download(results.data(), bytes);
    return results;
  }
};

TEST_P(Merge, nothing_is_neutral_on_both_sides) {
  const std::vector<Pair> some = draws(1), nothing(some.size(), kNothing);
  const std::vector<Pair> left = two(nothing, some), right = two(some, nothing);
  for (std::size_t i = 0; i < some.size(); ++i) {
    ASSERT_TRUE(same(left[i], some[i])) << "nothing and " << text(some[i]) << ": " << text(left[i]);
    ASSERT_TRUE(same(right[i], some[i])) << text(some[i]) << " and nothing: " << text(right[i]);
  }
  ASSERT_TRUE(same(two({kNothing}, {kNothing})[0], kNothing)) << text(two({kNothing}, {kNothing})[0]);
}

TEST_P(Merge, either_order_is_the_same) {
  const std::vector<Pair> a = draws(2), b = draws(20), ab = two(a, b), ba = two(b, a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(ab[i].max, ba[i].max);
    ASSERT_EQ(ab[i].max, std::max(a[i].max, b[i].max));
    // The one product that an fma leaves unrounded is the other's the other way round.
    ASSERT_LE(std::fabs((long double)ab[i].sum - ba[i].sum), 4 * reference::kUnit * ab[i].sum)
        << text(a[i]) << " and " << text(b[i]);
  }
}

TEST_P(Merge, any_grouping_is_the_same) {
  const std::vector<Pair> a = draws(3), b = draws(30), c = draws(300);
  const std::vector<Pair> left = two(two(a, b), c), right = two(a, two(b, c));
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(left[i].max, right[i].max);
    const long double most = left[i].max;
    long double exact = 0, allowed = 0;
    for (const Pair p : {a[i], b[i], c[i]}) {
      if (p.sum == 0) continue;
      const long double d = most - p.max, term = p.sum * std::exp(-d);
      exact += term;
      allowed += d < 200 ? term * bound(2, d) + p.sum * 0x1p-125L : p.sum * 0x1p-125L;
    }
    for (const Pair p : {left[i], right[i]})
      ASSERT_LE(std::fabs(p.sum - exact), allowed) << text(a[i]) << ", " << text(b[i]) << ", " << text(c[i]);
  }
}

TEST_P(Merge, a_warp_agrees_and_is_right) {
  const std::vector<Pair> in = draws(4), out = warps(in);
  for (std::size_t w = 0; w < in.size(); w += 32) {
    float most = -kInf;
    for (int lane = 0; lane < 32; ++lane) most = std::max(most, in[w + std::size_t(lane)].max);
    long double exact = 0, allowed = 0;
    for (int lane = 0; lane < 32; ++lane) {
      const Pair p = in[w + std::size_t(lane)];
      if (p.sum == 0) continue;
      const long double d = (long double)most - p.max, term = p.sum * std::exp(-d);
      exact += term;
      allowed += (d < 200 ? term * bound(6, d) : 0) + p.sum * 0x1p-125L;
    }
    for (int lane = 0; lane < 32; ++lane) {
      const Pair got = out[w + std::size_t(lane)];
      ASSERT_TRUE(same(got, out[w])) << "lane " << lane;
      ASSERT_EQ(got.max, most);
      ASSERT_LE(std::fabs(got.sum - exact), allowed) << "warp " << w / 32;
    }
  }
  const std::vector<Pair> nothing = warps(std::vector<Pair>(32, kNothing));
  for (const Pair p : nothing) ASSERT_TRUE(same(p, kNothing)) << text(p);
}

// A NaN or +inf among the elements is in the sum by then, or makes it one.
TEST_P(Merge, what_is_undefined_stays_so) {
  const Pair of_nan{1, NAN}, of_inf{kInf, 1}, some{2, 3};
  for (const Pair p :
       two({of_nan, some, of_inf, some, of_nan, kNothing}, {some, of_nan, some, of_inf, kNothing, of_inf}))
    EXPECT_TRUE(std::isnan(p.sum)) << text(p);
}

INSTANTIATE_TEST_SUITE_P(Machines, Merge, testing::ValuesIn(mergers()),
                         [](const auto& info) { return std::string(info.param.machine().id()); });

}  // namespace
}  // namespace softmax::merge
