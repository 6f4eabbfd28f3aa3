#pragma once
// What a result file says about its run, beside the numbers.

#include <string>
#include <utility>
#include <vector>

#include "benchmarks/session.hpp"

namespace softmax::bench {

// Keys and values for benchmark::AddCustomContext, no key twice. results/README.md owns their meaning; `schema` changes
// with it. Measures the roofs, unless the machine is simulated. `sample_file` may be empty.
std::vector<std::pair<std::string, std::string>> context(Session&, std::string_view suite,
                                                         const std::string& command_line,
                                                         const std::string& sample_file);

}  // namespace softmax::bench
