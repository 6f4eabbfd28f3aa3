#pragma once
// Our own command-line flags; all others are Google Benchmark's.

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/suites.hpp"

namespace softmax::bench {

struct Options {
  std::string device;  // "gpu", "cpu", or empty: the GPU if there is one; "cpu" with --explain
  Suite suite = Suite::ladder;
  std::string sweep;   // "C=1024:65536:x2,block=32|128", or empty
  std::string points;  // a CSV file of shapes, or empty
  std::string input;   // a .npy file, or empty: noise
  bool explain = false;
  bool metrics = false;  // hardware counters too
  bool profile = false;  // one launch a case, for a profiler
  bool help = false;
};

// A command line that cannot be obeyed: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Takes our flags, `--flag=value` or `--flag value`, out of the arguments and leaves the rest, in order. Throws
// UsageError for a value that is missing or not one of those possible.
Options take_options(std::vector<std::string>& arguments);

// Keys that --benchmark_context gives, in either place.
std::vector<std::string> context_keys(const std::vector<std::string>& arguments);

// Which names Google Benchmark chooses by this --benchmark_filter. Throws UsageError if it is no regular expression.
std::function<bool(const std::string&)> name_filter(const std::string& filter);

// The last `--flag=value` among the arguments, else the environment's FLAG, which Google Benchmark reads too, else
// empty.
std::string flag_value(const std::vector<std::string>& arguments, const std::string& flag);

// Throws UsageError where a file cannot be written, which would otherwise show only after minutes. Leaves all as it is.
void refuse_unwritable(const std::string& path);

extern const char* const kHelp;  // one screen

}  // namespace softmax::bench
