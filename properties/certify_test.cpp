// The machine's exps, against what the bounds of the laws take for granted.
#include "properties/certify/certify.hpp"

#include <gtest/gtest.h>

namespace softmax::certify {
namespace {

class Certify : public testing::TestWithParam<Exp> {
 protected:
  void SetUp() override {
    Machine& machine = GetParam().machine();
    if (const std::string why = machine.unavailable(); !why.empty()) GTEST_SKIP() << why;
    machine.watch(Watch::off);
  }
  std::uint32_t step() const { return GetParam().machine().simulated() ? 16384 : 1; }
};

TEST_P(Certify, is_what_the_bounds_take_it_for) {
  const Exp& exp = GetParam();
  const Answer a = survey(exp, step());
  EXPECT_EQ(a.values, (kValues + step() - 1) / step());
  EXPECT_LE(a.excess, documented(exp).eps0);
  EXPECT_GT(a.excess, 0.25) << "less than half a rounding: was anything looked at?";
  EXPECT_LE(a.most, 1);
  EXPECT_EQ(at_zero(exp), 1);
}

std::string name(const testing::TestParamInfo<Exp>& info) {
  return std::string(info.param.machine().id()) + "_" + std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(Exps, Certify, testing::ValuesIn(exps()), name);

}  // namespace
}  // namespace softmax::certify
