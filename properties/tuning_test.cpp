// How `tune` makes a table: the grid, the candidates, who wins, the rules; and the program on the CPU device.

#include "benchmarks/tuning.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>

#include "benchmarks/workspace.hpp"
#include "properties/harness.hpp"

namespace softmax::bench {
namespace {

constexpr std::int64_t kAny = INT64_MAX;
constexpr Types kBf16 = {DataType::bf16, DataType::bf16}, kMixed = {DataType::bf16, DataType::fp32};

const Pick kLanes = {8, {32, 4}}, kCluster = {10, {256, 8, 0, 4}}, kGrid = {11, {256, 8, 0, 64}},
           kPasses = {12, {256, 4}};

std::vector<const Kernel*> on_cpu() {
  std::vector<const Kernel*> all;
  for (const Kernel* kernel : kernels())
    if (kernel->machine().simulated()) all.push_back(kernel);
  return all;
}

// What a table says first.
Pick chosen(const Table& table, Types types, std::int64_t rows, std::int64_t cols) {
  for (const Rule& rule : table)
    if (rule.fits(types, rows, cols)) return {rule.version, rule.plan};
  return {};
}

std::vector<Decision> decided(const std::vector<Cell>& cells, const std::vector<Pick>& picks) {
  std::vector<Decision> all;
  for (std::size_t i = 0; i < cells.size(); ++i) all.push_back({cells[i], picks[i]});
  return all;
}

TEST(Tuning, cells_touch_and_ascend) {
  for (const Types types : {Types{}, kBf16, kMixed}) {
    const std::vector<Cell> cells = grid(types, false);
    // Few rows: 7 widths alone and what is below each, 14 longer ones, 2^21 up to 64 rows, 2^22 up to 32, 2^23 up to 16.
    EXPECT_EQ(cells.size(), 9u * (7 * 2 + 14) + 7 + 6 + 5 + (21u * 2 + 14 + 2 + 1));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      const bool first = i == 0 || cells[i - 1].rows != cell.rows;
      EXPECT_EQ(cell.below, !first ? cells[i - 1].cols : cell.rows > 0 ? 768 : 0) << to_string(cell);
      if (cell.cols % 8 == 0 && cell.cols <= 8192) {
        EXPECT_EQ(cell.low(), cell.high()) << "whole vectors alone: " << to_string(cell);
      }
      EXPECT_LE(cell.low().cols, cell.high().cols);
      EXPECT_EQ(cell.low().cols, cell.below + 1);
      if (first && i > 0) {
        EXPECT_TRUE(cell.rows == 0 || cell.rows > cells[i - 1].rows);
      }
      if (cell.rows == 0) {
        EXPECT_LE(cell.high().in_bytes(), 512 << 20);
        EXPECT_GT(cell.high().in_bytes() + cell.high().in_bytes() / cell.high().rows, 512 << 20);
      }
      EXPECT_EQ(cell.cols == 1 << 23, cell.below == 1 << 22);
      EXPECT_TRUE(cell.cols < 1 << 21 || cell.rows <= 64);
      EXPECT_TRUE(cell.cols < 1 << 23 || cell.rows <= 16);
    }
    EXPECT_EQ(cells.back().rows, 0);
    EXPECT_EQ(cells.back().cols, 1 << 23);
  }
  EXPECT_EQ(to_string(Cell{{}, 8, 786432, 1 << 20}), "fp32 8 x 1,048,576");
  EXPECT_EQ(to_string(Cell{kBf16, 0, 768, 1024, 512 << 20}), "bf16 many (262,144) x 1,024");
}

TEST(Tuning, candidates_take_both_ends) {
  const std::vector<const Kernel*> kernels = on_cpu();
  std::set<int> seen;
  for (const Types types : {Types{}, kBf16, kMixed})
    for (const Cell& cell : grid(types, false)) {
      const std::vector<Pick> picks = candidates(cell, kernels, 8);
      ASSERT_FALSE(picks.empty()) << to_string(cell);
      bool any_row = false;
      for (const Pick& pick : picks) {
        const std::string what = to_string(cell) + ": " + to_string(pick);
        const Kernel& kernel = **std::ranges::find(kernels, pick.version, &Kernel::version);
        for (const Shape shape : {cell.high(), cell.low()})
          EXPECT_EQ(kernel.unsupported(problem_of(shape, {0, pick.plan})), "") << what;
        EXPECT_EQ(pick.plan.shared, 0) << what;
        EXPECT_TRUE(cell.cols >= 1024 || pick.version <= 9 || pick.version == 13) << what;
        // Inside of the cell it is the plan that was timed.
        EXPECT_TRUE(pick.plan != Plan() || pick.version == 8 || pick.version >= 12 ||
                    std::ranges::count(picks, pick.version, &Pick::version) == 1)
            << what;
        EXPECT_EQ(std::ranges::count(picks, pick), 1) << what;
        any_row |= pick.version == 12;
        seen.insert(pick.version);
      }
      EXPECT_EQ(any_row, cell.cols >= 1024) << to_string(cell);
    }
  EXPECT_EQ(seen, (std::set{8, 9, 10, 11, 12, 13}));

  // A row of 256 vectors: 512 threads hold it with 1 each, so not with more; 1024 have too little to do.
  const std::vector<Pick> picks = candidates({{}, 8, 768, 1024}, kernels, 8);
  const auto has = [&](const Pick& pick) { return std::ranges::count(picks, pick) > 0; };
  EXPECT_TRUE(has({8}) && has({12}) && has({13}));
  EXPECT_FALSE(has({9}));
  EXPECT_TRUE(has({9, {512, 1}}));
  EXPECT_FALSE(has({9, {512, 2}}));
  EXPECT_FALSE(has({9, {1024, 8}}));
  EXPECT_FALSE(has({12, {256, 4}}));  // its own
  EXPECT_EQ(to_string(Pick{8}) + ", " + to_string(kGrid), "V8, V11 256x8 c64");
}

TEST(Tuning, blocks_that_wait_for_each_other_all_fit_or_the_row_is_long) {
  const auto grids = [](const Cell& cell) {
    return std::ranges::count_if(candidates(cell, on_cpu(), 8),
                                 [](const Pick& p) { return p.version == 11 && p.plan.blocks > 0; });
  };
  EXPECT_GT(grids({{}, 8, 24576, 32768}), 0);
  EXPECT_EQ(grids({{}, 16, 24576, 32768}), 0);  // 16 rows of 8 blocks at least, beside 8 a multiprocessor
  EXPECT_GT(grids({{}, 16, 131072, 196608}), 0);
}

TEST(Tuning, the_least_bad_at_its_worst_end_wins) {
  // The fastest at one end is 1.3 times the best at the other.
  const std::vector<Timed> all =
      ranked({{kLanes, {1.0, 1.3}}, {kCluster, {1.1, 1.1}}, {kGrid, {2.0, 1.0}}, {kPasses, {1.2, 1.15}}});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].pick, kCluster);
  EXPECT_DOUBLE_EQ(all[0].ratio, 1.1);
  EXPECT_EQ(all[1].pick, kPasses);
  EXPECT_EQ(all[3].pick, kGrid);
  EXPECT_EQ(decide(all, {}), kCluster);
  EXPECT_EQ(decide(all, kPasses), kCluster);

  EXPECT_EQ(within(all, 1.0).size(), 1u);
  EXPECT_EQ(within(all, 1.2).size(), 3u);  // 1.2 times worse than the first, not than the best at an end
  EXPECT_TRUE(within({}, 2).empty());
  EXPECT_THROW(decide({}, kLanes), std::runtime_error);
}

TEST(Tuning, a_tie_goes_to_the_neighbour) {
  const std::vector<Timed> close = ranked({{kLanes, {1, 1}}, {kCluster, {1.004, 1}}, {kGrid, {1.006, 1}}});
  EXPECT_EQ(decide(close, kCluster), kCluster);
  EXPECT_EQ(decide(close, kGrid), kLanes);
  EXPECT_EQ(decide(close, kPasses), kLanes);
  EXPECT_EQ(decide(close, {}), kLanes);
}

TEST(Tuning, rules_of_one_pick_and_of_equal_rows_become_one) {
  const auto cell = [](std::int64_t rows, std::int64_t cols) { return Cell{kBf16, rows, 0, cols}; };
  const std::vector<Cell> cells = {cell(1, 1024), cell(1, 2048), cell(1, 4096), cell(4, 1024), cell(4, 2048),
                                   cell(4, 4096), cell(8, 1024), cell(8, 2048), cell(0, 1024), cell(0, 2048)};
  const std::vector<Pick> picks = {kLanes, kLanes, kPasses, kLanes, kLanes, kPasses, kLanes, kGrid, kLanes, kPasses};
  // One row gets what four get. The grid's kernel may refuse a longer row, so its last rule ends where it was measured.
  EXPECT_EQ(to_text(merge(decided(cells, picks))),
            "in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks\n"
            "2,2,4,2048,8,32,4,\n"
            "2,2,4,,12,256,4,\n"
            "2,2,8,1024,8,32,4,\n"
            "2,2,8,2048,11,256,8,64\n"
            "2,2,,1024,8,32,4,\n"
            "2,2,,,12,256,4,\n");
  EXPECT_TRUE(merge({}).empty());
}

// Of three types in one table, and of random picks: few, so that neighbours and classes often agree.
TEST(Tuning, a_table_says_what_was_decided) {
  std::mt19937 random(1);
  for (int run = 0; run < 30; ++run) {
    std::vector<Decision> all;
    for (const Types types : {Types{}, kBf16, kMixed})
      for (const Cell& cell : grid(types, run % 2 == 0))
        all.push_back({cell, random() % 8 == 0   ? kGrid
                             : random() % 8 == 0 ? kPasses
                             : cell.cols < 20000 ? kLanes
                                                 : kCluster});
    const Table table = parse_table(to_text(merge(all)), "a test");
    EXPECT_LT(table.size(), all.size());
    for (const auto& [cell, pick] : all)
      for (const std::int64_t cols : {cell.below + 1, cell.cols})
        EXPECT_EQ(chosen(table, cell.types, cell.rows > 0 ? cell.rows : kAny, cols), pick)
            << to_string(cell) << ", " << cols << " columns";
  }
}

TEST(Tuning, the_program_writes_a_table_on_the_CPU_device) {
  const std::string place = testing::TempDir() + "tuned_" + std::to_string(getpid());
  const std::string out = place + ".csv", log = place + ".log";
  std::remove(out.c_str());
  const auto tune = [&](const std::string& flags) {
    return WEXITSTATUS(std::system((SOFTMAX_TUNE " " + flags + " >" + log + " 2>&1").c_str()));
  };
  ASSERT_EQ(tune("--device=cpu --grid=small --types=fp32,bf16-fp32 --out=" + out), 0);
  std::string text;
  for (std::ifstream in(log); std::getline(in, text) && text.find("fp32 2 x 1,024: V") == text.npos;) continue;
  EXPECT_NE(text.find(" us"), text.npos) << text;
  std::getline(std::ifstream(out), text);
  EXPECT_TRUE(text.starts_with("# CPU device, revision ")) << text;
  const Table table = read_table(out);
  for (const Types types : {Types{}, kMixed})
    for (const Cell& cell : grid(types, true))
      EXPECT_GE(chosen(table, types, cell.high().rows, cell.cols).version, 8) << to_string(cell);
  EXPECT_EQ(chosen(table, kBf16, 1, 64).version, 0);

  EXPECT_EQ(tune("--help"), 0);
  for (const char* wrong :
       {"--types=fp64", "--types=", "--grid=huge", "--device=tpu", "--out=", "--out=/no/such/folder/t.csv", "more"})
    EXPECT_EQ(tune(wrong), 2) << wrong;
  std::remove(out.c_str());
  std::remove(log.c_str());
}

}  // namespace
}  // namespace softmax::bench
