// Whole benchmark runs on a fake machine: what is registered, and what the line of a right kernel says.

#include <cmath>
#include <cstring>
#include <map>
#include <regex>
#include <sstream>
#include <utility>

#include "benchmarks/context.hpp"
#include "kernels/narrow.hpp"
#include "properties/bench_run.hpp"

namespace softmax::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(BenchRun, NamesFollowTheGrammarAndTheOrder) {
  points_ = {{{4, 50}}, {{4, 20}}};
  std::vector<std::string> names;
  for (const auto& r : run()) {
    names.push_back(r.benchmark_name());
    EXPECT_TRUE(std::regex_match(
        names.back(),
        std::regex("softmax/(V[0-9]+/fp32/ieee/cold/N:[0-9]+/C:[0-9]+/block:[0-9]+|copy/fp32/ieee/cold/N:[0-9]+/"
                   "C:[0-9]+)/manual_time")))
        << names.back();
  }
  ASSERT_EQ(names.size(), 10u);
  EXPECT_EQ(names[0], "softmax/copy/fp32/ieee/cold/N:4/C:50/manual_time");
  EXPECT_EQ(names[1], "softmax/V1/fp32/ieee/cold/N:4/C:50/block:32/manual_time");
  EXPECT_EQ(names[4], "softmax/V6/fp32/ieee/cold/N:4/C:50/block:64/manual_time");
  EXPECT_EQ(names[5], "softmax/copy/fp32/ieee/cold/N:4/C:20/manual_time");
  fake_.is_simulated = true;
  EXPECT_EQ(run("/V6/").front().benchmark_name(), "softmax/V6/fp32/ieee/sim/N:4/C:50/block:32/manual_time");
  EXPECT_EQ(run("copy").size(), 0u);
}

TEST_F(BenchRun, ALayoutIsInNameHeadingAndCountersAndTheCopyIsTheDenseOne) {
  Traits picky = kRight;
  picky.alignment = 16;
  const Kernel v9(9, "v9_picky", "picky", "v9.cu", current, launch, picky);
  kernels_ = {&v6, &v9};
  int copies = 0;
  fake_.copying = [&](int way, void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    if (way == Machine::kDriverCopy) return;
    ++copies;
    EXPECT_EQ(bytes, 120000u);
    EXPECT_EQ(std::uintptr_t(from) % 16 + std::uintptr_t(to) % 16, 0u);
    EXPECT_EQ(static_cast<const float*>(from)[300], Input().row({100, 300}, 1)[0]) << "no gap";
  };
  points_ = {{{.rows = 100, .cols = 300, .at = {1, 0}, .gap = {0, 1 << 10}}, Mode::cold, {32}},
             {{.rows = 100, .cols = 300, .at = {4, 8}}, Mode::graph, {32}}};
  const auto runs = run();
  ASSERT_EQ(runs.size(), 5u);
  for (const auto& r : runs) EXPECT_EQ(error_of(r), "") << r.benchmark_name();
  EXPECT_EQ(runs[0].benchmark_name(), "softmax/copy/fp32/ieee/cold/at:1.0/gap:0.1024/N:100/C:300/manual_time");
  EXPECT_EQ(runs[1].benchmark_name(), "softmax/V6/fp32/ieee/cold/at:1.0/gap:0.1024/N:100/C:300/block:32/manual_time");
  EXPECT_EQ(runs[4].benchmark_name(), "softmax/V9/fp32/ieee/graph/at:4.8/N:100/C:300/block:32/manual_time");
  for (const auto& [key, value] :
       {std::pair{"bytes", 240000}, {"in_at", 1}, {"out_at", 0}, {"in_gap", 0}, {"out_gap", 1024}})
    EXPECT_EQ(double(runs[1].counters.at(key)), value) << key;
  EXPECT_THAT(left_out_, ElementsAre("V9 at 100 x 300 at 1.0 gap 0.1024: input must begin at a multiple of 16 bytes"));
  EXPECT_GT(copies, 100);
  const std::string text = table("/V6/");
  EXPECT_THAT(text, HasSubstr("100 x 300 at 1.0 gap 0.1024 fp32, ieee, cold, Fake 9000\n"));
  EXPECT_THAT(text, HasSubstr("\n100 x 300 at 4.8 fp32, ieee, graph, Fake 9000\n"));
}

TEST_F(BenchRun, CountersAreCompleteFiniteAndRight) {
  const auto runs = run("/V6/.*block:64/");
  ASSERT_EQ(runs.size(), 1u);
  const std::map<std::string, double> c(runs[0].counters.begin(), runs[0].counters.end());
  for (const auto& [key, value] : c) EXPECT_TRUE(std::isfinite(value)) << key;
  const std::map<std::string, double> want = {
      {"us", 1000},   {"us/token", 10}, {"us_min", 1000}, {"us_p25", 1000},  {"us_p75", 1000},
      {"n", 50},      {"ci%", 0},       {"%copy", 50},    {"bytes", 240000}, {"bytes_moved", 480000},
      {"GB/s", 0.24}, {"regs", 40},     {"smem", 0},      {"blocks/SM", 16}, {"version", 6},
      {"N", 100},     {"C", 300},       {"block", 64},    {"us_copy", 500},  {"%peak", 24},
      {"noisy", 0},   {"throttled", 0}, {"suspect", 0}};
  for (const auto& [key, value] : want) EXPECT_NEAR(c.at(key), value, 1e-9 * value) << key;
  EXPECT_GT(c.at("max_ulp"), 0);
  EXPECT_LT(c.at("max_ulp"), 100);
  EXPECT_EQ(c.size(), want.size() + 1);
  EXPECT_NEAR(runs[0].GetAdjustedRealTime(), 1000, 1e-6);  // microseconds, the median
  EXPECT_EQ(runs[0].report_label, "right too");
}

TEST_F(BenchRun, RepetitionsMeasureAgainButAllocateOnce) {
  flag("--benchmark_repetitions=3");
  Capture capture;
  run(capture, "/V6/.*block:32/");
  EXPECT_EQ(capture.runs.size(), 3u + 4);  // and mean, median, stddev, cv
  EXPECT_GE(fake_.timed, 150);
  EXPECT_EQ(fake_.allocations, 2);
}

TEST_F(BenchRun, RepetitionsMayDifferInTheirSamples) {
  flag("--benchmark_repetitions=3");
  // The first repetition stops at 50 samples, the others need more.
  fake_.script = [](int i) {
    return 1e-3 * (i < 120 ? 1 : 1 + 1e-4 * double(random_bits(1, std::uint64_t(i)) % 1000));
  };
  const auto runs = run("/V6/.*block:32/");
  ASSERT_EQ(runs.size(), 7u);
  EXPECT_EQ(runs[0].counters.at("n"), 50);
  EXPECT_GT(runs[2].counters.at("n"), 50);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(runs[i].GetAdjustedRealTime(), runs[i].counters.at("us"), 1e-6);
}

TEST_F(BenchRun, MinimalTimeOfTheUserIsMoreSamples) {
  flag("--benchmark_min_time=0.5");
  const auto runs = run("/V6/.*block:32/");
  EXPECT_GE(runs.at(0).counters.at("n"), 500);  // of 1 ms
  EXPECT_NEAR(runs[0].GetAdjustedRealTime(), 1000, 1e-6);
}

TEST_F(BenchRun, OneShapeInMemoryAtATime) {
  points_ = {{{4, 20}}, {{4, 50}}};
  run();
  EXPECT_EQ(fake_.allocations, 4);
  points_.erase(points_.begin());
  const std::size_t both = std::exchange(fake_.most_live, 0);
  run();
  EXPECT_EQ(both, fake_.most_live);  // what the larger takes alone
}

TEST_F(BenchRun, SetsOfAShapeAreThoseOfItsMode) {
  fake_.cache = 240000;
  points_ = {{{100, 300}}, {{100, 300}, Mode::graph}};
  std::vector<int> sets;
  for (const auto& r : run("/V6/.*block:32/")) EXPECT_EQ(error_of(r), "") << r.benchmark_name();
  for (const Timing& t : fake_.timings) {
    EXPECT_EQ(t.sets, t.mode == Mode::graph ? 3 : 1);
    if (sets.empty() || sets.back() != t.sets) sets.push_back(t.sets);
  }
  EXPECT_THAT(sets, ElementsAre(1, 3));
}

TEST_F(BenchRun, HardwareCountersAreATokensShare) {
  prepare_ = [](Session& session) { session.metrics = true; };
  fake_.unknown_counters = {"atomics: unknown to CUPTI"};
  testing::internal::CaptureStderr();
  fake_.hardware = {{"instructions", 6400}, {"occupancy%", 50}};
  const auto runs = run("/V6/");
  ASSERT_EQ(runs.size(), 2u);
  for (const auto& r : runs) {
    EXPECT_EQ(r.counters.at("instructions"), 64);
    EXPECT_EQ(r.counters.at("occupancy%"), 50);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "bench: no counter atomics: unknown to CUPTI\n");  // once
  EXPECT_EQ(fake_.asked_hardware, 2);
}

TEST_F(BenchRun, WithoutHardwareCountersTimingGoesOn) {
  prepare_ = [](Session& session) { session.metrics = true; };
  testing::internal::CaptureStderr();
  const auto runs = run("/V6/");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "bench: no hardware counters: no permission\n");
  for (const auto& r : runs) EXPECT_EQ(r.counters.at("us"), 1000);
  EXPECT_EQ(fake_.asked_hardware, 1);  // asked no more
}

TEST_F(BenchRun, ReasonsToSlowDownAreWrittenWhereTheDriverSaysThem) {
  EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.count("throttle_reasons"), 0u);
  fake_.throttle_reasons = 0;
  EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.at("throttle_reasons"), 0);
  fake_.throttle_reasons = 4;
  EXPECT_EQ(run("/V6/.*block:32/").at(0).counters.at("throttle_reasons"), 4);
}

TEST_F(BenchRun, EveryBlockOfAKernelHasATraceOfItsOwn) {
  fake_.is_simulated = true;
  flag("--benchmark_repetitions=2");
  run();
  std::vector<std::pair<const Kernel*, int>> traced;
  for (const Trace& t : traces_) traced.emplace_back(t.kernel, t.how.block);
  EXPECT_THAT(traced, ElementsAre(std::pair{&v1, 32}, std::pair{&v1, 64}, std::pair{&v6, 32}, std::pair{&v6, 64}));
}

TEST_F(BenchRun, WhatIsNotRegisteredIsNamed) {
  points_ = {{{8192, 50257}}, {{100, 300}}};
  fake_.free_bytes = 64 << 20;
  Traits picky = kRight;
  picky.supports = [](const Problem& p) {
    return p.cols % 2 ? std::string("odd") : "cols must be odd, not " + std::to_string(p.cols);
  };
  const Kernel v9(9, "v9_picky", "picky", "v9.cu", current, launch, picky);
  kernels_ = {&v9};
  EXPECT_EQ(run().size(), 1u);  // the copy
  EXPECT_THAT(left_out_, ElementsAre("8192 x 50257: needs 3141 MiB, Fake 9000 has 64 MiB free",
                                     "V9 at 100 x 300: cols must be odd, not 300"));
}

TEST_F(BenchRun, GraphRotatesOverSetsAndSaysSo) {
  points_ = {{{1, 100}, Mode::graph},
             {{200, 300}, Mode::graph, {64}},
             {{1, 100}, Mode::graph_hot},
             {{1, 9000}, Mode::graph_hot}};
  const auto runs = run("V6|copy");
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[1].benchmark_name(), "softmax/V6/fp32/ieee/graph/N:200/C:300/block:64/manual_time");
  EXPECT_EQ(runs[1].counters.at("slots"), 2);  // never one alone
  EXPECT_EQ(runs[1].counters.at("nodes"), 32);
  EXPECT_EQ(runs[2].benchmark_name(), "softmax/copy/fp32/ieee/graph-hot/N:1/C:100/manual_time");
  EXPECT_EQ(runs[3].counters.at("slots"), 1);
  EXPECT_THAT(
      left_out_,
      testing::IsSupersetOf({"1 x 100: graph mode rotates over sets of at least 64 KiB; only graph-hot is honest below",
                             "V6 at 1 x 9000: one thread a row is too slow for a graph above 8192 columns"}));
}

TEST_F(BenchRun, TableIsAlignedAndKnowsV1) {
  sabotage = [](const Problem& p) {
    if (p.block == 64) row(p, 0)[0] = 2;
  };
  std::string text = table("/V6/");
  EXPECT_THAT(text, HasSubstr("100 x 300 fp32, ieee, cold, Fake 9000\n  version block"));
  EXPECT_THAT(text, HasSubstr("\n  V6         32"));
  EXPECT_THAT(text, HasSubstr("\n  V6         64 ERROR: INCORRECT: row 0, column 0: got 2, expected"));
  sabotage = nullptr;
  text = table();
  EXPECT_THAT(text, testing::ContainsRegex("V6 +32 +1000 +10.00 +0.2400 +50.0 +24.0 +1.00 +[0-9.]+  \\+-0.0%"));
  EXPECT_THAT(text, testing::ContainsRegex("copy +- +500.0 +5.000 +0.4800 +100.0 +48.0 +- +-  \\+-0.0%"));
}

TEST_F(BenchRun, JsonHoldsNoNaN) {
  flag("--benchmark_repetitions=2");
  std::ostringstream out;
  FiniteJsonReporter json;
  json.SetOutputStream(&out);
  run(json);
  EXPECT_THAT(out.str(), HasSubstr("manual_time_cv"));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("NaN")));
}

TEST(BenchContext, HasTheSchemaAndNoKeyTwice) {
  FakeMachine fake;
  fake.free_bytes = 1 << 20;
  Session session(fake, Input{});
  session.policy = fake.cold_start();
  std::map<std::string, int> count;
  for (const auto& [key, value] : context(session, "ladder", "bench --x", "x.samples.f32")) ++count[key];
  for (const auto& [key, times] : count) EXPECT_EQ(times, 1) << key;
  for (const char* key :
       {"schema",          "device",    "device_id",      "simulated",      "math",          "git_sha",
        "git_dirty",       "flags",     "flush",          "seed",           "input",         "command_line",
        "harness_version", "cc",        "samples",        "roof_copy_GB/s", "roof_copy_way", "roof_read_GB/s",
        "roof_write_GB/s", "peak_GB/s", "launch_floor_us"})
    EXPECT_EQ(count[key], 1) << key;
}

// A kernel of every type with plans: row by row in fp32, and rounded at the end.
void launch_typed(const Problem& p) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < p.cols; ++i) x.push_back(element(p.in, std::size_t(r * p.in_stride + i), p.in_type));
    const auto y = reference::three_loops(x);
    for (std::size_t i = 0; i < y.size(); ++i) set_element(p.out, std::size_t(r * p.out_stride) + i, p.out_type, y[i]);
  }
  if (sabotage) sabotage(p);
}
Traits typed() {
  Traits traits = kRight;
  traits.blocks = {0};
  traits.types = {Types{}, {DataType::bf16, DataType::bf16}, {DataType::bf16, DataType::fp32}};
  traits.plan = [](const Problem& p) {
    if (p.plan.blocks > 2) return Plan();
    return p.plan.threads ? p.plan : Plan{512, 8, 4, 2};
  };
  traits.rounding = [](const Problem& p) { return Rounding{p.cols, 0}; };
  return traits;
}
const Kernel v9(9, "v9_typed", "typed", "v9_typed.cu", current, launch_typed, typed());

TEST_F(BenchRun, TypesAndPlans) {
  using enum DataType;
  kernels_ = {&v1, &v9};
  points_ = {{{100, 301, false, bf16, fp32}},
             {{100, 301, false, bf16, bf16}},
             {{100, 300}, Mode::cold, {}, {256, 4, 0, 1}, true},
             {{100, 300}, Mode::cold, {}, {256, 4, 0, 3}}};
  const auto runs = run("V9");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(failures_, 0);
  EXPECT_EQ(runs[0].benchmark_name(), "softmax/V9/bf16-fp32/ieee/cold/N:100/C:301/manual_time");
  EXPECT_EQ(runs[0].report_label, "typed [512x8+4s c2]");
  EXPECT_EQ(double(runs[0].counters.at("bytes")), 100 * 301 * 6);
  EXPECT_EQ(double(runs[0].counters.at("shared_vectors")), 4);
  EXPECT_LE(double(runs[1].counters.at("max_ulp")), 0.51);  // of bf16
  EXPECT_EQ(runs[2].benchmark_name(),
            "softmax/V9/fp32/ieee/cold/N:100/C:300/threads:256/vectors:4/shared_vectors:0/row_blocks:1/overlap:1/"
            "manual_time");
  EXPECT_EQ(double(runs[2].counters.at("overlap")), 1);
  EXPECT_THAT(left_out_, testing::Contains(testing::HasSubstr("no such plan")));
  EXPECT_THAT(left_out_, testing::Contains(testing::HasSubstr("V1 takes fp32, not bf16")));
  EXPECT_EQ(run("copy/bf16-fp32").size(), 1u);
  EXPECT_EQ(failures_, 0);

  sabotage = [](const Problem& p) {  // one bf16 step is more than rounding allows
    if (p.out_type == bf16) static_cast<std::uint16_t*>(p.out)[7] += 1;
  };
  EXPECT_THAT(error_of(run("V9/bf16/").at(0)), testing::HasSubstr("row 0, column 7"));
}

TEST_F(BenchRun, WhereAutoIsJudgedLessonsAreLeftOutAndOthersAreNot) {
  static const Kernel another(
      0, "another", "of somebody else", "another.cpp", current, launch,
      Traits{.blocks = {0}, .algorithm = Algorithm::safe, .summation = Summation::sequential, .reads = 3});
  kernels_ = {&v1, &v9, &another};
  points_[0].only_plans = true;
  std::vector<std::string> names;
  for (const auto& r : run()) names.push_back(r.benchmark_name().substr(8, 7));
  EXPECT_THAT(names, ElementsAre("copy/fp", "V9/fp32", "another"));
  EXPECT_EQ(failures_, 0);
  points_[0].overlap = true;  // which it does not know
  EXPECT_EQ(run("another").size(), 0u);
  EXPECT_THAT(left_out_, testing::IsEmpty());
}

}  // namespace
}  // namespace softmax::bench
