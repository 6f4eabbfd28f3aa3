// The judge on trial: the long-double reference, its error bounds and the vectors other projects published.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <tuple>

#include "kernels/input.hpp"
#include "properties/vectors.hpp"
#include "reference/error.hpp"
#include "reference/softmax.hpp"

namespace softmax::reference {
namespace {

using Floats = std::vector<float>;
using Exact = std::vector<long double>;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kU = kUnit;

// 2^-52 is for expectations that are double literals.
void expect_row(const Floats& x, const Exact& expected, long double relative = 0x1p-52L) {
  const Exact y = softmax(x);
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_TRUE(std::fabs(y[i] - expected[i]) <= relative * expected[i])
        << i << ": " << y[i] << ", not " << expected[i];
  }
}

template <typename T>
bool all_nan(const std::vector<T>& y) {
  return std::all_of(y.begin(), y.end(), [](T v) { return std::isnan(v); });
}

TEST(ReferenceRow, HandComputed) {
  expect_row({0, 1, 2, 3}, {0.03205860328008499, 0.08714431874203256, 0.23688281808991013, 0.6439142598879722});
  expect_row({1, 325, 749, 750}, {std::exp(-749.0L) / (1 + std::exp(-1.0L)), 1.9444526359919372e-185,
                                  0.2689414213699951, 0.7310585786300048});
  expect_row({FLT_MAX, -FLT_MAX}, {1, 0});
  expect_row({-FLT_MAX, FLT_MAX, FLT_MAX}, {0, 0.5L, 0.5L});
  expect_row({42}, {1});
  expect_row({}, {});
}

TEST(ReferenceRow, ConstantRowsGiveOneOverC) {
  for (const float x : {-1000.0f, 0.0f, 1e10f, FLT_MAX, -FLT_MAX}) {
    for (const std::size_t cols : {1, 2, 3, 1027}) {
      expect_row(Floats(cols, x), Exact(cols, 1 / static_cast<long double>(cols)), 0x1p-62L);
    }
  }
}

TEST(ReferenceRow, MinusInfinityBesideANumberGivesZero) {
  expect_row({-kInf, 5, 5}, {0, 0.5L, 0.5L});
  expect_row({5, -kInf, 5}, {0.5L, 0, 0.5L});
  expect_row({5, 5, -kInf}, {0.5L, 0.5L, 0});
  expect_row({-kInf, -FLT_MAX, -kInf}, {0, 1, 0});
}

TEST(ReferenceRow, RowsWithoutAnAnswerAreNaN) {
  // clang-format off
  const Floats rows[] = {
      {kNaN}, {kNaN, 1, 2}, {1, kNaN, 2}, {1, 2, kNaN}, {-kInf, kNaN}, {kInf}, {kInf, 1}, {1, kInf, -kInf},
      {kInf, kInf}, {kInf, kNaN}, {-kInf}, {-kInf, -kInf, -kInf}};
  // clang-format on
  for (const Floats& x : rows) {
    const Row row = analyse(x);
    EXPECT_EQ(row.y.size(), x.size());
    EXPECT_TRUE(all_nan(row.y) && all_nan(log_softmax(x)) && all_nan(three_loops(x)) && all_nan(two_loops(x)));
    EXPECT_TRUE(std::isnan(row.sum) && std::isnan(row.log_sum) && std::isnan(row.spread));
  }
}

// What programs verify on: a kernel that leaves out any eighth of a row is off by more than a hundredth.
TEST(ReferenceRow, NoiseStaysSpread) {
  for (const std::int64_t cols : {1000, 50257, 128256, 1 << 20})
    for (std::int64_t r = 0; r < 4; ++r) {
      double all = 0, eighths[8] = {};
      for (std::int64_t c = 0; c < cols; ++c) {
        const double e = std::exp(double(noise(1, std::uint64_t(r * cols + c))));
        all += e, eighths[8 * c / cols] += e;
      }
      for (const double part : eighths) {
        EXPECT_GT(part / all, 0.01) << cols << " columns, row " << r;
        EXPECT_LT(part / all, 0.9) << cols << " columns, row " << r;
      }
    }
}

TEST(ReferenceRow, SumAndSpread) {
  const Row row = analyse(Floats{0, 1, -kInf, 2, 3});
  EXPECT_EQ(row.max, 3);
  EXPECT_NEAR(double(row.sum), 1.5530017927759189, 1e-15);
  EXPECT_NEAR(double(row.log_sum), 0.4401896985611953, 1e-15);
  // Here x_j = j, so D is 3 minus the mean of x: 0.08714... + 2 * 0.23688... + 3 * 0.64391... = 2.4926527.
  EXPECT_NEAR(double(row.spread), 0.5073472654142302, 1e-15);
  EXPECT_EQ(analyse({}).sum, 0);
  EXPECT_EQ(analyse(Floats(7, 3.0f)).spread, 0);
}

// 2^20 equal terms of less than a digit beside larger ones: added plainly even long double is off by 2^-47.
TEST(ReferenceRow, TemperatureDivides) {
  const Row row = analyse(std::vector<float>{3, 6, -std::numeric_limits<float>::infinity()}, 1.5L);
  EXPECT_EQ(row.max, 4);
  EXPECT_EQ(row.below_max(3), 2);
  EXPECT_EQ(row.y[2], 0);
  EXPECT_NEAR(double(row.y[0]), 1 / (1 + std::exp(2.0)), 1e-15);
  EXPECT_NEAR(double(row.spread), 2 * double(row.y[0]), 1e-15);
}

TEST(ReferenceRow, SumIsCompensated) {
  Floats x(1 << 20, -30.0f);
  x[0] = x[1] = 0;
  const long double exact = 2 + static_cast<long double>(x.size() - 2) * std::exp(-30.0L);
  EXPECT_TRUE(std::fabs(analyse(x).sum - exact) <= 0x1p-62L);
}

TEST(ReferenceLog, LogSumExpOnEdges) {
  EXPECT_EQ(log_sum_exp({}), -kInf);
  EXPECT_EQ(log_sum_exp(Floats{-kInf, -kInf}), -kInf);
  EXPECT_EQ(log_sum_exp(Floats{1, kInf}), kInf);
  EXPECT_TRUE(std::isnan(log_sum_exp(Floats{kInf, kNaN})));
  EXPECT_EQ(log_sum_exp(Floats{-kInf, 7}), 7);
  EXPECT_EQ(log_sum_exp(Floats{FLT_MAX, -FLT_MAX}), FLT_MAX);
  EXPECT_NEAR(double(log_sum_exp(Floats{1e8f, 1e8f}) - 1e8L), std::log(2.0), 1e-10);
  EXPECT_NEAR(double(log_sum_exp(Floats{-1e4f, -1e4f, -1e4f}) + 1e4L), std::log(3.0), 1e-14);
}

TEST(ReferenceLog, LogSoftmax) {
  EXPECT_NEAR(double(log_softmax(Floats{1e8f, 1e8f})[1]), -0.6931471805599453, 1e-16);
  const Exact y = log_softmax(Floats{0, 1, 2, 3});
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(double(y[i]), i - 3.4401896985611953, 1e-15);
  // ln(1 + e) is -e + e^2 / 2: all digits of a number far below the smallest step at 1.
  EXPECT_NEAR(double(log_softmax(Floats{0, -60})[0] / -std::exp(-60.0L)), 1, 1e-15);
  EXPECT_EQ(log_softmax(Floats{FLT_MAX, 1, -kInf}), (Exact{0, 1 - static_cast<long double>(FLT_MAX), -kInf}));
}

// Rows of all kinds, and what the float algorithms make of them against what they may.
TEST(ReferenceLessons, StayWithinTheirBounds) {
  const std::map<std::string, std::function<float(std::uint64_t, std::uint64_t)>> families = {
      {"noise", [](auto s, auto i) { return noise(s, i); }},
      {"wide", [](auto s, auto i) { return 30 * normal(random_bits(s, i)); }},
      {"narrow", [](auto s, auto i) { return normal(random_bits(s, i)) / 1024; }},
      {"far below 0", [](auto s, auto i) { return -5e4f + normal(random_bits(s, i)); }},
      {"ascending", [](auto s, auto i) { return float(i) * 0.01f + normal(random_bits(s, i)) / 64; }},
      {"descending", [](auto s, auto i) { return float(i) * -0.003f + normal(random_bits(s, i)) / 512; }},
      {"spike", [](auto s, auto i) { return i == s % 5 ? 20 : normal(random_bits(s, i)); }},
      {"holes", [](auto s, auto i) { return (i + s) % 3 ? noise(s, i) : -kInf; }},
      {"subnormal outputs", [](auto s, auto i) { return i == s % 2 ? 95 : normal(random_bits(s, i)); }}};
  std::map<std::string, long double> worst;
  const auto compare = [&](const std::string& what, long double error, long double bound) {
    EXPECT_TRUE(error <= bound) << what << ": " << error << " is above " << bound;
    worst[what.substr(0, what.find(','))] = std::max(worst[what.substr(0, what.find(','))], error / bound);
  };
  for (const auto& [family, element] : families) {
    for (const std::uint64_t cols : {2, 3, 33, 257, 1027, 5000}) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Floats x;
        for (std::uint64_t i = 0; i < cols; ++i) x.push_back(element(seed, i));
        const Row row = analyse(x);
        // glibc's expf is documented as 0.502 ulp; IEEE division; added from left to right.
        ErrorModel model{.exp = {1.004, 0}, .additions = double(additions(Order::sequential, x.size(), 1))};
        for (const bool online : {false, true}) {
          model.online = online;
          model.rescales = double(running_max_updates(x, 1));
          const Floats y = online ? two_loops(x) : three_loops(x);
          const std::string name = online ? "online" : "safe";
          long double total = 0;
          for (std::size_t i = 0; i < x.size(); ++i) {
            total += y[i];
            compare(name + " element, " + family, std::fabs(y[i] - row.y[i]),
                    element_bound(model, row.y[i], row.max - x[i], row.spread));
          }
          compare(name + " sum, " + family, std::fabs(total - 1), row_sum_bound(model, x.size(), row.spread));
        }
      }
    }
  }
  ASSERT_EQ(worst.size(), 4u);
  for (const auto& [what, ratio] : worst) {
    RecordProperty(what, std::to_string(double(ratio)));
    EXPECT_GT(ratio, 0.05) << what << ": so wide a bound proves little";
  }
}

TEST(ReferenceLessons, ConstantRowsAreExact) {
  for (const float x : {0.0f, -1000.0f, 1e10f, -FLT_MAX}) {
    for (const std::size_t cols : {1, 3, 511, 1027}) {
      EXPECT_EQ(three_loops(Floats(cols, x)), Floats(cols, 1.0f / float(cols)));
      EXPECT_EQ(two_loops(Floats(cols, x)), Floats(cols, 1.0f / float(cols)));
    }
  }
  EXPECT_EQ(two_loops(Floats{-kInf, -kInf, 2, -kInf, 2}), (Floats{0, 0, 0.5f, 0, 0.5f}));
  EXPECT_TRUE(three_loops({}).empty() && two_loops({}).empty());
}

TEST(ReferenceUlp, Distance) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const float tiny = 0x1p-149f;
  // clang-format off
  const std::tuple<float, float, std::int64_t> cases[] = {
      {1, 1, 0}, {1, 1 + FLT_EPSILON, 1}, {1, 1 - FLT_EPSILON / 2, 1}, {1, 2, 1 << 23}, {-1, -2, 1 << 23},
      {0, -0.0f, 0}, {0, tiny, 1}, {-tiny, tiny, 2}, {-0.0f, -tiny, 1}, {FLT_MIN, FLT_MIN - tiny, 1},
      {0, FLT_MIN, 1 << 23}, {FLT_MAX, kInf, 1}, {-FLT_MAX, -kInf, 1}, {-kInf, kInf, 2LL * 0x7f800000},
      {kInf, kInf, 0}, {kNaN, kNaN, 0}, {kNaN, -kNaN, 0}, {kNaN, 1, most}, {kInf, kNaN, most}};
  // clang-format on
  for (const auto& [a, b, distance] : cases) {
    EXPECT_EQ(ulp_distance(a, b), distance) << a << " " << b;
    EXPECT_EQ(ulp_distance(b, a), distance) << b << " " << a;
  }
}

TEST(ReferenceUlp, ErrorAgainstLongDouble) {
  EXPECT_EQ(ulp_error(1, 1), 0);
  EXPECT_EQ(ulp_error(1, 1 + 0x1p-24L), 0.5);
  EXPECT_EQ(ulp_error(1, 1 - 0x1p-24L), 1);  // spacing halves below 1
  EXPECT_EQ(ulp_error(-3, -3 - 0x1p-20L), 4);
  EXPECT_EQ(ulp_error(0, 0), 0);
  EXPECT_EQ(ulp_error(0, 0x1p-149L), 1);
  EXPECT_EQ(ulp_error(0x1p-149f, 1e-4000L), 1);
  EXPECT_EQ(ulp_error(kInf, 1e4000L), 0);
  EXPECT_EQ(ulp_error(kNaN, kNaN), 0);
  EXPECT_EQ(ulp_error(kNaN, 1), kInf);
  EXPECT_EQ(ulp_error(1, kNaN), kInf);
  EXPECT_EQ(ulp_error(kInf, 1), kInf);
  EXPECT_EQ(ulp_error(FLT_MAX, -kInf), kInf);
}

TEST(ReferenceBound, CountsOfTheSchemes) {
  const auto counts = [](Order order, std::int64_t cols, int threads) {
    return std::pair{additions(order, cols, threads), merges(order, cols, threads)};
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(counts(Order::block_warp, 1000, 256), Pair(11, 8));
  EXPECT_EQ(counts(Order::block_warp, 131072, 1024), Pair(137, 10));
  EXPECT_EQ(counts(Order::block_warp, 1027, 96), Pair(17, 7));  // 11 a thread, 32 lanes, 3 warps
  EXPECT_EQ(counts(Order::block_serial, 1000, 256), Pair(15, 12));
  EXPECT_EQ(counts(Order::block_tree, 1000, 256), Pair(11, 8));
  EXPECT_EQ(counts(Order::warp, 1000, 256), Pair(36, 5));
  EXPECT_EQ(counts(Order::sequential, 1000, 0), Pair(999, 0));
  // Threads without an element hold an exact 0.
  EXPECT_EQ(counts(Order::block_warp, 33, 1024), Pair(6, 6));
  EXPECT_EQ(counts(Order::block_serial, 65, 1024), Pair(7, 7));
  EXPECT_EQ(counts(Order::block_tree, 5, 1024), Pair(3, 3));
  EXPECT_EQ(counts(Order::warp, 2, 32), Pair(1, 1));
  for (const Order order :
       {Order::sequential, Order::warp, Order::block_tree, Order::block_serial, Order::block_warp}) {
    EXPECT_EQ(counts(order, 0, 64), Pair(0, 0));
    EXPECT_EQ(counts(order, 1, 64), Pair(0, 0));
    EXPECT_THROW(additions(order, -1, 64), std::invalid_argument);
  }
  EXPECT_THROW(merges(Order::block_warp, 5, 0), std::invalid_argument);
}

TEST(ReferenceBound, ElementByHand) {
  const double ln1000 = 6.907755278982137, ln131072 = 11.783502069519070;
  const auto b = [](const ErrorModel& m, double d, double spread) {
    return double(relative_error(m, d, spread)) / kU - kSecondOrder;
  };
  EXPECT_NEAR(b({.additions = 11}, 0, ln1000), 28.907755, 1e-6);      // 6.9 + 10 + 11 + 1
  EXPECT_NEAR(b({.additions = 137}, 4, ln131072), 163.783502, 1e-6);  // about 1e-5
  EXPECT_NEAR(b({.additions = 131071}, 4, ln131072) * kU, 7.81e-3, 1e-5);
  EXPECT_NEAR(b({.a = 0, .additions = 11}, 3, 2), 22, 1e-9);  // exact differences: no range at all
  EXPECT_NEAR(b({.exp = kFastExp, .divide = kDivideFast, .additions = 11}, 3, 2), 5 * 2.2242 + 10 + 11 + 5, 1e-9);
  EXPECT_NEAR(b({.divide = kDivideReciprocal, .additions = 11, .output = kFp16Output}, 3, 2), 28 + 8192, 1e-9);
  // Online: 5 * (2 + 4 + 8) of exp, 4 + 8 products.
  const ErrorModel online{.additions = 12, .online = true, .rescales = 4, .merges = 8};
  EXPECT_NEAR(b(online, 3, 2), 5 + 70 + 12 + 12 + 1, 1e-9);
  // Exps of their own in the sum: 3 * 1 + 2 * 2.2242 of the distances, 5 of the output, 5 of each of the sum's.
  const ErrorModel other{
      .exp = kExpf, .sum_exp = kFastExp, .additions = 12, .online = true, .rescales = 4, .merges = 8};
  EXPECT_NEAR(b(other, 3, 2), 3 + 2 * 2.2242 + 5 + 5 * 13 + 12 + 12 + 1, 1e-9);
  // In double the 131071 additions and 4 products cost 131075 / 2^29 and one rounding; the factors' exp stays.
  const ErrorModel in_double{.additions = 131071, .online = true, .rescales = 4, .double_sum = true};
  EXPECT_NEAR(b(in_double, 3, 2), 5 + 30 + 131075 / 536870912.0 + 1 + 1, 1e-9);

  const ErrorModel quarter{.a = 0, .exp = {0, 0}, .divide = 0, .additions = 0x1p22};
  EXPECT_NEAR(double(element_bound(quarter, 0.5L, 9, 2)), 0.5 / 3, 1e-10);  // B = 1/4
  EXPECT_EQ(element_bound({.additions = 0x1p24}, 0.5L, 9, 2), kInf);
  EXPECT_EQ(element_bound({}, 0, kInf, 2), 0x3p-149L);  // a -inf
  EXPECT_EQ(element_bound({.additions = 0x1p24, .eta = kEtaFlushed}, 0, 1e30L, 2), 0x1p-125L + 0x1p-149L);
  EXPECT_EQ(element_bound({.output = kBf16Output}, 0, 200, 2), 0x3p-149L + 0x1p-134L);
}

TEST(ReferenceBound, RowSumByHand) {
  const long double eta = 1027 * 0x3p-149L;
  EXPECT_NEAR(double(row_sum_bound({.additions = 12}, 1027, 2)), 13 * kU / (1 - 13 * kU), 1e-18);
  EXPECT_EQ(row_sum_bound({.exp = kFastExp, .additions = 12}, 1027, 6), row_sum_bound({.additions = 12}, 1027, 2));
  EXPECT_EQ(row_sum_bound({.divide = 0}, 1027, 2), eta);
  const ErrorModel online{.additions = 12, .online = true, .rescales = 4, .merges = 8};
  const double whole = (99 + kSecondOrder) * kU;
  EXPECT_NEAR(double(row_sum_bound(online, 1027, 2)), whole / (1 - whole), 1e-18);
  // The exps do not cancel where the sum has others.
  const double parts = (2 + 2 * 2.2242 + 5 + 5 + 12 + 1 + kSecondOrder) * kU;
  EXPECT_NEAR(double(row_sum_bound({.sum_exp = kFastExp, .additions = 12}, 1027, 2)), parts / (1 - parts), 1e-18);
  const double b = 8193 * kU;
  EXPECT_NEAR(double(row_sum_bound({.output = kFp16Output}, 50257, 2)), b / (1 - b) + 50257 * 0x1p-25, 1e-15);
  EXPECT_EQ(row_sum_bound({.additions = 0x1p24}, 1027, 2), kInf);
}

// A larger parameter never gives a smaller bound, and one that is ignored gives the same.
TEST(ReferenceBound, MonotoneInEachParameter) {
  const ErrorModel base{.additions = 12, .online = true, .rescales = 4, .merges = 8};
  // clang-format off
  const std::function<void(ErrorModel&)> steps[] = {
      [](auto& m) { m.a += 1; }, [](auto& m) { m.exp.eps0 += 1; }, [](auto& m) { m.exp.kappa += 1; },
      [](auto& m) { m.divide += 1; }, [](auto& m) { m.additions += 1; }, [](auto& m) { m.rescales += 1; },
      [](auto& m) { m.merges += 1; }, [](auto& m) { m.eta += 1e-6; }, [](auto& m) { m.output.relative += 1; },
      [](auto& m) { m.output.absolute += 1e-6; }, [](auto& m) { m.sum_exp = ExpError{5, 1}; }};
  // clang-format on
  for (const auto& step : steps) {
    ErrorModel more = base;
    step(more);
    EXPECT_GT(element_bound(more, 0.5L, 3, 2), element_bound(base, 0.5L, 3, 2)) << &step - steps;
    EXPECT_GT(row_sum_bound(more, 9, 2), row_sum_bound(base, 9, 2)) << &step - steps;
  }
  EXPECT_GT(relative_error(base, 4, 2), relative_error(base, 3, 2));
  EXPECT_GT(relative_error(base, 3, 3), relative_error(base, 3, 2));
  EXPECT_GT(row_sum_bound(base, 9, 3), row_sum_bound(base, 9, 2));
  ErrorModel safe = base, plain = base;
  safe.online = plain.online = false;
  plain.rescales = plain.merges = 0;
  EXPECT_EQ(relative_error(safe, 3, 2), relative_error(plain, 3, 2));
  EXPECT_LT(relative_error(safe, 3, 2), relative_error(base, 3, 2));
}

// What no fixed tolerance of 1e-5 sees: a sum that is wrong by 3e-6.
TEST(ReferenceBound, SeesASmallDriftOfTheSum) {
  Floats x;
  for (std::uint64_t i = 0; i < 1027; ++i) x.push_back(normal(random_bits(1, i)));
  const Row row = analyse(x);
  const ErrorModel model{.additions = double(additions(Order::block_warp, 1027, 256))};
  const auto within = [&](long double factor) {
    long double total = 0;
    for (const long double y : row.y) total += float(y / factor);
    return std::fabs(total - 1) <= row_sum_bound(model, 1027, row.spread);
  };
  EXPECT_TRUE(within(1));
  EXPECT_FALSE(within(1 + 3e-6L));
  EXPECT_FALSE(within(1 - 3e-6L));
  EXPECT_FALSE(within(kNaN));
}

TEST(ReferenceBound, RunningMaxUpdates) {
  const Floats ascending{1, 2, 3, 4, 5, 6, 7}, descending{7, 6, 5, 4, 3, 2, 1}, constant(7, 4);
  EXPECT_EQ(running_max_updates(ascending, 1), 6);
  EXPECT_EQ(running_max_updates(ascending, 2), 3);  // 1 3 5 7
  EXPECT_EQ(running_max_updates(ascending, 7), 0);
  EXPECT_EQ(running_max_updates(ascending, 1024), 0);
  EXPECT_EQ(running_max_updates(descending, 1), 0);
  EXPECT_EQ(running_max_updates(constant, 1), 0);
  EXPECT_EQ(running_max_updates(Floats{9, 1, 8, 2, 8, 3}, 2), 2);  // the second thread's
  EXPECT_EQ(running_max_updates(Floats{-kInf, -kInf, 2, -kInf, 2, 3}, 1), 1);
  EXPECT_EQ(running_max_updates({}, 4), 0);
  EXPECT_THROW(running_max_updates(constant, 0), std::invalid_argument);
}

TEST(ReferenceVectors, AgreeWithOtherProjects) {
  const char* path = std::getenv("SOFTMAX_VECTORS");
  if (!path) GTEST_SKIP() << "SOFTMAX_VECTORS is not set: it names the JSON file of published vectors";
  std::vector<properties::Vector> vectors;
  ASSERT_NO_THROW(vectors = properties::load_vectors(path));
  std::map<std::string, int> seen;
  for (const properties::Vector& v : vectors) {
    for (std::size_t i = 0; i < v.input.size(); ++i) {
      const std::size_t cols = std::size_t(v.cols), first = i / cols * cols;
      const std::span row(v.input.data() + first, cols);
      const Exact exact = v.op == "softmax" ? softmax(row) : log_softmax(row);
      const long double want = v.expected[i], got = exact[i - first];
      // A 16-bit expectation is itself rounded: half a step of its type, or of its smallest step near 0.
      const OutputError rounding = v.dtype == "fp16" ? kFp16Output : v.dtype == "bf16" ? kBf16Output : kFp32Output;
      const long double allowed = v.tolerance + kU * rounding.relative * std::fabs(got) + rounding.absolute;
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : want == got || std::fabs(got - want) <= allowed)
          << v.name << " element " << i << ": " << got << ", expected " << want << " within " << allowed;
    }
    ++seen[v.op];
  }
  RecordProperty("softmax", seen["softmax"]);
  RecordProperty("log_softmax", seen["log_softmax"]);
}

TEST(ReferenceVectors, BadFilesAreNamed) {
  const std::string path = testing::TempDir() + "softmax_vectors_" + std::to_string(getpid()) + ".json";
  const auto error = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      properties::load_vectors(path);
    } catch (const std::runtime_error& e) {
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
      return e.what();
    }
    return "";
  };
  const auto file = [](const std::string& op, const std::string& dtype, int rows, const std::string& input) {
    return R"([{"name": "n", "op": ")" + op + R"(", "dtype": ")" + dtype + R"(", "rows": )" + std::to_string(rows) +
           R"(, "cols": 2, "tolerance_abs": 1e-7, "input": )" + input + R"(, "expected": [1, 0]}])";
  };
  EXPECT_EQ(error(file("softmax", "fp32", 1, R"([3, "-inf"])")), "");
  EXPECT_EQ(properties::load_vectors(path).at(0).input, (Floats{3, -kInf}));
  // clang-format off
  const std::pair<std::string, std::string> bad[] = {
      {"", "parse error"}, {"[]", "at least one"}, {"{}", "at least one"}, {R"([{"op": "softmax"}])", "name"},
      {file("relu", "fp32", 1, "[3, 4]"), "not relu"}, {file("softmax", "fp8", 1, "[3, 4]"), "not fp8"},
      {file("softmax", "fp32", 2, "[3, 4]"), "2 * 2"}, {file("softmax", "fp32", 0, "[]"), "1 or more"},
      {file("softmax", "fp32", 1, "[3, 1e39]"), "too large"}, {file("softmax", "fp32", 1, "[3, null]"), "number"}};
  // clang-format on
  for (const auto& [text, reason] : bad) EXPECT_NE(error(text).find(reason), std::string::npos) << error(text) << text;
  std::remove(path.c_str());
  EXPECT_THROW(properties::load_vectors(path), std::runtime_error);
}

}  // namespace
}  // namespace softmax::reference
