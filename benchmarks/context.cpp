#include "benchmarks/context.hpp"

#include <algorithm>
#include <cstdlib>

#include "benchmarks/reporter.hpp"
#include "softmax_build.hpp"  // generated at build time: git revision, flags, version

namespace softmax::bench {

std::vector<std::pair<std::string, std::string>> context(Session& session, std::string_view suite,
                                                         const std::string& command_line,
                                                         const std::string& sample_file) {
  const Machine& machine = session.machine();
  const Input& input = session.input();
  const char* const table = std::getenv("SOFTMAX_TABLE");  // that Auto obeys
  const bool of_file = suite == "input" || (suite == "sweep" && input.file);
  std::vector<std::pair<std::string, std::string>> all = {
      {"schema", "2"},
      {"harness_version", SOFTMAX_VERSION},
      {"git_sha", SOFTMAX_GIT_SHA},
      {"git_dirty", SOFTMAX_GIT_DIRTY},
      {"flags", SOFTMAX_FLAGS},
      {"device", machine.name()},
      {"device_id", std::string(machine.id())},
      {"simulated", machine.simulated() ? "true" : "false"},
      {"math", std::string(machine.math())},
      {"flush",
       session.flush == Flush::none || machine.simulated() ? "none" : std::string(name(session.flush)) + " 2x L2"},
      {"suite", std::string(suite)},
      {"input", of_file ? input.file_name : "noise"},
      {"seed", of_file ? "none" : std::to_string(input.seed)},
      {"table", table && *table ? table : "built-in"},
      {"command_line", command_line},
  };
  if (!sample_file.empty()) all.emplace_back("samples", sample_file);
  if (const Roof& roof = session.roof(); roof.floor > 0) {
    for (const auto& [key, bytes_per_second] : {std::pair{"roof_copy_GB/s", roof.copy},
                                                {"roof_read_GB/s", roof.read},
                                                {"roof_write_GB/s", roof.write},
                                                {"peak_GB/s", machine.peak_bandwidth()}})
      if (bytes_per_second > 0) all.emplace_back(key, four_digits(bytes_per_second / 1e9));
    all.emplace_back("roof_copy_way", roof.copy_way);
    all.emplace_back("launch_floor_us", four_digits(roof.floor * 1e6));
  }
  // The library complains about a key given twice.
  for (const auto& property : machine.properties())
    if (std::none_of(all.begin(), all.end(), [&](const auto& pair) { return pair.first == property.first; }))
      all.push_back(property);
  return all;
}

}  // namespace softmax::bench
