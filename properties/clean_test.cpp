// The checks of the CPU device find nothing wrong in the kernels of the registry, in whatever order threads run.

#include <gtest/gtest.h>

#include <vector>

#include "properties/harness.hpp"
#include "properties/runner.hpp"

namespace softmax::properties {
namespace {

std::vector<const Kernel*> simulated() {
  std::vector<const Kernel*> all;
  for (const Kernel* k : kernels())
    if (k->machine().simulated()) all.push_back(k);
  return all;
}

class Clean : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam()); }
};

TEST_P(Clean, under_every_schedule) {
  constexpr int kSeeds = 100, kLargestBlock = 256, kDear = 4096;  // threads: a fourth of the seeds will do
  struct Shape {
    std::int64_t rows, cols;
    int padding;
  };
  int launches = 0;
  for (const int block : GetParam()->traits().blocks)
    for (const auto& [rows, cols, padding] : {Shape{1, 300, 0}, {3, 33, 1}, {33, 2, 0}})
      for (std::uint64_t seed = 0; seed < kSeeds && block <= kLargestBlock; ++seed) {
        Case c{.rows = rows, .cols = cols, .in_padding = padding, .out_padding = padding, .block = block};
        c.schedule = {Schedule::Order::seeded, seed};
        if (!GetParam()->unsupported(problem_of(c)).empty()) continue;
        if (threads_of(*GetParam(), c) > kDear && seed % 4 != 0) continue;
        ++launches;
        ASSERT_NO_THROW(run(*GetParam(), c)) << c;
      }
  EXPECT_GT(launches, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Clean, testing::ValuesIn(simulated()),
                         [](const auto& info) { return test_name(*info.param); });

}  // namespace
}  // namespace softmax::properties
