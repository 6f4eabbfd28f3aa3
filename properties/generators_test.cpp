// What the laws are asked: every class of cases must be drawn often enough, or a law holds because nobody looked.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/input.hpp"
#include "properties/classes.hpp"
#include "properties/harness.hpp"
#include "properties/laws.hpp"

namespace softmax::properties {
namespace {

constexpr int kDraws = 60;  // of each law

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
  for (const Class& each : classes()) {
    const double least = each.least(kernel);
    if (least == 0) continue;
    EXPECT_GE(share([&](const Case& c) { return each.is(kernel, c); }), least) << each.name;
  }
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
