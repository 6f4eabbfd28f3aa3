// Fixed cases that every kernel must get right: published vectors, special values, sizes and addresses at their limits.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "benchmarks/npy.hpp"
#include "kernels/input.hpp"
#include "kernels/narrow.hpp"
#include "properties/bounds.hpp"
#include "properties/harness.hpp"
#include "properties/runner.hpp"
#include "properties/vectors.hpp"
#include "reference/error.hpp"
#include "reference/softmax.hpp"

namespace softmax::properties {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class Examples : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(kernel()); }
  const Kernel& kernel() const { return *GetParam(); }
  bool fast() const { return kernel().machine().math() == "fast"; }
  // A kernel need not take every shape; what it does not take is left out of the examples.
  bool takes(std::int64_t rows, std::int64_t cols, int block) const {
    return kernel().unsupported(problem_of({.rows = rows, .cols = cols, .block = block})).empty();
  }
  int largest_block() const { return kernel().traits().blocks[kernel().traits().blocks.size() - 1]; }

  Buffer zeroed_workspace(const Problem& p) const {
    Buffer workspace(kernel().machine(), std::size_t(kernel().workspace(p)));
    kernel().machine().fill(workspace.data(), 0, workspace.bytes());
    return workspace;
  }

  // `rows` dense rows divided by the one temperature, or each by its own; one of two blocks a row where there is a plan.
  std::vector<float> at_temperatures(const std::vector<float>& x, std::int64_t rows,
                                     const std::vector<float>& temperatures, bool each_row) const {
    std::vector<float> y(x.size());
    const std::size_t bytes = x.size() * sizeof(float), for_each = temperatures.size() * sizeof(float);
    Buffer in(kernel().machine(), bytes), out(kernel().machine(), bytes), each(kernel().machine(), for_each);
    in.upload(x.data(), bytes);
    each.upload(temperatures.data(), for_each);
    const std::int64_t cols = std::int64_t(x.size()) / rows;
    Problem p{.rows = rows, .cols = cols, .in_stride = cols, .out_stride = cols, .in = in.data(), .out = out.data()};
    p.temperature = each_row ? 1 : temperatures[0];
    if (each_row) p.temperatures = each.floats();
    p.max_blocks = 2;
    for (const Plan& plan : kernel().traits().plans) {
      p.plan = {plan.threads, plan.vectors, 0, 2};
      if (kernel().unsupported(p).empty()) break;
      p.plan = {};
    }
    const Buffer workspace = zeroed_workspace(p);
    p.workspace = workspace.data();
    kernel().launch(p);
    kernel().machine().synchronize();
    out.download(y.data(), bytes);
    return y;
  }

  // Every row of x, of every type and under every block size, against the reference.
  void expect_right(const std::vector<float>& given, std::int64_t rows, std::int64_t cols) {
    for (const Types types : kernel().traits().types) {
      std::vector<float> x = given;
      round_to(types.in, x);
      for (int block : kernel().traits().blocks) {
        if (!takes(rows, cols, block)) continue;
        const Output out = run(kernel(), {.rows = rows, .cols = cols, .block = block, .types = types}, x);
        EXPECT_EQ(out.trespass, "");
        for (std::int64_t r = 0; r < rows; ++r) expect_row(row(x, cols, r), row(out.y, cols, r), block, types, rows);
      }
    }
  }

  void expect_row(std::span<const float> x, std::span<const float> y, int block, Types types = {},
                  std::int64_t rows = 1) {
    const reference::Row exact = reference::analyse(x);
    const Problem p = problem_of({.rows = rows, .cols = std::int64_t(x.size()), .block = block, .types = types});
    const reference::ErrorModel model = error_model(kernel().traits(), p, x, arithmetic_of(kernel().machine()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(exact.y[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << "x[" << i << "] = " << x[i] << " gives " << y[i] << ", block " << block;
        continue;
      }
      const long double bound = reference::element_bound(model, exact.y[i], exact.max - x[i], exact.spread);
      EXPECT_TRUE(std::fabs(y[i] - exact.y[i]) <= bound)
          << "x[" << i << "] = " << x[i] << " gives " << y[i] << ", exactly " << exact.y[i] << ", block " << block
          << ", " << name(types);
    }
  }
};

TEST_P(Examples, special_rows) {
  for (const auto& x : special_rows()) expect_right(x, 1, std::int64_t(x.size()));
}

TEST_P(Examples, published_vectors) {
  const char* path = std::getenv("SOFTMAX_VECTORS");
  if (!path) GTEST_SKIP() << "SOFTMAX_VECTORS names no file";
  int checked = 0;
  for (const Vector& v : load_vectors(path)) {
    if (v.op != "softmax" || v.dtype != "fp32" || !takes(v.rows, v.cols, largest_block())) continue;
    ++checked;
    const auto y = run(kernel(), {.rows = v.rows, .cols = v.cols, .block = largest_block()}, v.input).y;
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_TRUE(std::isnan(v.expected[i]) ? std::isnan(y[i]) : std::fabs(y[i] - v.expected[i]) <= v.tolerance)
          << v.name << "[" << i << "]: " << y[i] << ", expected " << v.expected[i];
  }
  EXPECT_GT(checked, 0) << path << " holds no fp32 softmax";
}

// Attention scores of a small model on real text, see analysis/data/README.md.
TEST_P(Examples, real_input) {
  bench::Matrix scores = bench::read_npy(SOFTMAX_SOURCE_DIR "/analysis/data/attention-scores.npy");
  const std::int64_t rows = std::min<std::int64_t>(scores.rows, 64), step = scores.rows / rows;
  std::vector<float> some;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto from = scores.data.begin() + r * step * scores.cols;
    some.insert(some.end(), from, from + scores.cols);
  }
  expect_right(some, rows, scores.cols);
}

// A constant row is 1 / cols to the bit, and shows any element that a tail or a partial warp forgets: short ones in every
// type and wherever rows begin; of long ones, and where a row takes hundreds of fibers, fewer of these ways, in turn.
TEST_P(Examples, every_width) {
  constexpr int kShifts[][2] = {{0, 0}, {4, 4}, {3, 2}, {1, 1}, {0, 5}, {4, 0}, {2, 2}, {0, 0}};
  const Traits& traits = kernel().traits();
  const std::int64_t kShort = 300, last = kernel().machine().simulated() ? kShort : 4100;
  for (std::int64_t cols = 1; cols <= last; ++cols) {
    Case c{.rows = 3, .cols = cols, .block = traits.blocks[int(cols % traits.blocks.size())]};
    if (!takes(c.rows, c.cols, c.block)) continue;
    const std::int64_t fibers = !kernel().machine().simulated() ? 0
                                : traits.plan                   ? threads_of(kernel(), c)
                                                                : c.rows * c.block;
    const int types = traits.types.size(), ways = 2 * types;
    if (traits.plan && fibers > 512) c.rows = 1;
    const int step = cols > kShort || (!traits.plan && fibers > 512) ? ways : fibers > 256 ? 2 : 1;
    for (int way = int(cols % step); way < ways; way += step) {
      c.types = traits.types[way % types];
      const auto [in, out] = kShifts[(cols + cols / 4) % 4 * 2 + way / types];  // each width's remainder meets each
      c.in_shift = in * std::max(traits.alignment / int(bytes_per_element(c.types.in)), 1);
      c.out_shift = out * std::max(traits.alignment / int(bytes_per_element(c.types.out)), 1);
      const auto y = run(kernel(), c, std::vector<float>(std::size_t(c.rows * cols), -3.25f)).y;
      const float exact = rounded(1.0f / float(cols), c.types.out);
      const std::int64_t slack = !fast() ? 0 : c.types.out == DataType::fp32 ? 2 : 1 << 16;  // one step of bf16
      for (float v : y) ASSERT_TRUE(reference::ulp_distance(v, exact) <= slack) << v << ": " << c;
    }
  }
}

// A constant row again, that fills the registers of each plan to the last vector, and a column more and less.
TEST_P(Examples, every_plan_is_full) {
  const Traits& traits = kernel().traits();
  if (traits.plans.size() == 0) GTEST_SKIP() << "has no plans";
  int turn = 0, full = 0;
  for (const Plan& plan : traits.plans)
    for (const int more : {-1, 0, 1}) {
      Case c{.block = 0, .types = traits.types[turn++ % traits.types.size()], .plan = plan};
      const bool narrow = c.types.in != DataType::fp32 && c.types.out != DataType::fp32;
      for (c.plan.blocks = 1; c.plan.blocks <= 2; ++c.plan.blocks) {
        c.cols = std::int64_t(plan.threads) * plan.vectors * (narrow ? 8 : 4) * c.plan.blocks + more;
        if (kernel().unsupported(problem_of(c)).empty() && kernel().plan(problem_of(c)).threads > 0) break;
      }
      if (c.plan.blocks > 2) continue;
      ++full;
      const float exact = rounded(1.0f / float(c.cols), c.types.out);
      const std::int64_t slack = !fast() ? 0 : c.types.out == DataType::fp32 ? 2 : 1 << 16;
      for (float v : run(kernel(), c, std::vector<float>(std::size_t(c.cols), 2.5f)).y)
        ASSERT_TRUE(reference::ulp_distance(v, exact) <= slack) << v << ": " << c;
    }
  EXPECT_GE(full, 2 * traits.plans.size());
}

// More blocks than a warp has lanes, and a block threads, where the machine holds them: none of their sums is lost.
TEST_P(Examples, many_blocks_share_a_row) {
  const Traits& traits = kernel().traits();
  int shared = 0;
  for (const int blocks : {16, 48, 64, 132, 300, 528}) {
    Case c{.cols = 70001, .block = 0, .plan = {.blocks = blocks}};
    for (const Plan& plan : traits.plans)
      if (plan.threads == 128 || c.plan.threads == 0) c.plan.threads = plan.threads, c.plan.vectors = plan.vectors;
    if (c.plan.threads == 0 || !kernel().unsupported(problem_of(c)).empty()) continue;
    if (kernel().plan(problem_of(c)).blocks != blocks) continue;
    ++shared;
    for (float v : run(kernel(), c, std::vector<float>(std::size_t(c.cols), 2.5f)).y)
      ASSERT_TRUE(reference::ulp_distance(v, 1.0f / float(c.cols)) <= (fast() ? 2 : 0)) << v << ": " << c;
  }
  const int version = kernel().version();
  if (version < 10 || version > 12) GTEST_SKIP() << "no blocks of it share a row";
  EXPECT_GE(shared, version == 10 ? 1 : 3);
}

// Rows that the same blocks take one after the other.
TEST_P(Examples, each_row_has_its_temperature) {
  if (!kernel().traits().temperature) GTEST_SKIP() << "knows no temperature";
  constexpr std::int64_t kRows = 5, kCols = 200;
  const std::vector<float> temperatures = {1, 2, 0.5f, 3, 0.25f};
  std::vector<float> x;
  for (std::int64_t i = 0; i < kRows * kCols; ++i) x.push_back(float(i % kCols) / 50);
  const auto y = at_temperatures(x, kRows, temperatures, true);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const std::span<const float> row(x.data() + r * kCols, kCols);
    const reference::Row exact = reference::analyse(row, temperatures[r]);
    for (std::int64_t i = 0; i < kCols; ++i)
      ASSERT_NEAR(y[std::size_t(r * kCols + i)], double(exact.y[std::size_t(i)]), 1e-6)
          << "row " << r << ", column " << i;
  }
}

// The laws draw from these widths; here each has its turn.
TEST_P(Examples, listed_widths) {
  int turn = 0;
  for (const std::int64_t cols : column_list()) {
    const Traits& traits = kernel().traits();
    const Case c{.rows = 2,
                 .cols = cols,
                 .block = traits.blocks[turn % traits.blocks.size()],
                 .types = traits.types[turn % traits.types.size()]};
    ++turn;
    if (!takes(c.rows, c.cols, c.block)) continue;
    const auto x = values(c), y = run(kernel(), c, x).y;
    for (std::int64_t r = 0; r < c.rows; ++r) expect_row(row(x, cols, r), row(y, cols, r), c.block, c.types, c.rows);
  }
}

// Where its inverse is infinite nothing but the maximum is left.
TEST_P(Examples, extreme_temperatures) {
  if (!kernel().traits().temperature) GTEST_SKIP() << "knows no temperature";
  const std::vector<float> x = {1, 3, 2, -INFINITY, 3}, large = {0, 0x1p+100f, 0x1p+101f},
                           small = {0, 0x1p-100f, 0x1p-99f};
  const std::vector<float> of_0_1_2 = {0.09003057f, 0.24472847f, 0.66524096f};
  for (const auto& [temperature, in, expected] : {std::tuple(1e-40f, x, std::vector<float>{0, 0.5f, 0, 0, 0.5f}),
                                                  {0x1p+100f, large, of_0_1_2},
                                                  {0x1p-100f, small, of_0_1_2}})
    for (const bool each_row : {false, true}) {
      const auto y = at_temperatures(in, 1, {temperature}, each_row);
      for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6 * expected[i]) << temperature;
    }
}

TEST_P(Examples, nothing_to_do) {
  for (const auto& [rows, cols] : {std::pair(0, 5), std::pair(5, 0), std::pair(0, 0)}) {
    const Output out = run(kernel(), {.rows = rows, .cols = cols, .block = largest_block()}, {});
    EXPECT_EQ(out.trespass, "") << rows << " x " << cols;
  }
}

// Beyond the 65535 blocks that a grid takes in y and z, and just around it.
TEST_P(Examples, many_rows) {
  struct Size {
    std::int64_t rows, cols;
  };
  // The CPU device runs 65537 blocks one after the other: once is enough, and only where it is no minute's work.
  const Case many{.rows = 65537, .cols = 2, .block = kernel().traits().blocks[0]};
  std::vector<Size> sizes = {{threads_of(kernel(), many) > 65537 * 32 ? 1025 : many.rows, many.cols}};
  if (!kernel().machine().simulated())
    for (std::int64_t rows : {65535, 65536, 70000, 1 << 20})
      for (std::int64_t cols : {1, 2, 33}) sizes.push_back({rows, cols});
  for (const auto& [rows, cols] : sizes) {
    if (!takes(rows, cols, kernel().traits().blocks[0])) continue;
    std::vector<float> x(std::size_t(rows * cols));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = noise(1, i);
    const int block = kernel().traits().blocks[0];
    const auto y = run(kernel(), {.rows = rows, .cols = cols, .block = block}, x).y;
    // No two rows are alike, so a row that read another's shows; all of them, or every seventh of a large matrix.
    const std::int64_t step = rows * cols > 1 << 18 ? 7 : 1;
    for (std::int64_t r = 0; r < rows; r += step) expect_row(row(x, cols, r), row(y, cols, r), block, {}, rows);
    for (std::int64_t r : {std::int64_t{65534}, std::int64_t{65535}, std::int64_t{65536}, rows - 1})
      if (r < rows) expect_row(row(x, cols, r), row(y, cols, r), block, {}, rows);
  }
}

// Rows 2^30 elements apart: the third starts past 2^31 elements, the fifth past 2^32; 32 bits do not hold their
// offsets.
TEST_P(Examples, far_rows) {
  if (!takes(5, 333, kernel().traits().blocks[0])) GTEST_SKIP() << "does not take 5 x 333";
  if (!takes_gaps(kernel())) GTEST_SKIP() << "takes rows without gaps alone";
  Machine& machine = kernel().machine();
  constexpr std::int64_t kStride = std::int64_t{1} << 30, kOut = kStride + 64, kRows = 5, kMost = 336;
  const std::size_t bytes = std::size_t((kRows - 1) * kOut + kMost) * sizeof(float);
  std::optional<Buffer> in, out;
  try {
    in.emplace(machine, bytes, /*sparse=*/true);
    out.emplace(machine, bytes, /*sparse=*/true);
  } catch (const OutOfMemory& e) {
    GTEST_SKIP() << e.what();
  }
  std::vector<std::pair<Types, std::size_t>> ways;
  for (const Types types : kernel().traits().types)
    for (const std::size_t cols : {333, 336})  // 336 are whole vectors of any type
      if (takes(kRows, std::int64_t(cols), kernel().traits().blocks[0])) ways.emplace_back(types, cols);
  for (const auto& [types, cols] : ways) {
    const std::size_t in_width = bytes_per_element(types.in), out_width = bytes_per_element(types.out);
    const auto row_of = [&, cols = cols](std::int64_t r) {
      std::vector<float> x(cols);
      for (std::size_t i = 0; i < cols; ++i) x[i] = float((i * 7 + std::size_t(r) * 31) % 101) / 8;  // any type's
      return x;
    };
    std::vector<unsigned char> bytes(cols * sizeof(float));
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::vector<float> x = row_of(r);
      for (std::size_t i = 0; i < cols; ++i) set_element(bytes.data(), i, types.in, x[i]);
      in->upload(bytes.data(), cols * in_width, std::size_t(r * kStride) * in_width);
    }
    for (int block : {kernel().traits().blocks[0], largest_block()}) {
      Problem p{.rows = kRows,
                .cols = std::int64_t(cols),
                .in_stride = kStride,
                .out_stride = kOut,
                .in_type = types.in,
                .out_type = types.out,
                .in = in->data(),
                .out = out->data(),
                .block = block};
      const Buffer workspace = zeroed_workspace(p);
      p.workspace = workspace.data();
      kernel().launch(p);
      machine.synchronize();
      for (std::int64_t r = 0; r < kRows; ++r) {
        out->download(bytes.data(), cols * out_width, std::size_t(r * kOut) * out_width);
        std::vector<float> y(cols);
        for (std::size_t i = 0; i < cols; ++i) y[i] = element(bytes.data(), i, types.out);
        expect_row(row_of(r), y, block, types, kRows);
      }
    }
  }
}

// Short rows by the hundred: input and output begin anywhere in a vector, rows follow each other at once, by less than a
// vector, by whole ones or by more, and what is copied together ends with a part.
TEST_P(Examples, short_rows_from_any_address) {
  constexpr int kGaps[][2] = {{0, 0}, {1, 0}, {0, 3}, {8, 8}, {5, 5}, {7, 23}, {24, 2}, {127, 33}};
  int turn = 0;
  for (const Types types : kernel().traits().types)
    for (const std::int64_t cols : {1, 2, 7, 17, 33, 73, 129, 250})
      for (int shift = 0; shift < 8; ++shift, ++turn) {
        const auto [in_gap, out_gap] = kGaps[takes_gaps(kernel()) ? (turn + turn / 8) % 8 : 0];
        Case c{.cols = cols, .in_padding = in_gap, .out_padding = out_gap, .in_shift = shift, .types = types};
        c.out_shift = turn % 3 == 0 ? shift : (3 * shift + turn) % 8;
        c.block = kernel().traits().blocks[0];
        c.in_place = kernel().traits().in_place && types.in == types.out && turn % 5 == 0;
        if (c.in_place) c.out_padding = c.in_padding, c.out_shift = c.in_shift;
        if (!takes(1, cols, c.block)) continue;
        const int lanes = kernel().plan(problem_of(c)).threads;
        if (lanes > 32) continue;  // a block or more a row
        c.rows = 1024 / (lanes > 0 ? lanes : 32) + 5;
        std::vector<float> x(std::size_t(c.rows * cols));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = noise(unsigned(turn), i);
        round_to(types.in, x);
        const Output out = run(kernel(), c, x);
        EXPECT_EQ(out.trespass, "") << c;
        for (std::int64_t r = 0; r < c.rows; ++r)
          expect_row(row(x, cols, r), row(out.y, cols, r), c.block, types, c.rows);
        if (HasFailure()) FAIL() << c;
      }
}

// A launch that may begin before the one ahead of it ends is other code on a GPU, of the same arithmetic.
TEST_P(Examples, an_overlapping_launch_has_the_same_bits) {
  const Traits& traits = kernel().traits();
  if (!traits.plan && !traits.choice) GTEST_SKIP() << "knows no overlap";
  Machine& machine = kernel().machine();
  int turn = 0;
  for (const std::int64_t cols : {1, 32, 100, 256, 1024, 1027, 2048, 4096, 9000, 40000}) {
    constexpr std::int64_t kRows = 3;
    const Types types = traits.types[turn++ % traits.types.size()];
    if (!takes(kRows, cols, traits.blocks[0])) continue;
    const std::size_t in_width = bytes_per_element(types.in), out_width = bytes_per_element(types.out);
    Buffer in(machine, std::size_t(kRows * cols) * in_width), out(machine, std::size_t(kRows * cols) * out_width);
    std::vector<unsigned char> x(in.bytes()), plain(out.bytes()), early(out.bytes());
    for (std::size_t i = 0; i < std::size_t(kRows * cols); ++i) set_element(x.data(), i, types.in, noise(1, i));
    in.upload(x.data(), x.size());
    Problem p{.rows = kRows,
              .cols = cols,
              .in_stride = cols,
              .out_stride = cols,
              .in_type = types.in,
              .out_type = types.out,
              .in = in.data(),
              .out = out.data(),
              .block = traits.blocks[0]};
    for (const bool overlap : {false, true}) {
      p.overlap = overlap;
      const Buffer workspace = zeroed_workspace(p);
      p.workspace = workspace.data();
      out.poison();
      kernel().launch(p);
      machine.synchronize();
      out.download((overlap ? early : plain).data(), out.bytes());
    }
    EXPECT_EQ(plain, early) << cols << " columns of " << name(types);
  }
}

// Kernel::launch cuts a matrix of more rows than a grid's x has room for; here it cuts at a few.
TEST_P(Examples, slices_of_rows) {
  if (!takes(257, 7, kernel().traits().blocks[0])) GTEST_SKIP() << "does not take 257 x 7";
  Machine& machine = kernel().machine();
  constexpr std::int64_t kRows = 257, kCols = 7;
  std::vector<float> x(kRows * kCols), whole(x.size()), sliced(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 13);
  Buffer in(machine, x.size() * sizeof(float)), out(machine, x.size() * sizeof(float));
  in.upload(x.data(), in.bytes());
  Problem p{.rows = kRows,
            .cols = kCols,
            .in_stride = kCols,
            .out_stride = kCols,
            .in = in.data(),
            .out = out.data(),
            .block = kernel().traits().blocks[0]};
  // Few rows might get another plan, or kernel.
  if (kernel().traits().choice)
    p.batch_invariant = true;
  else
    p.plan = kernel().plan(p);
  const Buffer workspace = zeroed_workspace(p);
  p.workspace = workspace.data();
  kernel().launch(p);
  machine.synchronize();
  out.download(whole.data(), out.bytes());
  out.poison();
  kernel().launch(p, 100);
  machine.synchronize();
  out.download(sliced.data(), out.bytes());
  EXPECT_EQ(whole, sliced);
}

TEST_P(Examples, refusals_say_what_is_possible) {
  Problem p{.rows = 1, .cols = 4, .in_stride = 4, .out_stride = 4, .block = 48};
  EXPECT_NE(kernel().unsupported(p).find("not 48"), std::string::npos) << kernel().unsupported(p);
  EXPECT_THROW(kernel().launch(p), std::invalid_argument);
  p.block = largest_block();
  EXPECT_EQ(kernel().unsupported(p), "");
  p.in_stride = 3;
  EXPECT_NE(kernel().unsupported(p).find("at least cols = 4, not 3"), std::string::npos) << kernel().unsupported(p);
  p.in_stride = 4;
  p.out_type = DataType::bf16;
  EXPECT_NE(kernel().unsupported(p).find("fp32-bf16"), std::string::npos) << kernel().unsupported(p);
  p.out_type = DataType::fp32;
  if (kernel().version() == 12) {
    Problem many = p;
    many.plan = {256, 4, 0, 1 << 16}, many.rows = 1 << 15;
    EXPECT_NE(kernel().unsupported(many).find("more blocks than a grid"), std::string::npos);
    --many.rows;
    EXPECT_EQ(kernel().unsupported(many), "");
  }
  EXPECT_THROW(kernel().launch(p), std::invalid_argument) << "null pointers";
  Buffer both(kernel().machine(), 64);
  p.in = both.data();
  p.out = both.floats() + 3;
  EXPECT_THROW(kernel().launch(p), std::invalid_argument) << "input and output overlap";
  p.rows = -1;
  EXPECT_NE(kernel().unsupported(p).find("at least 0, not -1"), std::string::npos) << kernel().unsupported(p);
}

INSTANTIATE_TEST_SUITE_P(All, Examples, testing::ValuesIn(kernels().begin(), kernels().end()),
                         [](const auto& info) { return test_name(*info.param); });

}  // namespace
}  // namespace softmax::properties
