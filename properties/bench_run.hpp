#pragma once
// A test fixture that runs whole benchmarks on the fake machine, with two kernels that are right until a test says
// otherwise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/cases.hpp"
#include "benchmarks/reporter.hpp"
#include "properties/bench_fake.hpp"
#include "reference/softmax.hpp"

namespace softmax::bench {

inline FakeMachine* machine = nullptr;  // of the running test
inline Machine& current() { return *machine; }
inline std::function<void(const Problem&)> sabotage;  // done to the output of a right launch
inline int launches = 0, last_launch = 1 << 30;       // after which the kernel does nothing any more

inline void launch(const Problem& p) {
  if (++launches > last_launch) return;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const auto y = reference::three_loops({static_cast<const float*>(p.in) + r * p.in_stride, std::size_t(p.cols)});
    std::copy(y.begin(), y.end(), static_cast<float*>(p.out) + r * p.out_stride);
  }
  if (sabotage) sabotage(p);
}

inline constexpr Traits kRight{
    .blocks = {32, 64}, .algorithm = Algorithm::safe, .summation = Summation::sequential, .reads = 3};
inline const Kernel v1(1, "v1_right", "right", "v1_right.cu", current, launch, kRight);
inline const Kernel v6(6, "v6_right", "right too", "v6_right.cu", current, launch, kRight);

class Capture : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& some) override { runs.insert(runs.end(), some.begin(), some.end()); }
  std::vector<Run> runs;
};

class BenchRun : public testing::Test {
 protected:
  FakeMachine fake_;
  std::vector<Point> points_ = {{{100, 300}}};
  std::vector<const Kernel*> kernels_ = {&v1, &v6};
  Input input_;
  std::vector<std::string> left_out_;
  std::vector<Trace> traces_;
  int failures_ = 0;
  std::function<void(Session&)> prepare_;

  BenchRun() {
    machine = &fake_;
    sabotage = nullptr;
    launches = 0;
    last_launch = 1 << 30;
    flag("--benchmark_repetitions=1");
  }
  ~BenchRun() override { benchmark::ClearRegisteredBenchmarks(); }

  static void flag(std::string text) {
    static std::string program = "test";  // the library keeps it
    std::string time = "--benchmark_min_time=0";
    char* argv[] = {program.data(), time.data(), text.data(), nullptr};
    int argc = 3;
    benchmark::Initialize(&argc, argv);
  }
  std::size_t run(benchmark::BenchmarkReporter& reporter, const std::string& filter = ".") {
    benchmark::ClearRegisteredBenchmarks();
    Session session(fake_, input_);
    session.policy = fake_.cold_start();
    if (prepare_) prepare_(session);
    const Registered registered = register_cases(session, points_, kernels_);
    const std::size_t matched = benchmark::RunSpecifiedBenchmarks(&reporter, filter);
    left_out_ = registered.left_out;
    traces_ = session.traces();
    failures_ = session.failures();
    return matched;
  }
  std::vector<Capture::Run> run(const std::string& filter = ".") {
    Capture capture;
    run(capture, filter);
    return capture.runs;
  }
  // What the table shows of the runs that match.
  std::string table(const std::string& filter = ".") {
    std::ostringstream out;
    TableReporter table("Fake 9000");
    table.SetOutputStream(&out);
    run(table, filter);
    return out.str();
  }
  // The error of V6 at block 32 under a sabotage.
  std::string error_under(std::function<void(const Problem&)> what) {
    sabotage = std::move(what);
    const auto runs = run("/V6/.*block:32/");
    EXPECT_EQ(runs.size(), 1u);
    EXPECT_EQ(failures_, 1);
    EXPECT_THAT(runs[0].counters, testing::IsEmpty());
    return error_of(runs[0]);
  }
};

inline float* row(const Problem& p, std::int64_t r) { return static_cast<float*>(p.out) + r * p.out_stride; }

}  // namespace softmax::bench
