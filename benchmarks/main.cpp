// bench: measures the kernels of one machine. --help says how.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/baselines/cudnn.hpp"
#include "benchmarks/cases.hpp"
#include "benchmarks/context.hpp"
#include "benchmarks/interrupt.hpp"
#include "benchmarks/npy.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/progress.hpp"
#include "benchmarks/reporter.hpp"
#include "benchmarks/session.hpp"
#include "benchmarks/studies/cases.hpp"
#include "benchmarks/sweep.hpp"
#include "benchmarks/trace.hpp"

namespace softmax::bench {
namespace {

void note(const std::string& line) { std::cerr << "bench: " << line << std::endl; }

// The machine that --device names, or the first one that can be used. `why_not` collects what kept the others out.
Machine& choose(const std::string& id, std::string& why_not) {
  std::string possible;
  Machine* chosen = nullptr;
  for (Machine* machine : machines()) {
    const std::string reason = machine->unavailable();
    if (reason.empty()) possible += (possible.empty() ? "" : ", ") + std::string(machine->id());
    if (!id.empty() && machine->id() != id) continue;
    if (!reason.empty())
      why_not = reason;
    else if (!chosen)
      chosen = machine;
  }
  if (chosen) return *chosen;
  if (why_not.empty()) why_not = "this program was built without it";
  throw UsageError((id.empty() ? "no device" : "--device=" + id) + ": " + why_not +
                   "; possible here: " + (possible.empty() ? "none" : possible));
}

// The file of --input, or the one that comes with the project and ends the ladder: without that, only its rows are left
// out.
Input load(const Options& options) {
  Input input;
  const bool own = options.input.empty();
  if (own && (options.suite != Suite::ladder || !options.sweep.empty())) return input;
  const std::string from = own ? SOFTMAX_SAMPLE : options.input;
  try {
    input.file = std::make_shared<const Matrix>(read_npy(from));
    input.file_name = std::filesystem::path(from).filename().string();
  } catch (const std::runtime_error& e) {
    if (!own) throw UsageError(std::string("--input: ") + e.what());
    note(std::string("left out: ") + e.what());
  }
  return input;
}

// What the library would take in silence and then do nothing, or end the process with success.
void refuse_odd_values(const std::vector<std::string>& arguments) {
  for (const std::string flag : {"benchmark_format", "benchmark_out_format"})
    if (const std::string value = flag_value(arguments, flag);
        !value.empty() && value != "console" && value != "json" && value != "csv")
      throw UsageError("--" + flag + "=" + value + ": there are console, json and csv");
  const std::string value = flag_value(arguments, "benchmark_repetitions");
  const bool zero = !value.empty() && value.find_first_not_of('0') == std::string::npos;
  if (zero || value.starts_with("-")) throw UsageError("--benchmark_repetitions=" + value + ": at least 1");
  // "0.5", "0.5s" or, of a newer library, "100x"; it would measure a kernel for ever without a word.
  const std::string time = flag_value(arguments, "benchmark_min_time");
  const double seconds = std::strtod(time.c_str(), nullptr);
  if (!(seconds >= 0 && seconds <= 3600) && !time.ends_with('x'))
    throw UsageError("--benchmark_min_time=" + time + ": 0 to 3600 seconds");
}

// Lets the library parse its flags. The stop rule is ours (measure.hpp): a minimal time of 0 makes the library take
// what it gets at once. It comes first, so that a user's own value wins.
template <class State = benchmark::State>
void initialize(const std::string& program, const std::vector<std::string>& arguments) {
  constexpr bool since_1_8 = requires(State & st) { st.SkipWithMessage(""); };
  static std::vector<std::string> all;  // the library keeps argv[0]
  all = {program, since_1_8 ? "--benchmark_min_time=0s" : "--benchmark_min_time=0"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : all) argv.push_back(argument.data());
  int argc = int(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc < 2) return;
  const std::string first = argv[1];
  throw UsageError(first.starts_with("--benchmark_")
                       ? first + ": Google Benchmark does not take this flag or value; a flag is written --flag=value"
                       : "unknown flag " + first + "; see --help");
}

// "console", "json" or "csv", of standard output or of the result file.
std::string format_of(const std::vector<std::string>& arguments, bool of_file) {
  const std::string format = flag_value(arguments, of_file ? "benchmark_out_format" : "benchmark_format");
  return !format.empty() ? format : of_file ? "json" : "console";
}

bool lists(const std::vector<std::string>& arguments) {
  const std::string value = flag_value(arguments, "benchmark_list_tests");
  const bool no = value.empty() || value == "false" || value == "no" || value == "off" || value == "0";
  return std::ranges::count(arguments, "--benchmark_list_tests") > 0 || !no;
}

// The library would find out only after all is measured. Makes folders, leaves no file.
void refuse_unwritable(const std::string& out) {
  namespace fs = std::filesystem;
  if (out.empty()) return;
  const auto refuse = [&](const std::string& why) { throw UsageError("--benchmark_out=" + out + ": " + why); };
  const fs::path folder = fs::path(out).has_parent_path() ? fs::path(out).parent_path() : ".";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(error.message());
  if (fs::is_directory(out, error) || !fs::path(out).has_filename()) refuse("a folder");
  const bool there = fs::exists(out, error);
  if (!std::ofstream(out, std::ios::app)) refuse(std::strerror(errno));
  if (!there) fs::remove(out, error);
}

// Beside a JSON file of measured times; empty if there is none.
std::string sample_file(const std::vector<std::string>& arguments, const Machine& machine) {
  const std::string out = flag_value(arguments, "benchmark_out");
  return out.empty() || format_of(arguments, true) != "json" || machine.simulated() ? "" : SampleFile::beside(out);
}

// The program's keys are its own: the library keeps the first value it is given, and the user's come first.
void add_context(std::vector<std::pair<std::string, std::string>> ours, const std::vector<std::string>& arguments) {
  constexpr std::string_view kLibraryKeys[] = {
      "date",   "host_name", "executable",         "num_cpus",        "mhz_per_cpu",        "cpu_scaling_enabled",
      "caches", "load_avg",  "library_build_type", "library_version", "json_schema_version"};
  for (const std::string& key : context_keys(arguments))
    if (std::ranges::count(kLibraryKeys, key) > 0 ||
        std::ranges::any_of(ours, [&](const auto& pair) { return pair.first == key; }))
      throw UsageError("--benchmark_context=" + key + "=...: that key is the program's own");
  for (const auto& [key, value] : ours) benchmark::AddCustomContext(key, value);
}

std::unique_ptr<benchmark::BenchmarkReporter> reporter(const std::string& format, bool of_file,
                                                       const Machine& machine) {
  if (format == "json") return std::make_unique<FiniteJsonReporter>();
  if (format == "csv") return std::make_unique<WholeCsvReporter>();
  if (of_file) return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
  return std::make_unique<TableReporter>(machine.name());
}

// Returns false if the result file could not be written.
bool run(const std::vector<std::string>& arguments, const Machine& machine, Progress* progress) {
  Relay display(reporter(format_of(arguments, false), false, machine), progress);
  if (flag_value(arguments, "benchmark_out").empty()) {
    benchmark::RunSpecifiedBenchmarks(&display);
    return true;
  }
  Relay file(reporter(format_of(arguments, true), true, machine), nullptr);
  benchmark::RunSpecifiedBenchmarks(&display, &file);
  return file.good();
}

// What a run measures: of a file, of a sweep, or a suite.
struct Wanted {
  std::string suite;  // as in the context
  std::vector<Point> points;
  Flush flush = Flush::memset;
};
Wanted wanted(const Options& options, const Machine& machine, Shape file) {
  if (!options.points.empty()) {
    std::vector<Point> all = read_points(options.points);
    const auto large = [](const Point& point) { return point.shape.elements() > std::int64_t{1} << 20; };
    if (const auto out = machine.simulated() ? std::erase_if(all, large) : 0; out > 0)
      note("left out: " + std::to_string(out) + " points of more than a million elements, which are a GPU's");
    if (all.empty()) throw UsageError("--points=" + options.points + ": no point for the CPU device in it");
    return {"points", all};
  }
  const bool only_file = !options.input.empty();
  if (options.sweep.empty() && only_file) return {"input", {{file}}};
  if (options.sweep.empty())
    return {std::string(name(options.suite)), points(options.suite, machine.simulated(), file)};
  std::set<int> blocks;
  for (const Kernel* kernel : kernels())
    if (&kernel->machine() == &machine) blocks.insert(kernel->traits().blocks.begin(), kernel->traits().blocks.end());
  blocks.erase(0);
  const Shape shape = only_file ? file : points(Suite::ladder, machine.simulated()).front().shape;
  Sweep sweep = parse_sweep(options.sweep, {machine.simulated(), shape, {blocks.begin(), blocks.end()}});
  return {"sweep", std::move(sweep.points), sweep.flush};
}

int run_program(const std::string& path, std::vector<std::string> arguments) {
  // A result file names the program, not a folder of this machine.
  const std::string program = std::filesystem::path(path).filename().string();
  std::string command_line = program;
  for (const std::string& argument : arguments) command_line += " " + argument;
  const Options options = take_options(arguments);
  if (options.help) {
    std::cout << kHelp;
    return 0;
  }
  refuse_odd_values(arguments);
  initialize(program, arguments);

  std::string why_not;
  Machine& machine = choose(options.device, why_not);
  if (machine.simulated() && options.profile)
    throw UsageError("--profile: no profiler looks into the CPU device" +
                     (why_not.empty() ? "" : " (" + why_not + ")") + "; --explain says what each source line does");
  if (machine.simulated())
    note("on the CPU device" + (why_not.empty() ? "" : " (" + why_not + ")") +
         ": its times are the simulator's and say nothing about a GPU");
  if (machine.simulated() && options.metrics) note("--metrics: the CPU device counts anyway");
  Session session(machine, load(options));
  const Wanted wanted = bench::wanted(options, machine, session.input().file_shape());
  session.flush = wanted.flush;
  session.profile = options.profile;
  session.metrics = options.metrics && !machine.simulated();
  if (machine.simulated() &&
      (options.suite == Suite::atlas || options.suite == Suite::few_rows || options.suite == Suite::goals))
    note("--suite=" + wanted.suite + ": the CPU device counts at small stand-ins; those shapes are a GPU's");

  std::vector<const Kernel*> measured(kernels().begin(), kernels().end());
  if (!machine.simulated()) {
    const Cudnn& peer = cudnn(machine);
    if (peer.kernel)
      measured.push_back(peer.kernel);
    else
      note("left out: " + peer.why_not);
  }
  Registered registered = register_cases(session, wanted.points, measured);
  if (wanted.suite == name(Suite::studies)) studies::register_studies(session, registered);
  for (const std::string& line : registered.left_out) note("left out: " + line);
  for (const Point& point : wanted.points)
    if (machine.simulated() && rows_to_trace(point.shape) < point.shape.rows)
      note(to_string(point.shape) + ": counts are of the first " + std::to_string(rows_to_trace(point.shape)) +
           " rows");
  const auto matches = name_filter(benchmark::GetBenchmarkFilter());
  const auto count = std::ranges::count_if(registered.cases, [&](const auto& c) { return matches(c->name); });
  if (count == 0) {
    note(registered.cases.empty()
             ? "every benchmark was left out"
             : "nothing matches --benchmark_filter=" + benchmark::GetBenchmarkFilter() + "; " +
                   std::to_string(registered.cases.size()) + " benchmarks exist, see --benchmark_list_tests=true");
    return 1;
  }
  constexpr std::int64_t kMost = 10000;  // hours; and the library's time to list them grows with their square
  if (count > kMost)
    throw UsageError(std::to_string(count) + " benchmarks: at most " + std::to_string(kMost) +
                     " in a run; --benchmark_filter or the sweep's block chooses");
  if (lists(arguments)) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }

  const std::string out = flag_value(arguments, "benchmark_out");
  refuse_unwritable(out);
  const std::string samples = sample_file(arguments, machine);
  const bool table = format_of(arguments, false) == "console";
  const int columns = table || !isatty(STDOUT_FILENO) ? terminal_columns() : 0;
  const std::int64_t repetitions =
      std::max(1L, std::strtol(flag_value(arguments, "benchmark_repetitions").c_str(), nullptr, 10));
  Progress progress(count * repetitions, session.policy.now, columns > 0 ? &std::cerr : nullptr, columns);
  session.progress = &progress;
  session.policy.between = [&] {
    progress.tick();
    stop_if_interrupted();
  };
  const Signals signals;
  bool good = true;
  try {
    if (!machine.simulated() && !options.profile) progress.start();
    if (!options.profile) {
      auto ours = context(session, wanted.suite, command_line, std::filesystem::path(samples).filename().string());
      if (!machine.simulated() && cudnn(machine).kernel) ours.emplace_back("cudnn", cudnn(machine).version);
      if (!options.sweep.empty()) ours.emplace_back("sweep", options.sweep);
      add_context(std::move(ours), arguments);
    }
    if (!samples.empty()) session.samples = std::make_unique<SampleFile>(samples);  // overwrites: not before
    good = run(arguments, machine, &progress);
  } catch (const Interrupted&) {  // before the first case
  }
  benchmark::Shutdown();
  if (options.explain) (table ? std::cout : std::cerr) << explain(session.traces());
  if (table && !options.profile && interrupted() == 0)
    if (const std::string line = roof_line(session.roof(), machine.peak_bandwidth()); !line.empty())
      std::cout << "\n" << line;
  if (!good) note(out + " could not be written");
  if (session.samples && !session.samples->good()) note(samples + " could not be written");
  if (session.failures() > 0) note(std::to_string(session.failures()) + " runs ended in an error");
  std::cout.flush();
  if (!std::cout) note("standard output could not be written");
  if (const int signal = interrupted()) {
    note("interrupted: " + std::to_string(progress.done()) + " of " + std::to_string(progress.total()) + " measured");
    return 128 + signal;
  }
  return session.failures() > 0 || !good || !std::cout ? 1 : 0;
}

}  // namespace
}  // namespace softmax::bench

int main(int argc, char** argv) {
  try {
    return softmax::bench::run_program(argc > 0 ? argv[0] : "bench", {argv + std::min(argc, 1), argv + argc});
  } catch (const softmax::bench::UsageError& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 1;
  }
}
