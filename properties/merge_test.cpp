// The merge under each of its laws; SOFTMAX_CASE='seed N' asks for one seed again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>

#include "properties/merge_laws.hpp"

namespace softmax::merge {
namespace {

class Merge : public testing::TestWithParam<std::tuple<Merger, MergeLaw>> {};

TEST_P(Merge, holds) {
  const auto& [merger, law] = GetParam();
  if (const std::string why = merger.machine().unavailable(); !why.empty()) GTEST_SKIP() << why;
  const char* const given = std::getenv("SOFTMAX_CASE");
  EXPECT_EQ(law.refute(merger, given ? std::strtoull(given + sizeof "seed", nullptr, 10) : 1), "");
}

INSTANTIATE_TEST_SUITE_P(All, Merge,
                         testing::Combine(testing::ValuesIn(mergers()),
                                          testing::ValuesIn(merge_laws().begin(), merge_laws().end())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).machine().id()) + "_" +
                                  std::string(std::get<1>(info.param).name);
                         });

}  // namespace
}  // namespace softmax::merge
