// What kills all mutants (properties/mutants/), asked of every kernel before anything else is: the quickest way to know that
// one is broken.

#include "properties/mutants/battery.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "properties/harness.hpp"

namespace softmax::properties {
namespace {

class Battery : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam()); }
};

TEST_P(Battery, finds_nothing) {
  std::ifstream file(SOFTMAX_SOURCE_DIR "/properties/mutants/battery.csv");
  std::string line, name, generator;
  int asked = 0;
  for (std::getline(file, line); std::getline(file, line);) {
    std::istringstream of(line);
    std::getline(of, name, ','), std::getline(of, generator);
    const Law& one = law(name);
    if (one.applies && !one.applies(GetParam()->traits())) continue;
    for (const auto& [at, found] : ask(one, *GetParam(), generator)) {
      EXPECT_EQ(found.kill, 0) << "case " << found.kill << " of " << at << " breaks " << name;
      asked += found.cases;
    }
  }
  EXPECT_GT(asked, 10);
}

INSTANTIATE_TEST_SUITE_P(All, Battery, testing::ValuesIn(kernels().begin(), kernels().end()),
                         [](const auto& info) { return test_name(*info.param); });

}  // namespace
}  // namespace softmax::properties
