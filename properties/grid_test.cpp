// Blocks that wait for each other through a workspace that stays from launch to launch: whatever the launches have in common,
// and whatever befell the workspace, as long as Problem::workspace is obeyed.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "kernels/input.hpp"
#include "kernels/library/table.hpp"
#include "properties/bounds.hpp"
#include "properties/harness.hpp"
#include "reference/softmax.hpp"

namespace softmax::properties {
namespace {

constexpr std::int64_t kRows = 64, kCols = 1003;

const Kernel& of(int version, const Machine& machine) {
  return **std::find_if(kernels().begin(), kernels().end(),
                        [&](const Kernel* k) { return k->version() == version && &k->machine() == &machine; });
}

// V11 of each machine, with room for kRows x kCols.
class Grid : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override {
    SKIP_IF_UNAVAILABLE(kernel());
    in_.emplace(machine(), kRows * kCols * 4);
    out_.emplace(machine(), in_->bytes());
    machine().fill_noise(in_->data(), kRows * kCols, 1);
  }
  void TearDown() override {
    machine().schedule({});
    set_table(built_in_);
  }

  const Kernel& kernel() const { return *GetParam(); }
  Machine& machine() const { return kernel().machine(); }
  const Kernel& automatic() const { return of(0, machine()); }

  // As many rows of the input from row `first` on; each of them by `blocks` blocks.
  Problem problem(std::int64_t rows, int blocks, std::int64_t first = 0) const {
    return {.rows = rows,
            .cols = kCols,
            .in_stride = kCols,
            .out_stride = kCols,
            .in = in_->floats() + first * kCols,
            .out = out_->data(),
            .plan = {.threads = blocks ? 128 : 0, .vectors = blocks ? 8 : 0, .blocks = blocks}};
  }
  // Where a kernel keeps its workspace; what follows may hold anything.
  Buffer workspace(std::int64_t bytes) const {
    Buffer all(machine(), std::size_t(bytes));
    machine().fill(all.data(), 0, std::size_t(std::min(bytes, kernel().workspace({}))));
    return all;
  }
  std::vector<float> result(const Kernel& by, Problem p, const Buffer& workspace) {
    p.workspace = workspace.data();
    out_->poison();
    by.launch(p);
    machine().synchronize();
    std::vector<float> y(std::size_t(p.rows * p.cols));
    out_->download(y.data(), y.size() * 4);
    EXPECT_EQ(workspace.damage(), "");
    return y;
  }
  // On a workspace of its own.
  std::vector<float> alone(const Kernel& by, const Problem& p) { return result(by, p, workspace(by.workspace(p))); }

  void expect_right(const Kernel& by, const Problem& p, const std::vector<float>& y) {
    std::vector<float> x(y.size());
    in_->download(x.data(), x.size() * 4);
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const auto row = std::span(x).subspan(std::size_t(r * kCols), kCols);
      const reference::Row exact = reference::analyse(row);
      const auto model = error_model(by.traits(), p, row, arithmetic_of(machine()));
      for (std::size_t i = 0; i < row.size(); ++i)
        ASSERT_LE(std::abs(y[std::size_t(r * kCols) + i] - exact.y[i]),
                  reference::element_bound(model, exact.y[i], exact.max - row[i], exact.spread))
            << "row " << r << " of " << p.rows << ", column " << i;
    }
  }

  std::optional<Buffer> in_, out_;

 private:
  const Table built_in_ = table();
};

// A number that counts launches, or a flag that the blocks of a launch turn over, would not survive this.
TEST_P(Grid, groups_change_their_size_from_launch_to_launch) {
  const Buffer kept = workspace(kernel().workspace({}));
  constexpr int kRowsOf[] = {1, 2, 3, 5, 9}, kBlocks[] = {1, 2, 3, 5, 8, 13}, kMost[] = {0, 13, 29};
  std::map<std::array<int, 3>, std::vector<float>> want;
  for (int i = 0; i < 200; ++i) {
    const std::array<int, 3> how = {kRowsOf[i % 5], kBlocks[i * 7 % 6], kMost[i / 30 % 3]};
    Problem p = problem(how[0], how[1]);
    p.max_blocks = how[2];
    if (!want.contains(how)) {
      want[how] = alone(kernel(), p);
      expect_right(kernel(), p, want[how]);
    }
    if (i % 4 == 0) machine().schedule({Schedule::Order::seeded, std::uint64_t(i)});
    if (i % 4 == 2) machine().schedule({Schedule::Order::reverse});
    ASSERT_EQ(result(kernel(), p, kept), want[how]) << "launch " << i << ": " << how[0] << " rows by " << how[1];
  }
}

TEST_P(Grid, no_more_blocks_are_resident_than_allowed) {
  const Buffer kept = workspace(kernel().workspace({}));
  for (const int blocks : {0, 1, 2, 5})
    for (const int most : {1, 2, 3, 5, 16})
      for (const int rows : {1, 4, 9}) {
        Problem p = problem(rows, blocks);
        p.max_blocks = most;
        ASSERT_EQ(kernel().unsupported(p) == "", blocks <= most) << blocks << " of " << most;
        if (blocks > most) continue;
        expect_right(kernel(), p, result(kernel(), p, kept));
        EXPECT_LE(machine().last_launch().blocks, most);
        EXPECT_GE(machine().last_launch().blocks, std::min(most / std::max(blocks, 1), rows)) << "too few";
      }
}

TEST_P(Grid, nobody_spins_where_it_is_forbidden) {
  set_table(parse_table("in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks\n4,4,,,11,,,\n", "here"));
  Problem p = problem(3, 0);
  ASSERT_EQ(automatic().choice(p).kernel, &kernel());
  p.spin = false;
  EXPECT_NE(kernel().unsupported(p).find("wait for each other"), std::string::npos) << kernel().unsupported(p);
  EXPECT_THROW(alone(kernel(), p), std::invalid_argument);
  ASSERT_NE(automatic().choice(p).kernel, &kernel());
  expect_right(automatic(), p, alone(automatic(), p));
  // Nor where V11 is the first to take so long a row.
  p.cols = p.in_stride = p.out_stride = std::int64_t{1} << 21;
  EXPECT_EQ(automatic().choice(p).kernel, &of(12, machine()));
}

// The other kernel's scratch memory is in the same workspace, and of any content.
TEST_P(Grid, auto_leaves_its_workspace_to_it) {
  set_table(
      parse_table("in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks\n"
                  "4,4,2,,11,128,8,5\n4,4,5,,12,128,8,7\n4,4,8,,11,128,8,3\n4,4,,,12,128,8,2\n",
                  "here"));
  const Buffer both = workspace(automatic().workspace(problem(kRows, 0)));
  ASSERT_GT(both.bytes(), std::size_t(kernel().workspace({})));
  std::set<int> versions;
  std::map<int, std::vector<float>> want;
  for (int i = 0; i < 100; ++i) {
    const int rows = 1 + i * 5 % 12;
    const Problem p = problem(rows, 0);
    versions.insert(automatic().choice(p).kernel->version());
    if (!want.contains(rows)) {
      want[rows] = alone(automatic(), p);
      expect_right(automatic(), p, want[rows]);
    }
    ASSERT_EQ(result(automatic(), p, both), want[rows]) << "launch " << i << " of " << rows << " rows";
  }
  EXPECT_EQ(versions, (std::set{11, 12}));
}

// As if so many rounds had gone by. Places that nobody used since hold 0, or the round that they were used in last.
TEST_P(Grid, rounds_go_on_where_their_numbers_end) {
  for (const unsigned rounds : {0x7ffffff0u, 0xfffffff0u}) {
    Buffer kept = workspace(kernel().workspace({}));
    for (int i = 0; i < 3; ++i) result(kernel(), problem(1, 8, 60 + i), kept);
    kept.upload(&rounds, sizeof rounds);
    for (int i = 0; i < 64; ++i) {
      const Problem p = problem(1, i < 15 ? 2 : 13, i % 60);
      const auto y = result(kernel(), p, kept);
      ASSERT_EQ(y, alone(kernel(), p)) << "launch " << i;
    }
    // In the middle of one launch.
    kept.upload(&rounds, sizeof rounds);
    Problem p = problem(kRows, 3);
    p.max_blocks = 3;
    const auto y = result(kernel(), p, kept);
    EXPECT_EQ(y, alone(kernel(), p));
    EXPECT_EQ(result(kernel(), problem(1, 13), kept), alone(kernel(), problem(1, 13)));
  }
}

// A launch that the machine stops in the middle, here for an access to what it was not given, is not done with its rounds.
TEST_P(Grid, a_workspace_that_a_launch_broke_is_zeroed) {
  if (!machine().simulated()) GTEST_SKIP() << "a GPU that stops a launch takes the process's other work with it";
  const Buffer kept = workspace(kernel().workspace({}));
  Problem p = problem(9, 3);
  p.workspace = kept.data();
  p.max_blocks = 6;
  const std::vector<float> want = alone(kernel(), p);
  for (const std::int64_t rows : {1, 4, 8}) {
    using enum Region::Use;
    const std::vector<Region> given = {
        {"the input", p.in, p.rows, kCols, kCols, 4, input},
        {"the output", p.out, rows, kCols, kCols, 4, output},
        {"the workspace", kept.data(), 1, std::int64_t(kept.bytes()), std::int64_t(kept.bytes()), 1, state}};
    EXPECT_THROW(machine().within(given, [&] { kernel().start(p); }), std::runtime_error);
    std::vector<unsigned> words(kept.bytes() / 4);
    kept.download(words.data(), kept.bytes());
    EXPECT_GT(*std::max_element(words.begin() + 32, words.end()), words[0]) << "nothing broke";
    machine().fill(kept.data(), 0, kept.bytes());
    for (int i = 0; i < 4; ++i) ASSERT_EQ(result(kernel(), p, kept), want) << "launch " << i;
  }
}

std::vector<const Kernel*> grids() {
  std::vector<const Kernel*> all;
  for (const Kernel* k : kernels())
    if (k->version() == 11) all.push_back(k);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Grid, testing::ValuesIn(grids()),
                         [](const auto& info) { return test_name(*info.param); });

}  // namespace
}  // namespace softmax::properties
