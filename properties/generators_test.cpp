// What the laws are asked: every class of cases must be drawn often enough, or a law holds because nobody looked.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/input.hpp"
#include "properties/harness.hpp"
#include "properties/laws.hpp"

namespace softmax::properties {
namespace {

constexpr int kDraws = 60;  // of each law

bool takes(const Kernel& k, std::int64_t rows, std::int64_t cols) {
  return k.unsupported(problem_of({.rows = rows, .cols = cols, .block = k.traits().blocks[0]})).empty();
}

// At least so many per cent of all cases; where the kernel knows such cases.
struct Class {
  const char* name;
  double percent;
  bool (*is)(const Kernel&, const Case&);
  bool (*known)(const Kernel&);
};
bool always(const Kernel&) { return true; }
template <std::int64_t cols>
bool wide(const Kernel& k) {
  return takes(k, 1, cols);
}
template <std::int64_t step>
bool beside(const Kernel&, const Case& c) {
  const std::int64_t rest = c.cols % step;
  return c.cols > 1 && (rest == 0 || rest == 1 || rest == step - 1);
}
// One column more, or less, and another kernel or plan would do it.
bool at_a_step(const Kernel& k, const Case& c) {
  const auto chosen = [&](std::int64_t cols) {
    Case other = c;
    other.cols = cols;
    const Problem p = problem_of(other);
    if (!k.unsupported(p).empty()) return std::string("none");
    return to_string(k.choice(p));
  };
  const std::string own = chosen(c.cols);
  return own != chosen(c.cols + 1) || (c.cols > 1 && own != chosen(c.cols - 1));
}
// Some exp is 0.
bool saturated(const Kernel&, const Case& c) {
  if (c.rows * c.cols > 4096) return false;
  const auto x = values(c);
  float least = INFINITY, most = -INFINITY;
  for (std::size_t i = 0; i < std::size_t(c.cols); ++i) least = std::fmin(least, x[i]), most = std::fmax(most, x[i]);
  return most - least > 104;
}

const Class kClasses[] = {
    {"one column", 0.3, [](const Kernel&, const Case& c) { return c.cols == 1; }, always},
    {"two to 32 columns", 3, [](const Kernel&, const Case& c) { return c.cols > 1 && c.cols <= 32; }, always},
    {"columns that a warp just holds", 3, beside<32>, wide<65>},
    {"columns that a block just holds", 1, beside<256>, wide<1025>},
    {"columns that no vector divides", 20, [](const Kernel&, const Case& c) { return c.cols % 4 != 0; }, wide<7>},
    {"more than 1024 columns", 5, [](const Kernel&, const Case& c) { return c.cols > 1024; }, wide<9000>},
    {"more than 8192 columns", 1, [](const Kernel&, const Case& c) { return c.cols > 8192; }, wide<40000>},
    {"more than 32768 columns", 0.3, [](const Kernel&, const Case& c) { return c.cols > 32768; }, wide<70000>},
    {"a step of the choice", 1, at_a_step, [](const Kernel& k) { return k.traits().choice != nullptr; }},
    {"one row", 5, [](const Kernel&, const Case& c) { return c.rows == 1; }, always},
    {"some rows", 5, [](const Kernel&, const Case& c) { return c.rows > 1 && c.rows < 33; }, always},
    {"many rows", 0.1, [](const Kernel&, const Case& c) { return c.rows >= 33; }, always},
    {"an input that begins astray", 10, [](const Kernel&, const Case& c) { return c.in_shift != 0; }, always},
    {"an output astray by another", 10, [](const Kernel&, const Case& c) { return c.out_shift != c.in_shift; }, always},
    {"padded rows", 5, [](const Kernel&, const Case& c) { return c.in_padding != 0 || c.out_padding != 0; }, always},
    {"rows padded in two ways", 3, [](const Kernel&, const Case& c) { return c.in_padding != c.out_padding; }, always},
    {"in place", 2, [](const Kernel&, const Case& c) { return c.in_place; },
     [](const Kernel& k) { return k.traits().in_place; }},
    {"a temperature", 2, [](const Kernel&, const Case& c) { return c.temperature != 1; },
     [](const Kernel& k) { return k.traits().temperature; }},
    {"a temperature for each row", 1, [](const Kernel&, const Case& c) { return c.each_row; },
     [](const Kernel& k) { return k.traits().temperature; }},
    {"a plan", 10, [](const Kernel&, const Case& c) { return c.plan != Plan(); },
     [](const Kernel& k) { return k.traits().plans.size() > 0; }},
    {"far from 0", 5, [](const Kernel&, const Case& c) { return std::fabs(c.offset) >= 1e4f; }, always},
    {"an exp that is 0", 2, saturated, always},
    {"masks", 10, [](const Kernel&, const Case& c) { return masked(c.kind); }, always},
    {"another order of threads", 20,
     [](const Kernel&, const Case& c) { return c.schedule.order != Schedule::Order::forward; }, always},
};

class Generators : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam()); }
  static std::vector<Case> draws(const Kernel& kernel) {
    std::vector<Case> all;
    for (const Law* law : laws(kernel)) {
      const rc::Gen<Case> gen = law->cases(kernel);
      for (int i = 0; i < kDraws; ++i)
        all.push_back(gen(rc::Random(mix(std::uint64_t(i) + 1000 * std::uint64_t(all.size()))), i % 100).value());
    }
    return all;
  }
};

TEST_P(Generators, draw_every_class) {
  const Kernel& kernel = *GetParam();
  const std::vector<Case> all = draws(kernel);
  const auto share = [&](auto is) { return 100.0 * double(std::ranges::count_if(all, is)) / double(all.size()); };
  for (const Class& each : kClasses) {
    if (!each.known(kernel)) continue;
    EXPECT_GE(share([&](const Case& c) { return each.is(kernel, c); }), each.percent) << each.name;
  }
  const Traits& traits = kernel.traits();
  for (const Kind kind : all_kinds()) EXPECT_GE(share([&](const Case& c) { return c.kind == kind; }), 1) << name(kind);
  for (const int block : traits.blocks)
    EXPECT_GE(share([&](const Case& c) { return c.block == block; }), 30.0 / double(traits.blocks.size())) << block;
  for (const Types types : traits.types)
    EXPECT_GE(share([&](const Case& c) { return c.types == types; }), 30.0 / double(traits.types.size()))
        << name(types);
  for (const Plan& plan : traits.plans)
    EXPECT_GE(share([&](const Case& c) { return c.plan.threads == plan.threads && c.plan.vectors == plan.vectors; }),
              5.0 / double(traits.plans.size()))
        << to_string(plan);
}

// A line that a failure prints is the case that failed.
TEST_P(Generators, print_what_can_be_read_again) {
  for (const Case& c : draws(*GetParam())) {
    std::ostringstream line;
    line << c;
    ASSERT_TRUE(parse_case(line.str()) == c) << line.str();
  }
}

TEST(Cases, that_cannot_be_read_are_refused) {
  for (const char* line :
       {"", "normal", "normal 1 x", "abnormal 1 x 2", "normal 1 by 2", "normal 1 x 2 offset",
        "normal 1 x 2 offset high", "normal 1 x 2 padding 3", "normal 1 x 2 plan 256", "normal 1 x 2 c4",
        "normal 1 x 2 types fp8", "normal 1 x 2 schedule random", "normal 1 x 2 seed -1"})
    EXPECT_THROW(parse_case(line), std::invalid_argument) << line;
}

INSTANTIATE_TEST_SUITE_P(All, Generators, testing::ValuesIn(kernels().begin(), kernels().end()),
                         [](const auto& info) { return test_name(*info.param); });

}  // namespace
}  // namespace softmax::properties
