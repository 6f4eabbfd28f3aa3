// Matrices of more than 2^31 and 2^32 elements, which 32 bits do not count, of every kernel with plans. On a GPU only: the CPU
// device would take hours.

#include <algorithm>
#include <cmath>

#include "benchmarks/verify.hpp"
#include "benchmarks/workspace.hpp"
#include "kernels/input.hpp"
#include "kernels/narrow.hpp"
#include "properties/bounds.hpp"
#include "properties/harness.hpp"

namespace softmax::properties {
namespace {

using bench::Shape;

constexpr List<DataType> kBoth = {DataType::fp32, DataType::bf16};

class Large : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(kernel()); }
  const Kernel& kernel() const { return *GetParam(); }
  Machine& machine() const { return kernel().machine(); }
  bool takes(const Shape& shape) const { return kernel().unsupported(bench::problem_of(shape, {})).empty(); }

  void launch(bench::Workspace& workspace) {
    kernel().launch(workspace.problem(kernel(), {}));
    machine().synchronize();
  }
  // Some rows element by element, the sums of all.
  void expect_right(const Shape& shape) {
    if (const std::string why = bench::Workspace::no_room(machine(), shape); !why.empty()) GTEST_SKIP() << why;
    bench::Workspace workspace(machine(), shape, {});
    bench::Expected expected = bench::expect(workspace, {});
    launch(workspace);
    EXPECT_EQ(bench::verify(workspace, expected, kernel().traits(), {}).wrong, "")
        << shape.rows << " x " << shape.cols << ", " << name(shape.types());
  }
};

TEST_P(Large, many_short_rows) {
  for (const DataType type : kBoth) {
    expect_right({(std::int64_t{1} << 27) + 1, 40, false, type, type});
    if (IsSkipped()) return;
  }
}

// As long as the kernel takes, up to 2^23, no two of them aligned alike.
TEST_P(Large, few_long_rows) {
  for (const DataType type : kBoth) {
    Shape shape{1, 1, false, type, type};
    for (std::int64_t cols = 32; cols <= 1 << 23; cols *= 2)
      if (takes({1, cols, false, type, type})) shape.cols = cols - 3;
    shape.rows = (std::int64_t{1} << 32) / shape.cols + 88;
    expect_right(shape);
    if (IsSkipped()) return;
  }
}

// Rows too long for long double: all of a row's outputs are exp(x) times one number, and their sum is 1.
TEST_P(Large, rows_of_more_than_31_bits) {
  for (const DataType type : kBoth) {
    const Shape shape{3, (std::int64_t{1} << 31) + 5, false, type, type};
    const std::int64_t cols = shape.cols;
    if (!takes(shape)) GTEST_SKIP() << "does not take " << shape.rows << " x " << cols;
    if (const std::string why = bench::Workspace::no_room(machine(), shape); !why.empty()) GTEST_SKIP() << why;
    bench::Workspace workspace(machine(), shape, {});
    launch(workspace);
    EXPECT_EQ(workspace.damage(), "");
    const auto model = error_model(kernel().traits(), bench::problem_of(shape, {}), arithmetic_of(machine()));
    const long double spread = std::log(double(cols));
    const std::vector<double> sums = machine().row_sums(workspace.out().data(), shape.out().rows, type);
    const std::size_t width = bytes_per_element(type);
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      EXPECT_LE(std::fabs(sums[std::size_t(r)] - 1), reference::row_sum_bound(model, cols, spread) + cols * 0x1p-53L)
          << "row " << r;
      long double least = INFINITY, most = 0, worst = 0;
      for (std::int64_t i = 0; i < 4000; ++i) {
        const std::int64_t column = i < 1000   ? i
                                    : i < 2000 ? cols - 1 - (i - 1000)
                                               : std::int64_t(random_bits(7, std::uint64_t(i)) % std::uint64_t(cols));
        const float x = rounded(noise(1, std::uint64_t(r * cols + column)), type);
        if (std::fabs(x) > 4) continue;  // far below the maximum, or the maximum
        unsigned char bytes[4];
        workspace.out().download(bytes, width, std::size_t(r * cols + column) * width);
        const long double y = element(bytes, 0, type), factor = y / std::exp(static_cast<long double>(x));
        ASSERT_GT(y, 0) << "row " << r << ", column " << column;
        least = std::min(least, factor);
        most = std::max(most, factor);
        // The largest x is below 70.
        worst = std::max(worst, reference::element_bound(model, y, 74, spread) / y);
      }
      EXPECT_LE(most / least, (1 + worst) / (1 - worst)) << "row " << r;
    }
  }
}

std::vector<const Kernel*> with_plans() {
  std::vector<const Kernel*> all;
  for (const Kernel* k : kernels())
    if (k->traits().plan && !k->machine().simulated()) all.push_back(k);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Large, testing::ValuesIn(with_plans()),
                         [](const auto& info) { return test_name(*info.param); });

}  // namespace
}  // namespace softmax::properties
