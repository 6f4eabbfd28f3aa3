// Traits into error models: each summation has the height and sharing that kernels/kernel.hpp says it has.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "properties/bounds.hpp"

namespace softmax {
namespace {

constexpr std::int64_t kCols = 1000;

// Assigned one by one: GCC 12 takes the default of a member for uninitialised where others are named ({.algorithm =
// ...}).
Traits with(Algorithm algorithm, Summation summation) {
  Traits traits;
  traits.algorithm = algorithm;
  traits.summation = summation;
  return traits;
}
Problem of(std::int64_t cols, int block, DataType out = DataType::fp32) {
  Problem p;
  p.cols = cols;
  p.block = block;
  p.out_type = out;
  return p;
}
reference::ErrorModel safe(Summation s) { return error_model(with(Algorithm::safe, s), of(kCols, 256)); }
reference::ErrorModel online(Summation s) { return error_model(with(Algorithm::online, s), of(kCols, 256)); }

TEST(BenchBounds, HeightOfEachSummation) {
  EXPECT_EQ(safe(Summation::unknown).additions, 999);
  EXPECT_EQ(safe(Summation::sequential).additions, 999);
  EXPECT_EQ(safe(Summation::warp).additions, 31 + 5);
  EXPECT_EQ(safe(Summation::block_tree).additions, 3 + 8);
  EXPECT_EQ(safe(Summation::block_serial).additions, 3 + 5 + 7);
  EXPECT_EQ(safe(Summation::block_warp).additions, 3 + 5 + 3);
  EXPECT_TRUE(safe(Summation::sequential_double).double_sum);
  EXPECT_FALSE(safe(Summation::sequential).double_sum);
  EXPECT_FALSE(safe(Summation::warp).online);
}

TEST(BenchBounds, RescalesOfTheWorstRowAndOfThisOne) {
  EXPECT_EQ(online(Summation::sequential).rescales, 999);
  EXPECT_EQ(online(Summation::warp).rescales, 31);
  EXPECT_EQ(online(Summation::block_warp).rescales, 3);
  EXPECT_EQ(online(Summation::block_warp).merges, 5 + 3);
  EXPECT_EQ(safe(Summation::sequential).rescales, 0);

  std::vector<float> falling(kCols), rising(kCols);
  for (std::int64_t i = 0; i < kCols; ++i) falling[std::size_t(i)] = -(rising[std::size_t(i)] = float(i));
  const Traits warp = with(Algorithm::online, Summation::warp);
  EXPECT_EQ(error_model(warp, of(kCols, 256), falling).rescales, 0);
  EXPECT_EQ(error_model(warp, of(kCols, 256), rising).rescales, 31);
  EXPECT_EQ(error_model(warp, of(kCols, 256), rising).additions, 36);
  // A kernel that does not say in which order it goes may meet the worst one on any row.
  EXPECT_EQ(error_model(Traits(), of(kCols, 256), falling).rescales, 999);
}

TEST(BenchBounds, ConstantsOfExpAndDivision) {
  const auto constants = [](Exp exp, Divide divide, bool fast) {
    Traits traits;
    traits.exp = exp;
    traits.divide = divide;
    return error_model(traits, of(kCols, 32), fast);
  };
  EXPECT_EQ(constants(Exp::expf, Divide::ieee, false).exp.kappa, 0);
  EXPECT_EQ(constants(Exp::expf, Divide::ieee, false).divide, reference::kDivideIeee);
  EXPECT_EQ(constants(Exp::expf, Divide::ieee, false).a, 1);
  EXPECT_EQ(constants(Exp::expf, Divide::ieee, false).eta, reference::kEtaGradual);
  EXPECT_GT(constants(Exp::fast, Divide::ieee, false).exp.kappa, 1);
  EXPECT_EQ(constants(Exp::exp2_folded, Divide::reciprocal, false).a, 0);
  EXPECT_EQ(constants(Exp::expf, Divide::reciprocal, false).divide, reference::kDivideReciprocal);
  EXPECT_EQ(constants(Exp::expf, Divide::fast, false).divide, reference::kDivideFast);
  // A fast-math build turns the plain operations into the fast ones.
  EXPECT_GT(constants(Exp::expf, Divide::ieee, true).exp.kappa, 1);
  EXPECT_EQ(constants(Exp::expf, Divide::ieee, true).divide, reference::kDivideFast);
  EXPECT_EQ(constants(Exp::expf, Divide::reciprocal, true).divide, reference::kDivideFastReciprocal);
  EXPECT_EQ(constants(Exp::expf, Divide::ieee, true).eta, reference::kEtaFlushed);
}

// A kernel of plans counts for itself.
TEST(BenchBounds, OwnRounding) {
  Traits traits;
  traits.rounding = [](const Problem& p) { return Rounding{p.cols / 100, p.plan.blocks}; };
  Problem p = of(kCols, 0);
  EXPECT_EQ(error_model(traits, p).additions, 10);
  EXPECT_FALSE(error_model(traits, p).online);
  p.plan.blocks = 4;
  EXPECT_TRUE(error_model(traits, p).online);
  EXPECT_EQ(error_model(traits, p).merges, 4);
  EXPECT_EQ(error_model(traits, p).rescales, 0);
  EXPECT_EQ(rescaling_threads(traits, 256), 0);
}

TEST(BenchBounds, TypeOfTheOutput) {
  EXPECT_EQ(error_model(Traits(), of(kCols, 32)).output.relative, 0);
  EXPECT_EQ(error_model(Traits(), of(kCols, 32, DataType::fp16)).output.relative, 0x1p-11 / reference::kUnit);
  EXPECT_EQ(error_model(Traits(), of(kCols, 32, DataType::bf16)).output.relative, 0x1p-8 / reference::kUnit);
}

TEST(BenchBounds, TemperatureCostsWhatTheProductRounds) {
  const std::vector<float> row = {-INFINITY, -21, 7};
  Problem p = of(3, 32);
  p.temperature = 0.25f;
  EXPECT_EQ(error_model(Traits(), p, row).a, 1);
  EXPECT_EQ(error_model(Traits(), p, row).scaled_max, 0);
  p.temperature = 0.7f;
  EXPECT_EQ(error_model(Traits(), p, row).a, 3);
  EXPECT_NEAR(error_model(Traits(), p, row).scaled_max, 10, 1e-5);

  // Where the difference is taken first and then scaled, only the scale is off, however large the maximum is.
  Traits shifted;
  shifted.exp = Exp::shifted;
  Arithmetic seen;
  seen.shifted = {2, 1};
  seen.fine = {3, 0};
  p.out_type = DataType::bf16;
  const auto model = error_model(shifted, p, row, seen);
  EXPECT_EQ(model.a, 1);
  EXPECT_EQ(model.scaled_max, 0);
  EXPECT_EQ(model.exp.kappa, 2);
  EXPECT_EQ(model.exp.eps0, 5) << "certified at temperature 1 alone";
  EXPECT_FALSE(model.sum_exp);
  p.temperature = 4;
  EXPECT_EQ(error_model(shifted, p, row, seen).exp.eps0, 2);

  // Outputs of 32 bits take a finer one, whose scale has a rest. Who outputs what it adds up has no other.
  p.out_type = DataType::fp32;
  EXPECT_EQ(error_model(shifted, p, row, seen).exp.eps0, 3);
  EXPECT_EQ(error_model(shifted, p, row, seen).sum_exp.value().eps0, 2);
  shifted.rounding = [](const Problem&) { return Rounding{7, 0}; };
  EXPECT_FALSE(error_model(shifted, p, row, seen).sum_exp);
  shifted.rounding = [](const Problem&) { return Rounding{7, 0, false}; };
  p.temperature = 0.7f;
  EXPECT_EQ(error_model(shifted, p, row, seen).exp.eps0, reference::kFineExp.eps0);
  EXPECT_EQ(error_model(shifted, p, row, seen).sum_exp.value().kappa, 2);
}

TEST(BenchBounds, EmptyAndTinyRows) {
  for (const auto s : {Summation::unknown, Summation::sequential, Summation::warp, Summation::block_tree})
    for (const std::int64_t cols : {0, 1}) {
      const auto model = error_model(with(Algorithm::online, s), of(cols, 1024));
      EXPECT_EQ(model.additions, 0);
      EXPECT_EQ(model.rescales, 0);
      EXPECT_EQ(model.merges, 0);
    }
}

}  // namespace
}  // namespace softmax
