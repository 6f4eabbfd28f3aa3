// A wrong kernel gets an error and no number, whatever is wrong with it.

#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "benchmarks/verify.hpp"
#include "properties/bench_run.hpp"

namespace softmax::bench {
namespace {

using testing::HasSubstr;
using BenchVerify = BenchRun;

TEST_F(BenchVerify, WrongOutputsGetAnErrorAndNoNumber) {
  EXPECT_THAT(error_under([](const Problem& p) { row(p, 99)[299] *= 1.001f; }),
              HasSubstr("INCORRECT: row 99, column 299: got "));
  EXPECT_THAT(error_under([](const Problem& p) { row(p, 0)[7] = NAN; }),
              HasSubstr("row 0, column 7: got nan, expected"));
  EXPECT_THAT(error_under([](const Problem& p) { std::fill_n(row(p, 0), 100 * 300, 0.f); }),
              HasSubstr("row 0, column 0: got 0,"));
  EXPECT_THAT(error_under([](const Problem& p) { std::fill_n(row(p, 99), 300, 1.f / 300); }),
              HasSubstr("row 99, column 0"));
  EXPECT_THAT(error_under([](const Problem& p) { std::memset(row(p, 40), kPoison, 4); }),
              HasSubstr("row 40"));  // not written
  EXPECT_THAT(error_under([](const Problem& p) { row(p, 100)[0] = 1; }), HasSubstr("output: byte 0 past the end"));
  EXPECT_THAT(error_under([](const Problem& p) { row(p, 0)[-1] = 1; }), HasSubstr("before the start"));
}

TEST_F(BenchVerify, WhatLiesBetweenRowsIsNobodysToReadOrToWrite) {
  constexpr std::int64_t kGap = 3;
  for (const InOut at : {InOut(), InOut{1, 2}}) {
    points_ = {{{3000, 300, false, DataType::fp32, DataType::fp32, at, {kGap, kGap}}}};
    const auto seen = rows_to_verify(points_[0].shape);
    std::int64_t hidden = 0;
    while (std::ranges::count(seen, hidden) > 0) ++hidden;
    sabotage = nullptr;
    EXPECT_EQ(error_of(run("/V6/.*block:32/").at(0)), "");
    const std::string what = std::to_string(hidden);
    EXPECT_THAT(error_under([=](const Problem& p) { row(p, hidden)[300] = 0; }),
                HasSubstr("INCORRECT: row " + what + ": element 0 past its end was written"));
    EXPECT_THAT(error_under([](const Problem& p) { row(p, 31)[-1] = 0; }), HasSubstr("row 30: element 2 past its end"));
    EXPECT_THAT(error_under([](const Problem& p) { row(p, 2999)[300] = 0; }), HasSubstr("row 2999: byte 0 past its"));
    EXPECT_THAT(error_under([](const Problem& p) { row(p, 0)[-1] = 0; }),
                at == InOut() ? HasSubstr("output: byte 4 before the start") : HasSubstr("row 0: byte 4 before its"));
    EXPECT_THAT(error_under([](const Problem& p) {  // as if rows had no gap
                  for (std::int64_t r = 0; r < p.rows; ++r) std::copy_n(row(p, r), p.cols, row(p, 0) + r * p.cols);
                }),
                HasSubstr("row 0: byte 0 past its end was written"));
    EXPECT_THAT(error_under([](const Problem& p) {  // one element too many
                  row(p, 0)[0] += 0 * static_cast<const float*>(p.in)[p.cols];
                }),
                HasSubstr("row 0, column 0: got nan"));
  }
}

TEST_F(BenchVerify, GapsOfEverySetAreVerified) {
  points_ = {{{.rows = 200, .cols = 300, .gap = {0, 2}}, Mode::graph, {32}}};
  EXPECT_THAT(error_under([](const Problem& p) {
                if (launches % 2 == 0) row(p, 150)[301] = 7;
              }),
              HasSubstr("INCORRECT: set 1 of 2 differs from set 0"));
}

TEST_F(BenchVerify, EverySetOfAGraphIsVerified) {
  points_ = {{{200, 300}, Mode::graph, {32}}};
  EXPECT_THAT(error_under([](const Problem& p) {
                if (launches % 2 == 0) row(p, 150)[7] *= 1.0000001f;  // within any bound, but not what set 0 holds
              }),
              HasSubstr("INCORRECT: set 1 of 2 differs from set 0"));
  EXPECT_THAT(error_under([](const Problem& p) {
                if (launches > 20 && launches % 2 == 0) row(p, 0)[0] = 0.5f;
              }),
              HasSubstr("set 1 of 2"));
}

TEST_F(BenchVerify, LastSetIsVerifiedToo) {
  fake_.cache = 240000;  // three sets
  points_ = {{{100, 300}, Mode::graph, {32}}};
  EXPECT_THAT(error_under([](const Problem& p) {
                if (launches % 3 == 0) row(p, 50)[7] *= 1.0000001f;
              }),
              HasSubstr("INCORRECT: set 2 of 3 differs from set 0"));
}

TEST_F(BenchVerify, SumOfARowThatNobodyLookedAtIsChecked) {
  points_ = {{{1000, 300}}};
  const auto seen = rows_to_verify(points_[0].shape);
  const std::int64_t hidden = [&] {
    for (std::int64_t r = 0;; ++r)
      if (!std::binary_search(seen.begin(), seen.end(), r)) return r;
  }();
  EXPECT_THAT(error_under([=](const Problem& p) { row(p, hidden)[5] += 1e-4f; }),
              HasSubstr("row " + std::to_string(hidden) + ": its sum is 1.000"));
  EXPECT_THAT(error_under([=](const Problem& p) { row(p, hidden)[5] = NAN; }), HasSubstr("its sum is nan, expected 1"));
}

TEST_F(BenchVerify, KernelThatGoesWrongWhileItIsTimedIsCaught) {
  EXPECT_THAT(error_under([](const Problem& p) {
                if (launches > 20) row(p, 0)[0] = 0.5f;
              }),
              HasSubstr("row 0, column 0: got 0.5"));
  EXPECT_GT(fake_.timed, 0);
}

// Right before and after: only what the timed launches left tells.
TEST_F(BenchVerify, KernelThatIsWrongOnlyWhileItIsTimedIsCaught) {
  EXPECT_THAT(error_under([](const Problem& p) {
                if (machine->in_time) row(p, 0)[0] = 0.5f;
              }),
              HasSubstr("row 0, column 0: got 0.5"));
}

TEST_F(BenchVerify, KernelThatDoesNothingWhileItIsTimedIsCaught) {
  const auto lazy = [](const Problem& p) {
    if (!machine->in_time) launch(p);
  };
  const Kernel v9(9, "v9_lazy", "lazy", "v9_lazy.cu", current, lazy, kRight);
  kernels_ = {&v9};
  EXPECT_THAT(error_of(run("/V9/.*block:32/").at(0)), HasSubstr("row 0, column 0: got -0.22"));  // the copy's
  fake_.copy_ways = 0;
  EXPECT_THAT(error_of(run("/V9/.*block:32/").at(0)), HasSubstr("row 0, column 0: got nan"));
}

TEST_F(BenchVerify, OutputOfAnEarlierLaunchDoesNotCount) {
  last_launch = 20;
  EXPECT_THAT(error_under(nullptr), HasSubstr("row 0, column 0: got nan"));
}

TEST_F(BenchVerify, ErrorsOfLaunchAndMemoryAreTheCasesErrors) {
  EXPECT_THAT(error_under([](const Problem&) { throw std::runtime_error("misaligned address"); }),
              HasSubstr("misaligned address"));
  sabotage = nullptr;
  const auto right = std::exchange(fake_.copying, [](int, void*, const void*, std::size_t) {});
  EXPECT_THAT(error_of(run("copy").front()), HasSubstr("way 0 to copy does not copy"));
  fake_.copying = right;
  fake_.script = [](int) { return 0.0; };
  EXPECT_THAT(error_of(run("/V6/").front()), HasSubstr("clock measured 0"));
}

TEST_F(BenchVerify, InputOfAFileMayHoldRowsOfNaN) {
  auto file = std::make_shared<Matrix>(Matrix{3, 4, {1, 2, 3, 4, INFINITY, 0, 0, 0, -INFINITY, 0, 1, -INFINITY}});
  input_ = {.file = file, .file_name = "rows.npy"};
  points_ = {{input_.file_shape()}};
  const auto runs = run("/V6/.*block:32/");
  EXPECT_EQ(error_of(runs.at(0)), "");
  EXPECT_EQ(runs[0].report_label, "right too @ rows.npy");
  EXPECT_THAT(error_under([](const Problem& p) { row(p, 1)[1] = 0; }),
              HasSubstr("row 1, column 1: got 0, expected nan"));
}

TEST_F(BenchVerify, KernelThatWritesToItsInputIsCaughtAndHarmsNoOther) {
  sabotage = [](const Problem& p) {
    if (launches == 1) const_cast<float*>(static_cast<const float*>(p.in))[70 * p.in_stride] += 1;
  };
  const auto runs = run("/V[16]/.*block:32/");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_THAT(error_of(runs[0]), HasSubstr("INCORRECT: row 70"));
  EXPECT_EQ(error_of(runs[1]), "");
}

TEST(BenchRows, EndsBoundariesAndAllOfASmallMatrix) {
  for (const Shape shape : {Shape{8192, 50257}, {1, 1}, {63, 7}, {16, 1571}, {1 << 20, 4096}, {4, 1 << 24}}) {
    const auto rows = rows_to_verify(shape);
    EXPECT_EQ(rows.front(), 0);
    EXPECT_EQ(rows.back(), shape.rows - 1);
    EXPECT_LE(std::int64_t(rows.size()), std::max<std::int64_t>(64, (1 << 18) / shape.cols));
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  }
  EXPECT_THAT(rows_to_verify({1 << 20, 4096}), testing::IsSupersetOf({1 << 19, 31, 32, 1023, 1024}));  // 2^31 / 4096
  EXPECT_EQ(rows_to_verify({1536, 128}).size(), 1536u);
}

}  // namespace
}  // namespace softmax::bench
