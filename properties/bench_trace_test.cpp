// What a simulated run counts: its keys, its table, and --explain, from a scripted profile.

#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>

#include "benchmarks/trace.hpp"
#include "properties/bench_run.hpp"

namespace softmax::bench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Profile::Line line(const std::string& file, int at, Counters counters) { return {file, at, counters}; }

// 100 rows of 300 columns: a load as V1's, a store that is whole, a tree's shared accesses.
Profile scripted() {
  Counters load, store, tree;
  load.global_load_requests = 1000;
  load.global_load_sectors = 32000;
  load.global_load_bytes = 128000;
  load.redundant_load_bytes = 64000;
  store.global_store_requests = 1000;
  store.global_store_sectors = 4750;  // rows that start between sectors
  store.global_store_bytes = 128000;
  tree.shared_load_requests = 500;
  tree.shared_load_conflicts = 15500;
  tree.shared_store_requests = 500;
  tree.shared_store_conflicts = 10;
  tree.barriers = 900;
  tree.shuffles = 250;
  Profile p{{}, {line("no/such/kernel.cu", 7, load), line("no/such/kernel.cu", 9, store)}, 12345};
  p.lines.push_back(line(SOFTMAX_SOURCE_DIR "/kernels/v2_shared.cu", 1, tree));
  for (const auto& l : p.lines) p.total += l.counters;
  return p;
}

class BenchTrace : public BenchRun {
 protected:
  BenchTrace() {
    fake_.is_simulated = true;
    fake_.counted = scripted();
  }
  // Of the runs that match; empty but for its remark if none was traced.
  std::string explanation(const std::string& filter) {
    Capture capture;
    run(capture, filter);
    return explain(traces_);
  }
};

TEST_F(BenchTrace, CountersAreATokensShareAndFinite) {
  const auto runs = run("/V6/.*block:64/");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(error_of(runs[0]), "");
  const std::map<std::string, double> c(runs[0].counters.begin(), runs[0].counters.end());
  for (const auto& [key, value] : c) EXPECT_TRUE(std::isfinite(value)) << key;
  const std::map<std::string, double> want = {{"l1tex__t_requests_pipe_lsu_mem_global_op_ld", 10},
                                              {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld", 320},
                                              {"redundant_load_bytes", 640},
                                              {"barriers", 9},
                                              {"shuffles", 2.5},
                                              {"votes", 0},
                                              {"ld_sectors/request", 32},
                                              {"st_sectors/request", 4.75},
                                              {"bytes_transferred", 11760},
                                              {"x_min", 4.9},
                                              {"traced_rows", 100}};
  for (const auto& [key, value] : want) EXPECT_DOUBLE_EQ(c.at(key), value) << key;
  for (const CounterName& name : counter_names()) EXPECT_EQ(c.count(std::string(name.key)), 1u) << name.key;
}

TEST_F(BenchTrace, NothingIsWatchedWhileItIsTimed) {
  flag("--benchmark_repetitions=3");
  run("/V6/.*block:32/");
  EXPECT_THAT(fake_.watches, testing::ElementsAre(Watch::off, Watch::check, Watch::off));  // once for all repetitions
  EXPECT_FALSE(fake_.timed_while_watched);
}

TEST_F(BenchTrace, WhatHasNoDivisorHasNoKey) {
  fake_.counted.total.global_store_requests = 0;
  EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.count("st_sectors/request"), 0u);
  fake_.counted = {};  // a machine that does not count
  for (const char* key : {"x_min", "barriers", "traced_rows"})
    EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.count(key), 0u) << key;
  EXPECT_THAT(explanation("/V6/"), HasSubstr("nothing was traced"));
}

TEST_F(BenchTrace, GpuIsNeitherWatchedNorCounted) {
  fake_.is_simulated = false;
  EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.count("x_min"), 0u);
  EXPECT_THAT(fake_.watches, testing::ElementsAre(Watch::off));
}

TEST_F(BenchTrace, FindingIsTheCasesErrorOnOneLine) {
  EXPECT_EQ(error_under([](const Problem&) {
              if (machine->profile().accesses) throw std::runtime_error("race:\n  thread 0 wrote\n  thread 1 read\n");
            }),
            "V6 (v6_right.cu): race: thread 0 wrote; thread 1 read");
  EXPECT_EQ(fake_.timed, 0);
  EXPECT_EQ(fake_.watching, Watch::off);
}

TEST_F(BenchTrace, OfALargeMatrixTheFirstRowsAreTraced) {
  EXPECT_EQ(rows_to_trace({16, 1571}), 16);
  EXPECT_EQ(rows_to_trace({4096, 1024}), 4096);
  EXPECT_EQ(rows_to_trace({4097, 1024}), 4096);
  EXPECT_EQ(rows_to_trace({100000, 300}), 13 * 1024);
  EXPECT_EQ(rows_to_trace({8192, 50257}), 64);
  EXPECT_EQ(rows_to_trace({8192, 1 << 20}), 4);
  EXPECT_EQ(rows_to_trace({8, 1 << 24}), 1);
  points_ = {{{5000, 1000}}};
  fake_.copy_ways = 0;
  std::vector<std::int64_t> rows;
  sabotage = [&](const Problem& p) { rows.push_back(p.rows); };
  EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.at("traced_rows"), 4096);
  EXPECT_THAT(rows, testing::ElementsAre(4096, 5000, 5000, 5000, 5000, 5000));
}

TEST_F(BenchTrace, TableHoldsCountsInsteadOfTimes) {
  const std::string text = table("/V6/");
  EXPECT_THAT(text, HasSubstr("100 x 300 fp32, ieee, sim, Fake 9000\n  a token: "));
  EXPECT_THAT(text, HasSubstr("\n  version block  requests sect/req  requests sect/req     bytes  x min"));
  EXPECT_THAT(text,
              ContainsRegex("\n  V6 +32 +10 +32.0 +10 +4.8 +11760 +4.90 +155.1 +9 +2.50 +[0-9.]+ +10.00  right too\n"));
  for (const char* time : {"GB/s", "%copy", "x V1", "spread"}) EXPECT_THAT(text, Not(HasSubstr(time)));
  const std::string titles = text.substr(text.find("  version"));
  EXPECT_LE(titles.find("idea"), 120u);
}

TEST_F(BenchTrace, ExplanationFlagsTheLinesToFix) {
  const std::string text = explanation("/V6/.*block:32/");
  EXPECT_THAT(text, ContainsRegex("\nV6 at 100 x 300, block 32\n +a token sectors ideal  x min reread conflicts\n"));
  EXPECT_THAT(text, ContainsRegex("\n  no/such/kernel.cu\n     7\n +global load +10 +32 +4 +4.27 +50% +"
                                  "<- uncoalesced: 32 sectors a request, 4 would do\n"));
  // 4.75 is what a row costs that starts between sectors.
  EXPECT_THAT(text, ContainsRegex("\n     9\n +global store +10 +4.75 +4 +0.63\n  kernels/v2_shared.cu\n"));
  EXPECT_THAT(text, ContainsRegex("\n     1  // Idea: a block takes a row; [^\n]*\n"
                                  " +shared load +5 +31  <- 31 bank conflicts a request\n"
                                  " +shared store +5 +0.02\n +barrier +9\n +shuffle +2.50\n$"));
  EXPECT_THAT(text, Not(HasSubstr("nothing flagged")));
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) EXPECT_LE(one.size(), 120u) << one;
}

TEST_F(BenchTrace, OneBlockSizeSpeaksForThoseThatAreAlike) {
  const std::string alike = explanation("/V[16]/");
  EXPECT_THAT(alike, HasSubstr("\nV1 at 100 x 300, block 64; the same at block 32\n"));
  EXPECT_THAT(alike, HasSubstr("\nV6 at 100 x 300, block 64; the same at block 32\n"));
  std::vector<Trace> traces = traces_;
  ASSERT_EQ(traces.size(), 4u);
  traces.resize(2);
  traces[1].profile.lines.resize(2);  // without bank conflicts: less to fix
  EXPECT_THAT(explain(traces), HasSubstr("\nV1 at 100 x 300, block 32; block 64 differ, see "
                                         "--benchmark_filter=/V1/.*block:64/\n"));
  for (Trace& t : traces) t.profile.lines = {scripted().lines[1]};
  EXPECT_THAT(explain(traces), HasSubstr("nothing flagged"));
}

}  // namespace
}  // namespace softmax::bench
