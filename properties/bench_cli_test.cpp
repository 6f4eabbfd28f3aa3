// The command line's inner parts: sweeps, progress, interruption, profiling, and what reporters make of them.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "benchmarks/context.hpp"
#include "benchmarks/interrupt.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/progress.hpp"
#include "benchmarks/sweep.hpp"
#include "kernels/input.hpp"
#include "properties/bench_run.hpp"
#include "properties/harness.hpp"

namespace softmax::bench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// --- sweeps

const SweepOn kGpu{false, {8192, 50257}, {32, 64, 128}};
const SweepOn kCpu{true, {32, 1571}, {32, 64, 128}};

std::string refused(const std::string& text, const SweepOn& on = kGpu) {
  return properties::message_of([&] { parse_sweep(text, on); });
}
std::vector<std::int64_t> cols(const std::string& text) {
  std::vector<std::int64_t> all;
  for (const Point& point : parse_sweep(text, kGpu).points) all.push_back(point.shape.cols);
  return all;
}

TEST(BenchSweep, IsAProductOfItsAxes) {
  const Sweep sweep = parse_sweep("block=32|128,C=7|5,N=2:3,mode=cold|graph-hot,flush=read,dtype=fp32", kGpu);
  EXPECT_EQ(sweep.flush, Flush::read);
  std::vector<Point> want;
  for (const std::int64_t n : {2, 3})
    for (const std::int64_t c : {7, 5})
      for (const Mode mode : {Mode::cold, Mode::graph_hot}) want.push_back({{n, c}, mode, {32, 128}});
  EXPECT_EQ(sweep.points, want);
}

TEST(BenchSweep, AxesNotNamedAreTheArticles) {
  const Sweep sweep = parse_sweep("mode=hot", kGpu);
  EXPECT_EQ(sweep.points, (std::vector<Point>{{{8192, 50257}, Mode::hot, {}}}));
  EXPECT_EQ(sweep.flush, Flush::memset);
  EXPECT_EQ(parse_sweep("C=9", kCpu).points, (std::vector<Point>{{{32, 9}, Mode::cold, {}}}));
}

TEST(BenchSweep, ReadsRangesAndSuffixes) {
  EXPECT_THAT(cols("C=1024:8192:x2"), ElementsAre(1024, 2048, 4096, 8192));
  EXPECT_THAT(cols("C=3:100:x3"), ElementsAre(3, 9, 27, 81));
  EXPECT_THAT(cols("C=1:10:+4"), ElementsAre(1, 5, 9));
  EXPECT_THAT(cols("C=4:6"), ElementsAre(4, 5, 6));
  EXPECT_THAT(cols("C=5:5:x2|1K|1M"), ElementsAre(5, 1024, 1 << 20));
  EXPECT_THAT(cols("C=64K:256K:x2"), ElementsAre(1 << 16, 1 << 17, 1 << 18));
  EXPECT_THAT(cols("C=1024|1K|1023:1025"), ElementsAre(1024, 1023, 1025));
}

TEST(BenchSweep, MebibytesOfInputGiveTheRows) {
  std::vector<std::int64_t> rows;
  for (const Point& point : parse_sweep("MiB=1|64,C=50257|1M", kGpu).points) rows.push_back(point.shape.rows);
  EXPECT_THAT(rows, ElementsAre(5, 1, 333, 16));  // 2^18 / 50257; a quarter of a row is one; 2^24 / ...
  EXPECT_EQ(parse_sweep("MiB=1:2,C=1M", kGpu).points.size(), 1u) << "the same point twice";
}

TEST(BenchSweep, TypesPlansAndOverlap) {
  const auto points = parse_sweep("N=3,C=5,dtype=bf16|bf16-fp32,plan=512.8|256.4.2.16,overlap=0|1", kGpu).points;
  ASSERT_EQ(points.size(), 8u);
  EXPECT_EQ(name(points[0].shape.types()), "bf16");
  EXPECT_EQ(points[0].plan, (Plan{512, 8, 0, 0}));
  EXPECT_TRUE(points[1].overlap);
  EXPECT_EQ(points[2].plan, (Plan{256, 4, 2, 16}));
  EXPECT_EQ(points[7].shape.bytes(), 3 * 5 * 6);
  EXPECT_EQ(parse_sweep("MiB=1,C=1024,dtype=fp16", kGpu).points[0].shape.rows, 512);
  for (const char* bad : {"plan=1.2.3.4.5", "plan=2000", "plan=a", "overlap=2"}) EXPECT_NE(refused(bad), "") << bad;
}

TEST(BenchSweep, LayoutsOfBothMatricesOrOfEach) {
  const auto points = parse_sweep("N=3,C=5,at=0|1|1.2|1.1,gap=0|7.0,dtype=bf16|fp32", kGpu).points;
  ASSERT_EQ(points.size(), 12u);
  EXPECT_TRUE(points[0].shape.dense());
  EXPECT_EQ(points[1].shape.gap, (InOut{7, 0}));
  EXPECT_EQ(points[2].shape.at, (InOut{1, 1}));
  EXPECT_EQ(points[5].shape, (Shape{3, 5, false, DataType::bf16, DataType::bf16, {1, 2}, {7, 0}}));
  EXPECT_EQ(points[5].shape.bytes(), 3 * 5 * 4) << "of elements, not of gaps";
  EXPECT_EQ(to_string(points[5].shape), "3 x 5 at 1.2 gap 7.0");
  EXPECT_THAT(refused("at=16"), AllOf(HasSubstr("at=16: a number of elements, or IN.OUT"), HasSubstr("at most 15")));
  EXPECT_THAT(refused("gap=1.1048577"), HasSubstr("at most 1048576"));
  for (const char* bad : {"1.", ".1", "1.2.3", "-1", "1.-1", "a", "1:3", "1|", "1K", "99999999999999999999"})
    EXPECT_THAT(refused("gap=" + std::string(bad)), HasSubstr("a number of elements, or IN.OUT")) << bad;
}

TEST(BenchSuites, GoalsAreThoseOfTheFile) {
  const auto goals = points(Suite::goals, false);
  EXPECT_EQ(goals.size(), 63u + 8);  // those in graphs twice
  EXPECT_EQ(goals[4].shape, (Shape{4, 102400, false, DataType::bf16, DataType::bf16}));
  EXPECT_EQ(goals[4].mode, Mode::graph);
  EXPECT_FALSE(goals[3].overlap);
  EXPECT_TRUE(goals[4].overlap);
  for (const Point& point : goals) EXPECT_TRUE(point.only_plans);
}

TEST(BenchSuites, AFileOfPointsIsReadOrRefusedByLine) {
  const std::string path = testing::TempDir() + "points.csv";
  const auto of = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_points(path);
  };
  const auto some = of("dtype,N,C,mode,why\nbf16-fp32,3,70,cold,x\n\nfp16,1,9,graph-hot\n");
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some[0].shape, (Shape{3, 70, false, DataType::bf16, DataType::fp32}));
  EXPECT_EQ(some[0].mode, Mode::cold);
  EXPECT_TRUE(some[2].overlap);
  const auto why = [&](const std::string& line) -> std::string {
    try {
      of("dtype,N,C,mode\n" + line);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "";
  };
  const auto laid_out = of("dtype,N,C,mode,gap,why,at\nfp32,3,70,cold,2,9,1.0\nfp32,3,70,cold,,x\n");
  ASSERT_EQ(laid_out.size(), 2u);
  EXPECT_EQ(laid_out[0].shape, (Shape{3, 70, false, DataType::fp32, DataType::fp32, {1, 0}, {2, 2}}));
  EXPECT_TRUE(laid_out[1].shape.dense());
  EXPECT_THAT(properties::message_of([&] { of("dtype,N,C,mode,at\nfp32,3,70,cold,16\n"); }),
              HasSubstr("line 2: '16' is no at: a number or IN.OUT, at most 15"));
  EXPECT_THAT(why("fp64,1,2,cold"), HasSubstr("points.csv, line 2: 'fp64' is no type"));
  EXPECT_THAT(why("fp32,1,2,warm"), HasSubstr("'warm' is no mode"));
  for (const char* bad : {"fp32,0,2,cold", "fp32,1,,cold", "fp32,-1,2,cold", "fp32,1,2x,cold", "fp32,1,2"})
    EXPECT_THAT(why(bad), HasSubstr("line 2")) << bad;
  EXPECT_THAT(why(""), HasSubstr("no point"));
  EXPECT_THROW(of("N,C\n1,2\n"), std::runtime_error);
}

TEST(BenchSweep, SaysWhatIsPossible) {
  EXPECT_THAT(refused("K=3"), AllOf(HasSubstr("\"K\""), HasSubstr("N, C, MiB, at, gap, block, mode, flush, dtype")));
  EXPECT_THAT(refused(""), HasSubstr("no such axis"));
  EXPECT_THAT(refused("C=1,"), HasSubstr("no such axis"));
  EXPECT_THAT(refused("C"), HasSubstr("C: needs a value"));
  EXPECT_THAT(refused("C="), HasSubstr("C: needs a value"));
  EXPECT_THAT(refused("C=1,C=2"), HasSubstr("C: named twice"));
  EXPECT_THAT(refused("C=8:4"), HasSubstr("C=8:4: an empty range"));
  EXPECT_THAT(refused("C=0"), HasSubstr("C=0: at least 1"));
  EXPECT_THAT(refused("C=-5"), HasSubstr("at least 1"));
  EXPECT_THAT(refused("C=1:9:+0"), HasSubstr("at least 1"));
  EXPECT_THAT(refused("C=1:9:x1"), HasSubstr("a factor is at least 2"));
  EXPECT_THAT(refused("C=1:9:2"), HasSubstr("a:b:+step or a:b:xfactor"));
  EXPECT_THAT(refused("C=1:9:"), HasSubstr("a:b:+step or a:b:xfactor"));
  EXPECT_THAT(refused("C=1:9:+1:2"), HasSubstr("a:b:+step or a:b:xfactor"));
  for (const char* text : {"C=many", "C=1k", "C=1KK", "C=1|", "C=K", "C=1.5", "C=0x10", "C=:", "C= 1"})
    EXPECT_THAT(refused(text), HasSubstr("no whole number; there are 1000, 64K, 1M")) << text;
  EXPECT_THAT(refused("C=9223372036854775808"), HasSubstr("64 bits"));
  EXPECT_THAT(refused("C=9007199254740992K"), HasSubstr("64 bits"));
  EXPECT_THAT(refused("N=1024M,C=1024M"), AllOf(HasSubstr("N=1073741824,C=1073741824"), HasSubstr("64 bits")));
  EXPECT_THAT(refused("MiB=9223372036854775807"), HasSubstr("64 bits"));
  EXPECT_THAT(refused("N=1,MiB=1"), HasSubstr("exclude each other"));
  EXPECT_THAT(refused("block=33"), AllOf(HasSubstr("block=33"), HasSubstr("32, 64, 128")));
  EXPECT_THAT(refused("mode=warm"), AllOf(HasSubstr("mode=warm"), HasSubstr("cold, hot, graph, graph-hot")));
  EXPECT_THAT(refused("flush=off"), HasSubstr("memset, read, none"));
  EXPECT_THAT(refused("flush=read|none"), HasSubstr("the whole run's"));
  EXPECT_THAT(refused("dtype=fp8"), HasSubstr("there are fp32"));
  EXPECT_THAT(refused("C=1:9223372036854775807"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(refused("C=1:5001,mode=hot|cold"), HasSubstr("10002 points: at most 10000"));
  EXPECT_EQ(parse_sweep("C=1:5000,mode=hot|cold", kGpu).points.size(), 10000u);
  EXPECT_THAT(refused("mode=graph", kCpu), HasSubstr("mode: is a GPU's"));
  EXPECT_THAT(refused("flush=read", kCpu), HasSubstr("flush: is a GPU's"));
}

TEST(BenchSweep, AFileKeepsItsShape) {
  const SweepOn file{false, {3, 5, true}, {32, 64}};
  EXPECT_EQ(parse_sweep("mode=hot,block=64", file).points, (std::vector<Point>{{{3, 5, true}, Mode::hot, {64}}}));
  for (const char* axis : {"N", "C", "MiB", "at", "gap"})
    EXPECT_THAT(refused(std::string(axis) + "=4", file), AllOf(HasSubstr(axis), HasSubstr("block, mode, flush")));
}

// Whatever the text: a UsageError, or points that can be measured.
TEST(BenchSweep, AnyTextIsAPlanOrAnError) {
  const std::vector<std::string> words = {
      "N",  "C",   "MiB", "block", "mode",  "flush", "dtype", "=", "=",    "=",    ",",    "|",
      ":",  "x",   "+",   "K",     "M",     "-",     "1",     "2", "32",   "64",   "1024", "0",
      "at", "gap", ".",   "cold",  "graph", "read",  "fp32",  " ", "\xff", "C=1:", "N=2",  "9223372036854775807"};
  int plans = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    std::string text;
    const auto length = random_bits(i, 0) % 12;
    for (std::uint64_t j = 1; j <= length; ++j) text += words[random_bits(i, j) % words.size()];
    const SweepOn& on = i % 2 ? kCpu : kGpu;
    try {
      const Sweep sweep = parse_sweep(text, on);
      ++plans;
      ASSERT_FALSE(sweep.points.empty()) << text;
      ASSERT_LE(sweep.points.size(), 10000u) << text;
      ASSERT_EQ(std::set(sweep.points.begin(), sweep.points.end()).size(), sweep.points.size()) << text;
      for (const Point& p : sweep.points) {
        ASSERT_GE(p.shape.rows, 1) << text;
        ASSERT_GE(p.shape.cols, 1) << text;
        ASSERT_LE(p.shape.rows, INT64_MAX / 8 / p.shape.in().rows.stride) << text;
        ASSERT_LE(p.shape.at.out, 15) << text;
      }
    } catch (const UsageError& e) {
      ASSERT_THAT(e.what(), testing::StartsWith("--sweep: ")) << text;
    }
  }
  EXPECT_GT(plans, 20) << "these words make too few plans to show anything";
}

// --- progress

TEST(BenchProgress, NamesAndTimesAreShort) {
  EXPECT_EQ(short_name("softmax/V6/fp32/ieee/cold/N:8192/C:50257/block:64/manual_time"), "V6 8192 x 50257 block 64");
  EXPECT_EQ(short_name("softmax/copy/fp32/ieee/graph-hot/N:1/C:32000/manual_time"), "copy graph-hot 1 x 32000");
  EXPECT_EQ(short_name("softmax/V6/fp32/ieee/cold/at:1.2/N:8/C:9/block:64/manual_time"), "V6 at 1.2 8 x 9 block 64");
  EXPECT_EQ(short_name("reduce/shuffle/fp32/ieee/hot/block:256/manual_time"), "reduce shuffle hot block 256");
  EXPECT_EQ(progress_text(12, 48, "V6 block 64", 13.2), "[12/48] V6 block 64, 14 s left");
  EXPECT_EQ(progress_text(1, 48, "V6", {}), "[1/48] V6");
  EXPECT_EQ(progress_text(1, 2, "V6", 100), "[1/2] V6, 2 min left");
  EXPECT_EQ(progress_text(1, 2, "V6", 7200), "[1/2] V6, 2 h left");
}

TEST(BenchProgress, DrawsALineAndTakesItBack) {
  const std::string name = "softmax/V6/fp32/ieee/cold/N:8/C:9/block:32/manual_time", line = "[1/3] V6 8 x 9 block 32";
  double now = 0;
  std::ostringstream out;
  const auto drawn = [&] {
    const std::string text = out.str();
    out.str("");
    return text;
  };
  Progress progress(
      3, [&] { return now; }, &out);
  progress.start();
  EXPECT_EQ(drawn(), "\rmeasuring the roofs\x1b[K");
  progress.begin(name, 1);
  EXPECT_EQ(drawn(), "\r" + line + "\x1b[K");
  progress.tick();
  EXPECT_EQ(drawn(), "") << "too often";
  now = 4;
  progress.end();
  progress.clear();
  progress.clear();
  EXPECT_EQ(drawn(), "\r\x1b[K");
  progress.tick();
  EXPECT_EQ(drawn(), "") << "into the table";
  progress.begin(name, 1);
  EXPECT_EQ(drawn(), "\r[2/3] V6 8 x 9 block 32, 8 s left\x1b[K");
  now = 7;
  progress.tick();
  EXPECT_EQ(drawn(), "\r[2/3] V6 8 x 9 block 32, 5 s left\x1b[K");
  now = 20;  // longer than thought: what is left is the last one, and the guess at that is not yet another
  progress.tick();
  EXPECT_EQ(drawn(), "\r[2/3] V6 8 x 9 block 32, 4 s left\x1b[K");

  Progress narrow(
      3, [&] { return now; }, &out, 8);
  narrow.begin(name, 1);
  EXPECT_EQ(drawn(), "\r[1/3] V\x1b[K");
  Progress silent(
      3, [&] { return now; }, nullptr);
  silent.begin(name, 1);
  silent.tick();
  silent.end();
  silent.clear();
  EXPECT_EQ(silent.done(), 1);
}

TEST_F(BenchRun, ProgressCountsWhatTheLibraryRuns) {
  for (const char* min_time : {"--benchmark_min_time=0", "--benchmark_min_time=0.2"}) {
    flag("--benchmark_repetitions=3");
    flag(min_time);
    Progress progress(
        3 * 2, [&] { return fake_.clock; }, nullptr);
    prepare_ = [&](Session& session) { session.progress = &progress; };
    run("/V6/");
    EXPECT_EQ(progress.done(), 6) << min_time;
  }
}

TEST_F(BenchRun, FilterIsTheLibrarys) {
  points_ = {{{4, 50}}, {{4, 20}, Mode::hot}};
  std::vector<std::string> names;
  for (const auto& r : run()) names.push_back(r.benchmark_name());
  ASSERT_EQ(names.size(), 10u);
  std::vector<std::string> ours;
  {
    Session session(fake_, input_);
    for (const auto& c : register_cases(session, points_, kernels_).cases) ours.push_back(c->name);
  }
  EXPECT_EQ(ours, names);
  Capture capture;
  for (const char* filter : {".", "all", "V6", "-V6", "/V1/|copy", "-/V1/|copy", "block:(32|64)/", "C:20.*64", "none"})
    EXPECT_EQ(std::size_t(std::ranges::count_if(ours, name_filter(filter))), run(capture, filter)) << filter;
  for (const char* wrong : {"(", "V{61844674407}", "V{2,99999}"}) EXPECT_THROW(name_filter(wrong), UsageError) << wrong;
  EXPECT_FALSE(name_filter("(((.*)*)*)*!")(ours[0])) << "and takes no time exponential in its length";
}

// --- interruption

TEST(BenchInterrupt, RemembersTheFirstSignalAndEndsOnTheSecond) {
  ASSERT_EQ(interrupted(), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);  // started from a script they may be ignored
  {
    const Signals signals;
    EXPECT_NO_THROW(stop_if_interrupted());
    std::raise(SIGTERM);
    EXPECT_EQ(interrupted(), SIGTERM);
    EXPECT_THROW(stop_if_interrupted(), Interrupted);
    EXPECT_EXIT(std::raise(SIGINT), testing::KilledBySignal(SIGINT), "");
  }
  EXPECT_EQ(interrupted(), 0);
  EXPECT_EXIT(std::raise(SIGTERM), testing::KilledBySignal(SIGTERM), "") << "handlers are as before";
  std::signal(SIGINT, SIG_IGN);
  {
    const Signals signals;
    std::raise(SIGINT);
    EXPECT_EQ(interrupted(), 0) << "nohup and background jobs ignore it";
  }
  std::signal(SIGINT, SIG_DFL);
}

class BenchInterrupted : public BenchRun {
 protected:
  struct Default {
    Default() { std::signal(SIGINT, SIG_DFL); }
  } default_;
  Signals signals_;
  Progress progress_{100, [] { return 0.0; }, nullptr};
  std::string path_ = testing::TempDir() + "bench_cli_" + std::to_string(::getpid()) + ".f32";

  // As main sets a session up, with Ctrl-C in the first batch after so many repetitions.
  void interrupt_after(int done) {
    prepare_ = [=, this](Session& session) {
      session.samples = std::make_unique<SampleFile>(path_);
      session.progress = &progress_;
      session.policy.between = [=, this] {
        if (progress_.done() == done) std::raise(SIGINT);
        stop_if_interrupted();
      };
    };
  }
  nlohmann::json rows() {
    std::ostringstream out;
    Relay relay(std::make_unique<FiniteJsonReporter>(), nullptr);
    relay.SetOutputStream(&out);
    run(relay);
    EXPECT_TRUE(relay.good());
    return nlohmann::json::parse(out.str())["benchmarks"];  // throws if it is no JSON
  }
  ~BenchInterrupted() override { std::filesystem::remove(path_); }
};

TEST_F(BenchInterrupted, KeepsFinishedRowsAndTheirSamplesOnly) {
  points_ = {{{4, 50}}, {{4, 20}}};
  interrupt_after(2);
  const auto kept = rows();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1]["name"], "softmax/V1/fp32/ieee/cold/N:4/C:50/block:32/manual_time");
  double samples = 0;
  for (const auto& row : kept) {
    EXPECT_FALSE(row.contains("error_occurred"));
    EXPECT_EQ(row["samples_at"], samples);
    samples += 2 * double(row["n"]);
  }
  EXPECT_EQ(double(std::filesystem::file_size(path_)), 4 * samples);
  EXPECT_EQ(progress_.done(), 2);
  EXPECT_EQ(fake_.allocations, 2) << "the second shape was not wanted any more";
  EXPECT_EQ(failures_, 0);
}

TEST_F(BenchInterrupted, KeepsNothingIfNothingIsDone) {
  interrupt_after(0);
  EXPECT_THAT(rows(), IsEmpty());
  EXPECT_EQ(progress_.done(), 0);
}

TEST_F(BenchInterrupted, InTheMiddleOfRepetitions) {
  flag("--benchmark_repetitions=3");
  interrupt_after(5);  // in the last repetition of V1 at block 32
  std::set<std::string> names;
  int single = 0;
  for (const auto& row : rows()) {
    names.insert(row["name"]);
    single += row["run_type"] == "iteration";
    EXPECT_FALSE(row.contains("error_occurred")) << row;
  }
  EXPECT_EQ(single, 3 + 2);
  EXPECT_EQ(names.size(), 2 * 5u) << "copy and V1, each with four aggregates";
  EXPECT_EQ(progress_.done(), 5);
}

TEST_F(BenchInterrupted, TheTableShowsAFirstRepetitionAlone) {
  flag("--benchmark_repetitions=3");
  interrupt_after(4);
  std::ostringstream out;
  Relay relay(std::make_unique<TableReporter>("Fake 9000"), nullptr);
  relay.SetOutputStream(&out);
  run(relay);
  EXPECT_THAT(out.str(), AllOf(testing::ContainsRegex("\n  copy +- +500.0"), testing::ContainsRegex("\n  V1 +32 +1000"),
                               Not(testing::ContainsRegex("V1 +64")), Not(HasSubstr("ERROR"))));
}

// --- reporters

TEST_F(BenchRun, ARepetitionThatFailsDoesNotStopTheProgram) {
  flag("--benchmark_repetitions=3");
  last_launch = 60;  // within the second repetition
  const auto runs = run("/V6/.*block:32/");
  EXPECT_EQ(failures_, 2);
  EXPECT_EQ(std::ranges::count(runs, "", error_of<Capture::Run>), 1);
}

TEST_F(BenchRun, TableNamesWhatIsWrongWithATime) {
  fake_.script = [](int i) { return i % 2 ? 1e-4 : 3e-4; };  // faster than the copy's 5e-4
  fake_.throttle_reasons = 4;
  const std::string text = table("/V6/.*block:32/");
  EXPECT_THAT(text, testing::ContainsRegex("\\+-50.0% +suspect throttled noisy  right too"));
  EXPECT_THAT(text, HasSubstr(" us   us/token     GB/s  %copy  %peak     x V1  max ulp  spread   idea"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.substr(0, line.find("right too")).size(), 120u) << line;
}

TEST_F(BenchRun, AStudyHasATableOfItsOwn) {
  benchmark::ClearRegisteredBenchmarks();
  benchmark::RegisterBenchmark("reduce/shuffle/fp32/ieee/hot",
                               [](benchmark::State& st) {
                                 while (st.KeepRunningBatch(st.max_iterations)) st.SetIterationTime(1e-6);
                                 st.counters["us"] = 2.5;
                                 st.counters["ns/op"] = 12.5;
                               })
      ->ArgNames({"chains", "block"})
      ->Args({4, 256})
      ->UseManualTime();
  std::ostringstream out;
  TableReporter table("Fake 9000");
  table.SetOutputStream(&out);
  benchmark::RunSpecifiedBenchmarks(&table, ".");
  EXPECT_THAT(out.str(), AllOf(testing::StartsWith("reduce, fp32, ieee, hot, Fake 9000\n  variant "),
                               testing::ContainsRegex("\n  shuffle +chains 4 block 256 +2.500 +- +- +12.50 +- +-")));
}

TEST_F(BenchRun, CsvTakesRowsOfDifferentCounters) {
  std::ostringstream out;
  Relay relay(std::make_unique<WholeCsvReporter>(), nullptr);
  relay.SetOutputStream(&out);
  relay.SetErrorStream(&out);
  run(relay);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("\"version\""), HasSubstr("softmax/copy/"), HasSubstr("softmax/V6/")));
}

TEST(BenchRoofs, AreOneLine) {
  EXPECT_EQ(roof_line({}, 1e12), "");
  EXPECT_EQ(
      roof_line({4.2e12, 4e12, 4.5e12, 2.75e-6, "kernel 0"}, 4.8e12),
      "roofs, cold: copy 4200 GB/s (87.5% of the memory's peak), read 4000, write 4500; an empty launch 2.750 us\n");
}

// --- profiling

TEST_F(BenchRun, AProfilerSeesOneLaunchACase) {
  prepare_ = [](Session& session) { session.profile = true; };
  const std::string text = table("copy|/V6/.*block:32/");
  EXPECT_THAT(fake_.profiles, ElementsAre("softmax/copy/fp32/ieee/cold/N:100/C:300/manual_time",
                                          "softmax/V6/fp32/ieee/cold/N:100/C:300/block:32/manual_time"));
  EXPECT_EQ(launches, 2) << "to verify, and for the profiler";
  EXPECT_EQ(fake_.timings.size(), 2u) << "a flush for each";
  EXPECT_THAT(text, HasSubstr("  V6         32 profiled  right too\n"));
  launches = 0;
  sabotage = [](const Problem& p) { row(p, 0)[0] = 2; };
  run("/V6/.*block:32/");
  EXPECT_EQ(launches, 1) << "a wrong kernel is not worth a profile";
  EXPECT_EQ(fake_.profiles.size(), 2u);
}

}  // namespace
}  // namespace softmax::bench
