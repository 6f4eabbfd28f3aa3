#include "benchmarks/options.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace softmax::bench {
namespace {

Suite suite_of(const std::string& name) {
  for (const Suite suite : {Suite::ladder, Suite::shapes, Suite::atlas, Suite::few_rows, Suite::goals, Suite::studies})
    if (name == bench::name(suite)) return suite;
  throw UsageError("--suite=" + name + ": there are ladder, shapes, atlas, few-rows, goals and studies");
}

// If arguments[at] is this flag, takes it and its value away.
bool take(std::vector<std::string>& arguments, std::size_t at, const std::string& flag, std::string& value) {
  const std::string argument = arguments[at];
  const auto here = arguments.begin() + std::ptrdiff_t(at);
  if (argument.starts_with(flag + "=")) {
    value = argument.substr(flag.size() + 1);
    arguments.erase(here);
  } else if (argument == flag) {
    if (here + 1 != arguments.end()) value = *(here + 1);
    arguments.erase(here, here + 1 != arguments.end() ? here + 2 : here + 1);
  } else {
    return false;
  }
  if (value.empty() || value.starts_with("--")) throw UsageError(flag + " needs a value; see --help");
  return true;
}

}  // namespace

const char* const kHelp =
    R"(Measures this program's softmax kernels: each is checked against long double, timed, and checked again.

usage: bench [flags]
  --device=gpu|cpu    where to run; default: the GPU if there is one. Times of the CPU device are its simulator's
  --suite=NAME        ladder: the article's shape and the file of attention scores that comes with the project (default)
                      shapes: five widths | atlas: 1 GiB at 16 widths | few-rows: in graphs | goals: of plans | studies
  --sweep=AXES        axes N, C, MiB (of input, in place of N), block, mode (cold|hot|graph|graph-hot), overlap (0|1),
                      dtype (fp32|fp16|bf16|fp16-fp32|bf16-fp32), plan (threads.vectors.shared.blocks),
                      flush (memset|read|none), at, gap (elements ahead of the first row, between rows: 3, or IN.OUT);
                      values a|b, a:b, a:b:+step, a:b:xfactor, K, M; else as in ladder: "C=1K:64K:x2,block=32,mode=hot"
  --points=FILE.csv   its lines dtype,N,C,mode, at and gap if named; --input=FILE.npy: its rows, 2-D, C order, float32
  --explain           on the CPU device: what each source line asks of memory, and which line to fix
  --metrics           on a GPU: hardware counters too, where the driver lets us; the CPU device counts anyway
  --profile           on a GPU one launch a case, untimed: ncu --profile-from-start off, nsys profile -c cudaProfilerApi

Google Benchmark's flags work too, among them
  --benchmark_filter=V6              what matches this regular expression, -V6 what does not; /V6/ is exactly V6
  --benchmark_list_tests=true        names only
  --benchmark_repetitions=9          measure each so often; the table shows medians
  --benchmark_enable_random_interleaving=true
  --benchmark_min_time=0.5           more samples than the stop rule takes (a median known to 0.5 %, or 1 s)
  --benchmark_format=json|csv        instead of the table, on standard output
  --benchmark_out=FILE.json          a result file beside it; Ctrl-C keeps what is measured

In the table: %peak of the memory's rated bandwidth, x V1 times faster than V1 at block 32 of the same run, spread half
the distance of the quartiles; on the CPU device counts a token (a row). noisy: the median is not known to 0.5 %;
throttled: the clocks were slowed; suspect: faster than a copy.
Exit status: 0; 1: nothing matched, or a kernel was wrong; 2: cannot be obeyed; 130, 143: interrupted, terminated.
)";

Options take_options(std::vector<std::string>& arguments) {
  Options options;
  std::string suite;
  for (std::size_t i = 0; i < arguments.size();) {
    bool* const flag = arguments[i] == "--help" || arguments[i] == "-h" ? &options.help
                       : arguments[i] == "--explain"                    ? &options.explain
                       : arguments[i] == "--metrics"                    ? &options.metrics
                       : arguments[i] == "--profile"                    ? &options.profile
                                                                        : nullptr;
    if (flag) {
      *flag = true;
      arguments.erase(arguments.begin() + std::ptrdiff_t(i));
    } else if (!take(arguments, i, "--device", options.device) && !take(arguments, i, "--suite", suite) &&
               !take(arguments, i, "--sweep", options.sweep) && !take(arguments, i, "--points", options.points) &&
               !take(arguments, i, "--input", options.input)) {
      ++i;
    }
  }
  if (!suite.empty()) options.suite = suite_of(suite);
  if (!options.device.empty() && options.device != "gpu" && options.device != "cpu")
    throw UsageError("--device=" + options.device + ": there are gpu and cpu");
  if (!options.input.empty() && !suite.empty())
    throw UsageError("--suite and --input exclude each other: a file's shape is the only one");
  if (!options.sweep.empty() && !suite.empty())
    throw UsageError("--suite and --sweep exclude each other: both say which shapes");
  if (!options.points.empty() && (!suite.empty() || !options.sweep.empty() || !options.input.empty()))
    throw UsageError("--points excludes --suite, --sweep and --input: all of them say which shapes");
  if (options.explain && options.device == "gpu")
    throw UsageError(
        "--explain and --device=gpu exclude each other: only the CPU device counts by source line; on a GPU "
        "that is Nsight Compute's work");
  if (options.explain) options.device = "cpu";
  if (options.profile)
    for (const std::string other : {"format", "out", "repetitions", "min_time"})
      if (!flag_value(arguments, "benchmark_" + other).empty())
        throw UsageError("--profile and --benchmark_" + other +
                         " exclude each other: a launch that a profiler watches " +
                         "is no measurement, and there is one of each");
  return options;
}

std::vector<std::string> context_keys(const std::vector<std::string>& arguments) {
  std::vector<std::string> given, keys;
  if (const char* set = std::getenv("BENCHMARK_CONTEXT")) given.push_back(set);
  for (const std::string& argument : arguments)
    if (const std::string flag = "--benchmark_context="; argument.starts_with(flag))
      given.push_back(argument.substr(flag.size()));
  for (const std::string& one : given) {
    std::istringstream in(one);
    for (std::string pair; std::getline(in, pair, ',');) keys.push_back(pair.substr(0, pair.find('=')));
  }
  return keys;
}

std::function<bool(const std::string&)> name_filter(const std::string& filter) {
#ifdef __GLIBCXX__  // which else tries every way to match "a**b"
  constexpr auto kSyntax = std::regex::extended | std::regex_constants::__polynomial;
#else
  constexpr auto kSyntax = std::regex::extended;
#endif
  static const std::regex kLong("[{][0-9]*,?[0-9]{5}");  // the library does not look whether an int holds it
  if (std::regex_search(filter, kLong)) throw UsageError("--benchmark_filter=" + filter + ": a count of five digits");
  const bool negative = filter.starts_with("-");
  try {
    const std::regex regex(filter.empty() || filter == "all" ? "." : filter.substr(negative), kSyntax);
    return [=](const std::string& name) { return std::regex_search(name, regex) != negative; };
  } catch (const std::regex_error& e) {
    throw UsageError("--benchmark_filter=" + filter + ": " + e.what());
  }
}

std::string flag_value(const std::vector<std::string>& arguments, const std::string& flag) {
  std::string variable = flag, value;
  std::transform(variable.begin(), variable.end(), variable.begin(), [](unsigned char c) { return std::toupper(c); });
  if (const char* set = std::getenv(variable.c_str())) value = set;
  for (const std::string& argument : arguments)
    if (argument.starts_with("--" + flag + "=")) value = argument.substr(flag.size() + 3);
  return value;
}

void refuse_unwritable(const std::string& path) {
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  if (!std::ofstream(path, std::ios::app)) throw UsageError(path + ": cannot be written");
  if (!there) std::filesystem::remove(path, error);
}

}  // namespace softmax::bench
