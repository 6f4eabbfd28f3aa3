#pragma once
// What a result file says about its run, beside the numbers.

#include <string>
#include <utility>
#include <vector>

#include "benchmarks/session.hpp"

namespace softmax::bench {

// Keys and values for benchmark::AddCustomContext, no key twice. results/README.md owns their meaning; `schema` changes
// with it.
std::vector<std::pair<std::string, std::string>> context(const Session&, std::string_view suite,
                                                         const std::string& command_line);

}  // namespace softmax::bench
