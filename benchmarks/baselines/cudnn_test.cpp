#include "benchmarks/baselines/cudnn.hpp"

#include <gtest/gtest.h>

#include "benchmarks/verify.hpp"
#include "benchmarks/workspace.hpp"
#include "kernels/machine.hpp"

namespace softmax::bench {
namespace {

TEST(Baselines, cudnn_is_right_or_says_why_not) {
  Machine& machine = *machines().front();
  const auto& [kernel, version, why_not] = cudnn(machine);
  if (!kernel) {
    EXPECT_TRUE(why_not.starts_with("cudnn: ") && why_not.size() > 10) << why_not;
    GTEST_SKIP() << why_not;
  }
  EXPECT_TRUE(why_not.empty() && !version.empty());
  int turn = 0;
  for (Shape shape : {Shape{1, 1}, {33, 1000}, {64, 2048}, {5, 50257}, {2, 262144}, {33, 1000}, {3, 4096}}) {
    const Types types = kernel->traits().types[turn++ % kernel->traits().types.size()];
    shape.in_type = types.in, shape.out_type = types.out;
    Workspace ws(machine, shape, Input{});
    Expected expected = expect(ws, Input{});
    kernel->launch(ws.problem(*kernel, 0));
    machine.synchronize();
    EXPECT_EQ(verify(ws, expected, kernel->traits(), 0).wrong, "")
        << shape.rows << " x " << shape.cols << " of " << name(types);
  }
  // 2^31 - 2^13 elements, then 2^31.
  EXPECT_EQ(kernel->unsupported(problem_of({8192, 262143}, 0)), "");
  EXPECT_NE(kernel->unsupported(problem_of({8192, 262144}, 0)).find("2147483647 elements at most"), std::string::npos);
}

}  // namespace
}  // namespace softmax::bench
