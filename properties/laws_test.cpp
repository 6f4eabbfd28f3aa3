// Every kernel under every law: the one suite that judges the registry.

#include "properties/laws.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "properties/falsify.hpp"
#include "properties/harness.hpp"

namespace softmax::properties {
namespace {

struct Article {
  const Kernel* kernel;
  const Law* law;
};
void PrintTo(const Article& a, std::ostream* out) { *out << *a.kernel << ", " << a.law->statement; }

std::vector<Article> articles() {
  std::vector<Article> all;
  for (const Kernel* kernel : kernels())
    for (const Law* law : laws(*kernel)) all.push_back({kernel, law});
  return all;
}

class Laws : public testing::TestWithParam<Article> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam().kernel); }
};

TEST_P(Laws, hold) {
  const auto& [kernel, law] = GetParam();
  if (const char* const given = std::getenv("SOFTMAX_CASE")) {
    const Case c = parse_case(given);
    if (const std::string why = kernel->unsupported(problem_of(c)); !why.empty()) GTEST_SKIP() << why;
    EXPECT_EQ(law->refute(*kernel, c), "") << c;
    return;
  }
  // RapidCheck's own call for gtest, with the case drawn inside: it shrinks and prints how to reproduce.
  Falsify falsify(*kernel, *law);
  rc::detail::checkGTest([&] { falsify.draw(); });
}

INSTANTIATE_TEST_SUITE_P(All, Laws, testing::ValuesIn(articles()), [](const auto& info) {
  return test_name(*info.param.kernel) + "_" + std::string(info.param.law->name);
});

}  // namespace
}  // namespace softmax::properties
