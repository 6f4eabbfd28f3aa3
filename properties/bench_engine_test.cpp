// The measuring engine on a fake machine and a fake clock: statistics, the stop rule, modes, and what a row is flagged
// for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/measure.hpp"
#include "benchmarks/session.hpp"
#include "properties/bench_fake.hpp"
#include "properties/harness.hpp"

namespace softmax::bench {
namespace {

using properties::message_of;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

// Uniform in [0, 1), the same in every run.
double uniform(int i) { return double(random_bits(1, std::uint64_t(i)) >> 11) * 0x1p-53; }

TEST(BenchSummary, QuartilesAndMedianAreInterpolated) {
  const Summary s = summarize({4, 1, 3, 2});
  EXPECT_EQ(s.n, 4);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.p25, 1.75);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_EQ(s.p75, 3.25);
}

TEST(BenchSummary, ConfidenceIntervalIsBetweenTheRightRanks) {
  std::vector<double> ramp(100);
  for (int i = 0; i < 100; ++i) ramp[std::size_t(i)] = i + 1;
  // Textbook: of 100 samples ranks 40 and 61 enclose the median with 96.5 %, 41 and 60 with less than 95 %.
  EXPECT_DOUBLE_EQ(summarize(ramp).ci_percent, 100 * (61 - 40) / 2.0 / 50.5);
  while (ramp.size() < 400) ramp.push_back(double(ramp.size() + 1));
  EXPECT_DOUBLE_EQ(summarize(ramp).ci_percent, 100 * (221 - 180) / 2.0 / 200.5);
  while (ramp.size() < 1000) ramp.push_back(double(ramp.size() + 1));
  EXPECT_DOUBLE_EQ(summarize(ramp).ci_percent, 100 * (532 - 469) / 2.0 / 500.5);
  EXPECT_DOUBLE_EQ(summarize({1, 2, 3}).ci_percent, 100 * 1.0 / 2);  // too few: the whole range
  EXPECT_EQ(summarize({7}).ci_percent, 0);
}

TEST(BenchSummary, RefusesWhatHasNoMedian) {
  for (const double wrong : {double(NAN), double(INFINITY)})
    EXPECT_THAT(message_of([&] { summarize({1, wrong}); }), HasSubstr("clock measured"));
  EXPECT_THAT(message_of([] { summarize({-1, -1, 2}); }), HasSubstr("measured -1.000000 s, the median of 3"));
  EXPECT_THAT(message_of([] { summarize({}); }), HasSubstr("no time"));
  EXPECT_EQ(summarize({-1, 1, 2}).min, -1);  // kept, and the row is suspect
}

struct BenchEngine : testing::Test {
  FakeMachine machine;
  int calls = 0;
  Measured run(const Policy& p, std::int64_t at_least = 0) {
    return measure(
        machine, [this](int) { ++calls; }, nullptr, {}, p, at_least);
  }
  Measured run() { return run(machine.cold_start()); }
  Measured beside_a_copy(const Policy& p, Timing timing = {}) {
    return measure(
        machine, [this](int) { ++calls; }, [this](int) { machine.copy(0, nullptr, nullptr, 0); }, timing, p);
  }
};
using BenchStopRule = BenchEngine;

TEST_F(BenchStopRule, ConstantSamplesStopAtFifty) {
  const Measured m = run();
  EXPECT_EQ(m.work.n, 50);
  EXPECT_EQ(m.samples.size(), 50u);
  EXPECT_EQ(calls, 50);
  EXPECT_EQ(m.work.median, 1e-3);
  EXPECT_EQ(m.work.ci_percent, 0);
  EXPECT_FALSE(m.noisy || m.throttled || m.suspect);
  EXPECT_THAT(machine.timings, Each(Field(&Timing::mode, Mode::cold)));
}

TEST_F(BenchStopRule, MildNoiseNeedsMoreThanFifty) {
  machine.script = [](int i) { return 1e-4 * (1 + 0.1 * uniform(i)); };
  const Measured m = run();
  EXPECT_LE(m.work.ci_percent, 0.5);
  EXPECT_GT(m.work.n, 50);
  EXPECT_FALSE(m.noisy);
  EXPECT_LT(machine.clock, 1);
}

TEST_F(BenchStopRule, HonestNoiseIsMeasuredUntilTheCap) {
  machine.script = [](int i) { return 1e-3 * (1 + uniform(i)); };
  const Measured m = run();
  EXPECT_TRUE(m.noisy);
  EXPECT_GT(m.work.ci_percent, 0.5);
  EXPECT_GE(machine.clock, 1);
  EXPECT_LE(machine.clock, 1.25);  // overshoots by one batch at most
}

TEST_F(BenchStopRule, TwoModesAreAPlateauThatNoTimeCures) {
  machine.script = [](int i) { return i % 2 ? 1e-4 : 2e-4; };
  const Measured m = run();
  EXPECT_TRUE(m.noisy);
  EXPECT_GE(m.work.n, 200);
  EXPECT_LT(m.work.n, 2000);
  EXPECT_LT(machine.clock, 0.5);
  EXPECT_EQ(m.work.min, 1e-4);  // nothing is dropped
  EXPECT_EQ(m.samples.size(), std::size_t(m.work.n));
}

TEST_F(BenchStopRule, HalfAPercentIsTheLimitOfNoise) {
  machine.script = [](int i) { return i % 2 ? 1e-3 : 1.014e-3; };  // known to 0.7 %, and no better
  EXPECT_TRUE(run().noisy);
  machine.script = [](int i) { return i % 2 ? 1e-3 : 1.008e-3; };  // to 0.4 %
  EXPECT_FALSE(run().noisy);
}

TEST_F(BenchStopRule, DriftIsAPlateauToo) {
  machine.script = [](int i) { return 1e-4 * (1 + 0.001 * i); };
  const Measured m = run();
  EXPECT_TRUE(m.noisy);
  EXPECT_LT(m.work.n, 800);
}

TEST_F(BenchStopRule, AFewStragglersDoNotMatterAndAreKept) {
  machine.script = [](int i) { return i % 10 == 3 ? 5e-3 : 1e-3 * (1 + 0.001 * uniform(i)); };
  const Measured m = run();
  EXPECT_EQ(m.work.n, 50);
  EXPECT_FALSE(m.noisy);
  EXPECT_EQ(*std::max_element(m.samples.begin(), m.samples.end()), 5e-3);
}

TEST_F(BenchStopRule, SlowKernelGetsFiveSamplesWhateverTheyCost) {
  machine.script = [](int) { return 3.0; };
  EXPECT_EQ(run().work.n, 5);
  EXPECT_THAT(machine.batches, ElementsAre(1, 1, 1, 1, 1));
}

TEST_F(BenchStopRule, BatchesCountTheFlush) {
  machine.script = [](int) { return 1e-6; };
  machine.overhead = 0.049;  // four samples in 0.2 s
  const Measured m = run();
  EXPECT_EQ(*std::max_element(machine.batches.begin(), machine.batches.end()), 4);
  EXPECT_NEAR(machine.clock, 1, 0.2);
  EXPECT_LT(m.work.n, 50);
}

TEST_F(BenchStopRule, BatchesCountTheCopy) {
  machine.copy_seconds = 0.044;  // four beside the work's in 0.2 s
  beside_a_copy(machine.cold_start());
  EXPECT_EQ(*std::max_element(machine.batches.begin(), machine.batches.end()), 4);
}

TEST_F(BenchStopRule, SimulatedMachineGetsThree) {
  machine.is_simulated = true;
  EXPECT_EQ(run().work.n, 3);
  EXPECT_EQ(calls, 3);  // and no warm-up
  machine.script = [](int) { return 10.0; };
  EXPECT_EQ(run().work.n, 1);
}

TEST_F(BenchStopRule, CallersMinimumBeatsTheCap) {
  machine.script = [](int) { return 0.01; };
  EXPECT_GE(run(machine.cold_start(), 400).work.n, 400);
}

TEST_F(BenchStopRule, WarmUpIsTenLaunchesAndFiftyMilliseconds) {
  Policy p = policy(machine);
  p.now = [this] { return machine.clock; };
  EXPECT_EQ(run(p).work.n, 50);
  EXPECT_GE(calls, 50 + 50);  // of 1 ms
  machine.script = [](int) { return 1e-2; };
  calls = 0;
  EXPECT_EQ(run(p).work.n, 50);
  EXPECT_GE(calls, 50 + 10);
  machine.script = [](int) { return 0.25; };
  calls = 0;
  EXPECT_EQ(run(p).work.n, 5);
  EXPECT_EQ(calls, 6);  // slow: one was enough
}

TEST_F(BenchStopRule, ShortKernelWithASlowFlushCostsUnderTwoSeconds) {
  Policy p = policy(machine);
  p.now = [this] { return machine.clock; };
  machine.script = [](int i) { return 3e-6 * (1 + 0.2 * uniform(i)); };
  machine.overhead = 50e-6;
  beside_a_copy(p);
  EXPECT_LT(machine.clock, 2);
}

TEST_F(BenchStopRule, ErrorOfTheWorkPasses) {
  EXPECT_EQ(message_of([&] {
              measure(
                  machine, [](int) { throw std::runtime_error("launch failed"); }, nullptr, {}, machine.cold_start());
            }),
            "launch failed");
}

TEST_F(BenchStopRule, WhoIsAskedBetweenBatchesMayEndIt) {
  Policy p = machine.cold_start();
  p.between = [this] {
    if (calls >= 20) throw std::runtime_error("enough");
  };
  machine.script = [](int) { return 0.1; };
  EXPECT_EQ(message_of([&] { run(p, 1000); }), "enough");
  EXPECT_LT(calls, 25);
}

TEST_F(BenchEngine, CopyIsSampledInTurnAndAsOften) {
  machine.script = [](int i) { return 1e-3 * (1 + 0.04 * uniform(i)); };
  const Measured m = beside_a_copy(machine.cold_start());
  EXPECT_GT(m.work.n, 50);
  EXPECT_EQ(m.copy.n, m.work.n);
  EXPECT_EQ(m.copy_samples.size(), m.samples.size());
  EXPECT_EQ(m.copy.median, 5e-4);
  ASSERT_EQ(machine.batches.size() % 2, 0u);
  for (std::size_t i = 0; i < machine.batches.size(); i += 2) EXPECT_EQ(machine.batches[i], machine.batches[i + 1]);
}

TEST_F(BenchEngine, DriftOfTheMachineMeetsTheCopyToo) {
  // Everything takes longer and longer. A copy timed before all else would make the kernel look slower than it is.
  machine.script = [this](int) { return 1e-3 * (1 + machine.clock); };
  Policy p = machine.cold_start();
  p.batch_seconds = 0.01;
  p.between = [this] { machine.copy_seconds = 5e-4 * (1 + machine.clock); };
  const Measured m = beside_a_copy(p);
  EXPECT_GT(m.work.median, 1.02e-3);
  EXPECT_NEAR(m.copy.median / m.work.median, 0.5, 0.01);
}

TEST_F(BenchEngine, FasterThanTheCopyIsSuspectNotDropped) {
  machine.script = [](int) { return 4e-4; };
  EXPECT_TRUE(beside_a_copy(machine.cold_start()).suspect);
  machine.script = [](int) { return 4.9e-4; };  // as fast as a copy may vary
  EXPECT_FALSE(beside_a_copy(machine.cold_start()).suspect);
}

TEST_F(BenchEngine, SamplesThatAreNotPositiveAreSuspectNotDropped) {
  machine.script = [](int i) { return i == 7 ? -1e-6 : i == 9 ? 0 : 1e-3; };
  const Measured m = run();
  EXPECT_TRUE(m.suspect);
  EXPECT_EQ(m.samples[7], -1e-6);
  EXPECT_EQ(m.work.n, 50);
  EXPECT_EQ(m.work.median, 1e-3);
  machine.timed = 0;
  machine.script = [](int i) { return i == 9 ? 0 : 1e-3; };
  EXPECT_TRUE(run().suspect);
  machine.script = [](int i) { return i % 3 ? -1e-6 : 1e-3; };
  EXPECT_THAT(message_of([&] { run(); }), HasSubstr("the machine's clock measured"));
}

TEST_F(BenchEngine, LowClocksAreThrottled) {
  EXPECT_EQ(run().sm_hz, 0);  // unknown is no reason
  EXPECT_FALSE(run().throttled);
  machine.sm_hz = 1.9e9;  // of 2
  EXPECT_NEAR(run().sm_hz, 1.9e9, 1);
  EXPECT_FALSE(run().throttled);
  machine.sm_hz = 1.52e9;
  EXPECT_FALSE(run().throttled);
  machine.sm_hz = 1.48e9;
  EXPECT_TRUE(run().throttled);
}

TEST_F(BenchEngine, ClockIsTheMeanOverAllBatches) {
  machine.sm_hz = 1e9;
  Policy p = machine.cold_start();
  p.batch_seconds = 0.01;
  int fast = 0, slow = 0;
  p.between = [&] {
    (machine.sm_hz == 1e9 ? slow : fast) += machine.batches.back();
    machine.sm_hz = machine.timed < 25 ? 1e9 : 2e9;
  };
  const double mean = run(p).sm_hz;
  EXPECT_GT(slow, 10);
  EXPECT_GT(fast, 10);
  EXPECT_NEAR(mean, (slow * 1e9 + fast * 2e9) / (slow + fast), 1);
}

TEST_F(BenchEngine, DriversReasonsAreCollected) {
  EXPECT_FALSE(run().throttle_reasons);
  machine.throttle_reasons = 0;
  EXPECT_EQ(run().throttle_reasons, 0u);
  EXPECT_FALSE(run().throttled);
  Policy p = machine.cold_start();
  p.batch_seconds = 0.01;
  machine.timed = 0;
  p.between = [this] { machine.throttle_reasons = machine.timed < 25 ? 4 : 32; };
  const Measured m = run(p);
  EXPECT_EQ(m.throttle_reasons, 36u);
  EXPECT_TRUE(m.throttled);
}

TEST_F(BenchEngine, GraphsHaveAMultipleOfTheSetsAndThirtyTwoLaunches) {
  std::vector<int> used(5);
  const auto launches = [&](double seconds) {
    machine.script = [=](int) { return seconds; };
    machine.timings.clear();
    const Measured m = measure(
        machine, [&](int set) { ++used.at(std::size_t(set)); }, nullptr, {.mode = Mode::graph, .sets = 5},
        machine.cold_start());
    EXPECT_EQ(machine.timings.back().launches, m.launches);
    EXPECT_EQ(machine.timings.back().sets, 5);
    return m.launches;
  };
  EXPECT_EQ(launches(1e-4), 35);     // the least multiple of 5 above 32
  EXPECT_EQ(launches(2.1e-6), 240);  // half a millisecond
  EXPECT_EQ(launches(0.1), 5);       // every set once is long enough
  EXPECT_EQ(launches(1), 5);
  EXPECT_THAT(used, Each(used[0]));
}

TEST_F(BenchEngine, CopyHasAGraphOfItsOwnLength) {
  machine.script = [](int) { return 1e-3; };
  machine.copy_seconds = 1.001e-6;
  const Measured m = beside_a_copy(machine.cold_start(), {.mode = Mode::graph_hot});
  EXPECT_EQ(m.launches, 32);
  EXPECT_THAT(machine.timings, testing::Contains(Field(&Timing::launches, 500)));
}

TEST(BenchSets, TogetherExceedTheCacheThreefoldAndAreNeverAlone) {
  FakeMachine fake;  // of 1 KiB cache
  const Session session(fake, Input{});
  EXPECT_EQ(session.sets({{1, 16}, Mode::graph}), 24);  // of 128 bytes
  EXPECT_EQ(session.sets({{1, 100}, Mode::graph}), 4);
  EXPECT_EQ(session.sets({{1000, 1000}, Mode::graph}), 2);
  for (const Mode mode : {Mode::cold, Mode::hot, Mode::graph_hot}) EXPECT_EQ(session.sets({{1, 16}, mode}), 1);
}

TEST(BenchSamples, FileHoldsMicrosecondsInOrder) {
  const std::string json = testing::TempDir() + "bench_samples.json", path = SampleFile::beside(json);
  EXPECT_TRUE(path.ends_with("bench_samples.samples.f32")) << path;
  {
    SampleFile file(path);
    Measured m;
    m.samples = {3e-6, 1e-6};
    m.copy_samples = {2e-6};
    EXPECT_EQ(file.append(m), 0);
    EXPECT_EQ(file.append(m), 3);
    EXPECT_TRUE(file.good());
  }
  std::ifstream in(path, std::ios::binary);
  float values[7] = {};
  in.read(reinterpret_cast<char*>(values), sizeof values);
  EXPECT_EQ(in.gcount(), 6 * 4);
  EXPECT_THAT(std::vector<float>(values, values + 6), ElementsAre(3, 1, 2, 3, 1, 2));
  std::filesystem::remove(path);
  EXPECT_THAT(message_of([] { SampleFile("no/such/folder/x.f32"); }), HasSubstr("No such file"));
}

struct BenchSession : testing::Test {
  FakeMachine fake;
  std::unique_ptr<Session> session;
  const Work work = [](int) {};
  BenchSession() { fresh(); }
  void fresh() {
    fake.free_bytes = 1 << 20;
    session = std::make_unique<Session>(fake, Input{});
    session->policy = fake.cold_start();
  }
  double copy_seconds(Shape shape, int sets, Mode mode) {
    return session->time_copy(session->workspace(shape, sets), mode, 0).work.median;
  }
};

TEST_F(BenchSession, FlushOfTheRunIsThatOfAllItTimes) {
  session->flush = Flush::read;
  session->time(session->workspace({4, 50}), work, Mode::cold, 0);  // and looks for the best copy
  session->time(session->workspace({4, 50}), work, Mode::cold, 0, false);
  session->roof();
  EXPECT_GT(fake.timings.size(), 10u);
  EXPECT_THAT(fake.timings, Each(Field(&Timing::flush, Flush::read)));
}

TEST_F(BenchSession, WhateverIsTimedFirstWarmsTheProcessUp) {
  const std::vector<std::function<void()>> firsts = {
      [&] {
        session->time(session->workspace({4, 50}), work, Mode::cold, 0, false);
      },
      [&] {
        session->time(session->workspace({4, 50}), work, Mode::cold, 0);
      },
      [&] { session->roof(); },
  };
  for (const auto& first : firsts) {
    fresh();
    session->policy.process_seconds = 10;
    const double start = fake.clock;
    first();
    EXPECT_GE(fake.clock - start, 10);
    const double warm = fake.clock;
    for (const auto& next : firsts) next();
    EXPECT_LT(fake.clock - warm, 1);
  }
}

TEST_F(BenchSession, EverySetHoldsTheInput) {
  // Rows of no round size, dense, misaligned, and with gaps longer than what is spread at one time.
  for (const auto& [at, gap] :
       {std::pair{InOut(), InOut()}, {InOut{3, 0}, InOut()}, {InOut{1, 2}, InOut{1 << 20, 5}}}) {
    Workspace& ws = session->workspace({.rows = 20, .cols = 37, .at = at, .gap = gap}, 3);
    for (int set = 0; set < 3; ++set) {
      const Problem p = ws.problem(Kernel(9, "v9", "", "v9.cu", nullptr, nullptr, {}), {}, set);
      const auto* in = static_cast<const float*>(p.in);
      for (int r = 0; r < 20; ++r, in += p.in_stride)
        EXPECT_EQ(std::vector<float>(in, in + 37), session->input().row({20, 37}, r)) << "set " << set << ", row " << r;
      EXPECT_EQ(std::uintptr_t(p.in) % 16, 4u * std::uintptr_t(at.in));
      EXPECT_EQ(std::uintptr_t(p.out) % 16, 4u * std::uintptr_t(at.out));
    }
  }
}

TEST_F(BenchSession, ScratchGrowsWithWhatAKernelAsksFor) {
  Traits greedy;
  greedy.workspace = [](const Problem& p) { return std::int64_t(p.block) * 64; };
  static FakeMachine* here = nullptr;
  here = &fake;
  const Kernel kernel(
      9, "v9_greedy", "greedy", "v9.cu", []() -> Machine& { return *here; }, [](const Problem&) {}, greedy);
  Workspace& ws = session->workspace({1, 8});
  for (const int block : {32, 256, 64}) {
    const Problem p = ws.problem(kernel, block);
    std::memset(p.workspace, 0, std::size_t(kernel.workspace(p)));
    EXPECT_EQ(ws.damage(), "") << block;
  }
  EXPECT_EQ(fake.allocations, 4);  // input, output, and two of scratch: all sets keep the one they were told of
}

TEST_F(BenchSession, CopyIsTheFastestOfItsBytesSetsAndMode) {
  int fastest = 1;
  fake.copy_ways = 3;
  fake.way_seconds = [&](int way) { return way == fastest ? 1e-4 : 2e-4 + 1e-5 * way; };
  EXPECT_EQ(copy_seconds({4, 50}, 1, Mode::hot), 1e-4);
  fastest = 2;
  EXPECT_EQ(copy_seconds({4, 50}, 1, Mode::hot), 2e-4 + 1e-5);  // looked for once
  EXPECT_EQ(copy_seconds({4, 50}, 1, Mode::cold), 1e-4);
  fastest = 0;
  EXPECT_EQ(copy_seconds({4, 50}, 3, Mode::cold), 1e-4);
  fastest = 1;
  EXPECT_EQ(copy_seconds({8, 50}, 3, Mode::cold), 1e-4);
}

TEST_F(BenchSession, CopyThatLeavesAnElementOutIsNoCopy) {
  const Workspace& ws = session->workspace({4, 50}, 3);
  fake.copying = [&](int way, void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes - (way == 1 && to == ws.out(2) ? sizeof(float) : 0));
  };
  EXPECT_EQ(message_of([&] {
              copy_seconds({4, 50}, 3, Mode::hot);
            }),
            "INCORRECT: way 1 to copy does not copy all bytes");
}

TEST(BenchRoof, IsTheBestOfSeveralAndMeasuredOnce) {
  FakeMachine fake;
  fake.free_bytes = 1 << 20;  // buffers of an eighth
  fake.script = [](int i) { return i < 60 ? 1e-3 : 2e-3; };
  Session session(fake, Input{});
  session.policy = fake.cold_start();
  const Roof roof = session.roof();
  EXPECT_DOUBLE_EQ(roof.copy, 2 * (1 << 17) / 5e-4);
  EXPECT_EQ(roof.copy_way, "the driver's");
  EXPECT_DOUBLE_EQ(roof.read, (1 << 17) / 1e-3);
  EXPECT_DOUBLE_EQ(roof.write, (1 << 17) / 2e-3);
  EXPECT_DOUBLE_EQ(roof.floor, 2e-3);
  const int timed = fake.timed;
  session.roof();
  EXPECT_EQ(fake.timed, timed);
  fake.is_simulated = true;
  Session simulated(fake, Input{});
  EXPECT_EQ(simulated.roof().floor, 0);
}

}  // namespace
}  // namespace softmax::bench
