#include "benchmarks/context.hpp"

#include <algorithm>

#include "softmax_build.hpp"  // generated at build time: git revision, flags, version

namespace softmax::bench {

std::vector<std::pair<std::string, std::string>> context(const Session& session, std::string_view suite,
                                                         const std::string& command_line) {
  const Machine& machine = session.machine();
  const Input& input = session.input();
  std::vector<std::pair<std::string, std::string>> all = {
      {"schema", "1"},
      {"harness_version", SOFTMAX_VERSION},
      {"git_sha", SOFTMAX_GIT_SHA},
      {"git_dirty", SOFTMAX_GIT_DIRTY},
      {"flags", SOFTMAX_FLAGS},
      {"device", machine.name()},
      {"device_id", std::string(machine.id())},
      {"simulated", machine.simulated() ? "true" : "false"},
      {"math", std::string(machine.math())},
      {"mode", std::string(session.mode())},
      {"flush", machine.simulated() ? "none" : "memset 2x L2"},
      {"suite", std::string(suite)},
      {"input", suite == "input" ? input.file_name : "noise"},
      {"seed", suite == "input" ? "none" : std::to_string(input.seed)},
      {"command_line", command_line},
  };
  // The library complains about a key given twice.
  for (const auto& property : machine.properties())
    if (std::none_of(all.begin(), all.end(), [&](const auto& pair) { return pair.first == property.first; }))
      all.push_back(property);
  return all;
}

}  // namespace softmax::bench
