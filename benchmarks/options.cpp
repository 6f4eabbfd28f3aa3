#include "benchmarks/options.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace softmax::bench {
namespace {

Suite suite_of(const std::string& name) {
  if (name == "ladder") return Suite::ladder;
  for (const Suite suite : {Suite::shapes, Suite::atlas, Suite::few_rows, Suite::studies})
    if (name == bench::name(suite)) return suite;
  throw UsageError("--suite=" + name + ": there are ladder, shapes, atlas, few-rows and studies");
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
    "Measures this program's softmax kernels: each is checked against long double, timed with a cold cache, and "
    "checked again.\n"
    "\n"
    "usage: bench [flags]\n"
    "  --device=gpu|cpu     where to run; default: the GPU if there is one. Times of the CPU device are its "
    "simulator's\n"
    "  --suite=ladder       the article's shape, 8192 x 50257 fp32, and the file of attention scores that comes with "
    "the\n"
    "                       project (the default); on the CPU device small stand-ins\n"
    "  --suite=shapes       the same, and C = 1024, 4096, 32000, 128256\n"
    "  --input=FILE.npy     the rows of a file instead of noise: 2-D, C order, float32; its shape is the only one\n"
    "  --explain            on the CPU device: what each source line asks of memory, and which line to fix; takes\n"
    "                       --benchmark_filter=/V1/ to explain only V1\n"
    "  --help               this text\n"
    "\n"
    "Google Benchmark's flags work too, among them\n"
    "  --benchmark_filter=V6              only what matches this regular expression; /V6/ is exact\n"
    "  --benchmark_list_tests=true        names only\n"
    "  --benchmark_repetitions=9          measure each so often; the table shows medians\n"
    "  --benchmark_enable_random_interleaving=true\n"
    "  --benchmark_min_time=0.5           more samples than the stop rule takes (a median known to 0.5 %, or 1 s)\n"
    "  --benchmark_format=json|csv        instead of the table, on standard output\n"
    "  --benchmark_out=FILE.json          a result file beside it\n"
    "\n"
    "In the table, x V1 is how many times faster than V1 at block 32 of the same shape in the same run, spread half "
    "the\n"
    "distance of the quartiles; on the CPU device it counts what warps ask for, a token (a row), bytes also as x the "
    "least.\n"
    "Exit status: 0; 1 if nothing matched or a kernel was wrong; 2 for a command line that cannot be obeyed.\n";

Options take_options(std::vector<std::string>& arguments) {
  Options options;
  std::string suite;
  for (std::size_t i = 0; i < arguments.size();) {
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      options.help = true;
      arguments.erase(arguments.begin() + std::ptrdiff_t(i));
    } else if (arguments[i] == "--explain") {
      options.explain = true;
      arguments.erase(arguments.begin() + std::ptrdiff_t(i));
    } else if (!take(arguments, i, "--device", options.device) && !take(arguments, i, "--suite", suite) &&
               !take(arguments, i, "--input", options.input)) {
      ++i;
    }
  }
  if (!suite.empty()) options.suite = suite_of(suite);
  if (!options.device.empty() && options.device != "gpu" && options.device != "cpu")
    throw UsageError("--device=" + options.device + ": there are gpu and cpu");
  if (!options.input.empty() && !suite.empty())
    throw UsageError("--suite and --input exclude each other: a file's shape is the only one");
  if (options.explain && options.device == "gpu")
    throw UsageError(
        "--explain and --device=gpu exclude each other: only the CPU device counts by source line; on a GPU "
        "that is Nsight Compute's work");
  if (options.explain) options.device = "cpu";
  return options;
}

std::string flag_value(const std::vector<std::string>& arguments, const std::string& flag) {
  std::string variable = flag, value;
  std::transform(variable.begin(), variable.end(), variable.begin(), [](unsigned char c) { return std::toupper(c); });
  if (const char* set = std::getenv(variable.c_str())) value = set;
  for (const std::string& argument : arguments)
    if (argument.starts_with("--" + flag + "=")) value = argument.substr(flag.size() + 3);
  return value;
}

}  // namespace softmax::bench
