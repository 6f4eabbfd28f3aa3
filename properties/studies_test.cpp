// The studies: every variant is right on every machine, in whatever order threads run; a wrong one has no number.

#include <cmath>
#include <cstring>
#include <map>
#include <regex>

#include "benchmarks/studies/cases.hpp"
#include "properties/bench_run.hpp"
#include "properties/harness.hpp"

namespace softmax::studies {
namespace {

using bench::Workspace;
using properties::message_of;
using testing::HasSubstr;

class Study : public testing::TestWithParam<const Experiment*> {
 protected:
  void SetUp() override {
    const std::string why = machine().unavailable();
    if (why.empty()) return;
    if (properties::gpu_required()) FAIL() << "SOFTMAX_REQUIRE_GPU=1, but " << why;
    GTEST_SKIP() << why;
  }
  Machine& machine() { return GetParam()->machine(); }
  Workspace workspace(const Row& row) {
    Workspace ws(machine(), {1, row.problem.elements}, bench::Input{});
    prepare(ws, row);
    return ws;
  }
};

TEST_P(Study, is_right_in_every_order_of_threads) {
  const std::vector<Row> all = rows(*GetParam());
  EXPECT_FALSE(all.empty());
  for (const Row& row : all) {
    SCOPED_TRACE(std::string(row.variant->name) + " " + std::to_string(row.problem.arg[0]) + " " +
                 std::to_string(row.problem.arg[1]) + " block " + std::to_string(row.problem.block));
    Workspace ws = workspace(row);
    using Order = Schedule::Order;
    for (const Schedule s : {Schedule{}, {Order::reverse, 0}, {Order::seeded, 1}}) {
      if (s.order != Order::forward && !machine().simulated()) continue;
      machine().schedule(s);
      ws.out().poison();
      EXPECT_NO_THROW(launch(ws, row)) << to_string(s);
      EXPECT_NO_THROW(check(ws, row)) << to_string(s);
    }
    machine().schedule({});
  }
}

// Of every variant, one row.
TEST_P(Study, would_not_pass_if_it_were_wrong) {
  if (!machine().simulated()) GTEST_SKIP() << "changes the output by hand, where that is the host's memory";
  const Variant* last = nullptr;
  for (const Row& row : rows(*GetParam())) {
    if (row.variant == std::exchange(last, row.variant)) continue;
    SCOPED_TRACE(row.variant->name);
    Workspace ws = workspace(row);
    EXPECT_THAT(message_of([&] { check(ws, row); }), HasSubstr("INCORRECT")) << "nothing was launched";
    ws.out().poison();
    launch(ws, row);
    ASSERT_EQ(message_of([&] { check(ws, row); }), "");
    const Problem p = problem(ws, row);
    const std::int64_t outputs = GetParam()->cost(p).outputs;
    const Input in{*GetParam(), p};
    for (const std::int64_t i : {std::int64_t{0}, outputs / 2, outputs - 1}) {
      const float right = p.out[i];
      const Want want = GetParam()->expected(in, i, p);
      const auto off = float(want.value + std::max(2 * want.tolerance, std::fabs(want.value) * 0x1p-22));
      for (const float bad : {off == right ? 1 + right : off, NAN}) {
        p.out[i] = bad;
        EXPECT_THAT(message_of([&] { check(ws, row); }), HasSubstr("INCORRECT: element " + std::to_string(i) + ": "));
      }
      p.out[i] = right;
    }
  }
}

// The checks of the CPU device are on: a kernel that stores where it should not is a fault, not a number.
TEST_P(Study, is_watched) {
  if (!machine().simulated()) GTEST_SKIP() << "a GPU does not watch";
  static const Experiment* truth;
  truth = GetParam();
  Experiment greedy = *truth;
  greedy.cost = [](const Problem& p) {
    Cost cost = truth->cost(p);
    --cost.outputs;  // the last one is none of its business
    return cost;
  };
  const Row row = rows(greedy).front();
  Workspace ws = workspace(row);
  EXPECT_NE(message_of([&] { launch(ws, row); }), "");
}

std::string name_of(const Experiment* e) {
  std::string name = e->operation;
  std::replace(name.begin(), name.end(), '-', '_');
  const auto& all = experiments();
  return name + std::to_string(std::find(all.begin(), all.end(), e) - all.begin()) + "_" +
         std::string(e->machine().id());
}
INSTANTIATE_TEST_SUITE_P(All, Study, testing::ValuesIn(experiments()),
                         [](const auto& info) { return name_of(info.param); });

// As benchmarks.
class StudyRows : public bench::BenchRun {
 protected:
  std::vector<bench::Capture::Run> run(Machine& machine, const std::vector<const Experiment*>& chosen,
                                       bench::Policy policy, const std::string& filter = ".") {
    bench::Session session(machine, {});
    session.policy = policy;
    bench::Registered registered;
    register_studies(session, registered, chosen);
    bench::Capture capture;
    benchmark::RunSpecifiedBenchmarks(&capture, filter);
    left_out_ = registered.left_out;
    failures_ = session.failures();
    return capture.runs;
  }
};

// At the sizes of a GPU, which no other test here has: a walk that ends where it began could not be told from none.
TEST(StudyLatency, walks_end_elsewhere_than_they_began) {
  int walks = 0;
  for (const Experiment* e : experiments())
    if (std::string_view(e->operation) == "latency" && e->axes[0].name)
      for (const std::int64_t set : e->axes[0].values) {
        Problem p;
        p.arg[0] = set;
        p.elements = e->cost(p).elements;
        EXPECT_NE(e->expected({*e, p}, 0, p).value, 0) << set;
        ++walks;
      }
  EXPECT_GT(walks, 10);
}

TEST_F(StudyRows, have_names_of_the_grammar_and_say_what_they_are_of) {
  Machine& cpu = *machines().back();
  ASSERT_TRUE(cpu.simulated());
  const std::regex grammar("[a-z][a-z0-9-]*/[a-z0-9-]+/fp32/ieee/sim(/[a-z]+:[0-9]+){1,3}/manual_time");
  const auto runs = run(cpu, experiments(), bench::policy(cpu), "^(reduce/shuffle|latency|access)");
  EXPECT_GT(runs.size(), 20u);
  EXPECT_EQ(failures_, 0);
  for (const auto& r : runs) {
    EXPECT_TRUE(std::regex_match(r.benchmark_name(), grammar)) << r.benchmark_name();
    EXPECT_THAT(r.benchmark_name(), HasSubstr("/block:" + std::to_string(int(r.counters.at("block"))) + "/"));
    EXPECT_EQ(r.counters.count("GB/s") + r.counters.count("ns/op"), 1u) << r.benchmark_name();
    EXPECT_EQ(r.counters.count("%copy"), 0u);
    EXPECT_NE(r.report_label, "");
  }
  EXPECT_THAT(left_out_, testing::Contains("exp/ex2 runs on a GPU only"));
}

// On the fake machine, 1000 floats are doubled.
void twice(const Problem& p) {
  for (std::int64_t i = 0; i < 1000; ++i) p.out[i] = 2 * p.in[i];
}
void nearly(const Problem& p) {
  twice(p);
  p.out[999] += 1;
}
int left = 0;
void tires(const Problem& p) {
  if (left-- > 0) twice(p);
}
const Experiment kDouble = {
    .operation = "double",
    .machine = bench::current,
    .variants = {{"right", "right", twice}, {"wrong", "wrong", nearly}, {"gpu", "gpu", twice, true}},
    .axes = {{"width", {3, 4}, {2}}},
    .blocks = {64},
    .modes = {Mode::cold},
    .cost = [](const Problem&) { return Cost{.elements = 1000, .outputs = 1000, .bytes = 8000, .operations = 10}; },
    .expected =
        [](const Input& in, std::int64_t i, const Problem&) {
          return Want{2.0 * in(i), 0};
        }};

TEST_F(StudyRows, have_numbers_if_they_are_right) {
  fake_.sm_hz = 1e9;
  const auto runs = run(fake_, {&kDouble}, fake_.cold_start());
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[0].benchmark_name(), "double/right/fp32/ieee/cold/width:3/block:64/manual_time");
  const std::map<std::string, double> c(runs[0].counters.begin(), runs[0].counters.end());
  const std::map<std::string, double> want = {
      {"us", 1000},       {"us_min", 1000}, {"us_p25", 1000}, {"us_p75", 1000}, {"n", 50},       {"ci%", 0},
      {"us_copy", 500},   {"%copy", 50},    {"%peak", 0.8},   {"bytes", 8000},  {"GB/s", 0.008}, {"ns/op", 1e5},
      {"cycles/op", 1e5}, {"width", 3},     {"block", 64},    {"regs", 40},     {"smem", 0},     {"blocks/SM", 16},
      {"noisy", 0},       {"throttled", 1}, {"suspect", 0},   {"sm_mhz", 1000}};
  for (const auto& [key, value] : want) EXPECT_NEAR(c.at(key), value, 1e-9 * value) << key;
  EXPECT_EQ(c.size(), want.size());
}

TEST_F(StudyRows, have_an_error_and_no_number_if_they_are_wrong) {
  const auto runs = run(fake_, {&kDouble}, fake_.cold_start(), "wrong/.*width:3");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_THAT(bench::error_of(runs[0]), HasSubstr("INCORRECT: element 999: got "));
  EXPECT_THAT(runs[0].counters, testing::IsEmpty());
  EXPECT_EQ(failures_, 1);
}

TEST_F(StudyRows, are_checked_after_timing_too) {
  Experiment tired = kDouble;
  tired.variants = {{"tires", "does nothing from its 30th launch on", tires}};
  left = 30;
  const auto runs = run(fake_, {&tired}, fake_.cold_start(), "width:3");
  EXPECT_THAT(bench::error_of(runs.at(0)), HasSubstr("INCORRECT"));
}

TEST_F(StudyRows, are_stand_ins_where_the_machine_is_simulated) {
  fake_.is_simulated = true;
  const auto runs = run(fake_, {&kDouble}, fake_.cold_start());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].benchmark_name(), "double/right/fp32/ieee/sim/width:2/block:64/manual_time");
  EXPECT_THAT(left_out_, testing::ElementsAre("double/gpu runs on a GPU only"));
}

TEST_F(StudyRows, have_a_copy_beside_them_only_if_they_move_as_much) {
  Experiment reads = kDouble;
  reads.cost = [](const Problem&) { return Cost{.elements = 1000, .outputs = 1000, .bytes = 4000}; };
  const auto runs = run(fake_, {&reads}, fake_.cold_start(), "right/.*width:3");
  EXPECT_EQ(runs.at(0).counters.count("us_copy"), 0u);
  EXPECT_EQ(runs[0].counters.count("ns/op"), 0u);
}

TEST_F(StudyRows, that_do_not_fit_are_left_out) {
  fake_.free_bytes = 1 << 10;
  EXPECT_EQ(run(fake_, {&kDouble}, fake_.cold_start()).size(), 0u);
  EXPECT_THAT(left_out_.at(0), HasSubstr("double/right/fp32/ieee/cold: needs 0 MiB, Fake 9000 has 0 MiB free"));
}

}  // namespace
}  // namespace softmax::studies
