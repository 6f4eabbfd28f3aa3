// bench: measures the kernels of one machine. --help says how.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/cases.hpp"
#include "benchmarks/context.hpp"
#include "benchmarks/npy.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/reporter.hpp"
#include "benchmarks/session.hpp"
#include "benchmarks/studies/cases.hpp"
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
  if (own && options.suite != Suite::ladder) return input;
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

bool is_json(const std::vector<std::string>& arguments) {
  const std::string format = flag_value(arguments, "benchmark_out_format");
  return format.empty() || format == "json";
}

// Beside a JSON file of measured times; empty if there is none.
std::string sample_file(const std::vector<std::string>& arguments, const Machine& machine) {
  const std::string out = flag_value(arguments, "benchmark_out");
  if (out.empty() || !is_json(arguments) || machine.simulated()) return {};
  if (const auto folder = std::filesystem::path(out).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder);
  return SampleFile::beside(out);
}

// Returns how many benchmarks matched the filter.
std::size_t run(const std::vector<std::string>& arguments, const Machine& machine) {
  const std::string format = flag_value(arguments, "benchmark_format");
  std::unique_ptr<benchmark::BenchmarkReporter> display, file;
  if (format.empty() || format == "console") display = std::make_unique<TableReporter>(machine.name());
  if (format == "json") display = std::make_unique<FiniteJsonReporter>();
  const std::string out = flag_value(arguments, "benchmark_out");
  if (const auto folder = std::filesystem::path(out).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder);
  if (!out.empty() && is_json(arguments)) file = std::make_unique<FiniteJsonReporter>();
  return benchmark::RunSpecifiedBenchmarks(display.get(), file.get());  // null: the library's own
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
  if (machine.simulated())
    note("on the CPU device" + (why_not.empty() ? "" : " (" + why_not + ")") +
         ": its times are the simulator's and say nothing about a GPU");
  Session session(machine, load(options));
  const Shape file = session.input().file_shape();
  const bool only_file = !options.input.empty();
  const std::vector<Point> wanted =
      only_file ? std::vector{Point{file}} : points(options.suite, machine.simulated(), file);
  const std::string samples = sample_file(arguments, machine);
  if (!samples.empty()) session.samples = std::make_unique<SampleFile>(samples);
  if (const std::string list = flag_value(arguments, "benchmark_list_tests"); list.empty() || list == "false")
    for (const auto& [key, value] : context(session, only_file ? "input" : name(options.suite), command_line,
                                            std::filesystem::path(samples).filename().string()))
      benchmark::AddCustomContext(key, value);

  Registered registered = register_cases(session, wanted, kernels());
  if (options.suite == Suite::studies && !only_file) studies::register_studies(session, registered);
  for (const std::string& line : registered.left_out) note("left out: " + line);
  for (const auto& [shape, mode, blocks] : wanted)
    if (machine.simulated() && rows_to_trace(shape) < shape.rows)
      note(std::to_string(shape.rows) + " x " + std::to_string(shape.cols) + ": counts are of the first " +
           std::to_string(rows_to_trace(shape)) + " rows");
  const std::size_t matched = run(arguments, machine);
  benchmark::Shutdown();
  if (const std::string format = flag_value(arguments, "benchmark_format"); options.explain && matched > 0)
    (format.empty() || format == "console" ? std::cout : std::cerr) << explain(session.traces());
  if (matched == 0)
    note("nothing matches --benchmark_filter=" + benchmark::GetBenchmarkFilter() + "; " +
         std::to_string(registered.cases.size()) + " benchmarks exist, see --benchmark_list_tests=true");
  if (session.samples && !session.samples->good()) note(samples + " could not be written");
  if (session.failures() > 0) note(std::to_string(session.failures()) + " runs ended in an error");
  std::cout.flush();
  if (!std::cout) note("standard output could not be written");
  return matched == 0 || session.failures() > 0 || !std::cout ? 1 : 0;
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
