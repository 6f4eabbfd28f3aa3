#include "benchmarks/trace.hpp"

#include <algorithm>
#include <string_view>

namespace softmax::bench {

std::int64_t rows_to_trace(Shape shape) {
  std::int64_t rows = std::clamp<std::int64_t>((1 << 22) / std::max<std::int64_t>(shape.cols, 1), 1, shape.rows);
  if (rows < shape.rows)
    for (const int whole : {1024, 32})
      if (rows >= whole) return rows - rows % whole;
  return rows;
}

Trace trace(Workspace& ws, const Kernel& kernel, const How& how) {
  struct Off {
    Machine& machine;
    ~Off() { machine.watch(Watch::off); }
  } off{ws.machine()};
  Trace t{ws.shape(), &kernel, how, rows_to_trace(ws.shape()), {}};
  ws.out().poison();
  Problem problem = ws.problem(kernel, how);
  problem.rows = t.rows;
  off.machine.watch(Watch::check);
  kernel.launch(problem);
  off.machine.synchronize();
  t.profile = off.machine.profile();
  return t;
}

std::string counter_key(std::int64_t Counters::*value) {
  const auto names = counter_names();
  return std::string(std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.value == value; })->key);
}

std::vector<std::pair<std::string, double>> traced_counters(const Trace& t) {
  if (t.profile.accesses == 0 || t.rows == 0) return {};
  const Counters& c = t.profile.total;
  const auto rows = double(t.rows);
  std::vector<std::pair<std::string, double>> all;
  for (const CounterName& name : counter_names()) all.emplace_back(name.key, double(c.*name.value) / rows);
  const auto ratio = [&](const char* key, std::int64_t of, std::int64_t by) {
    if (by > 0) all.emplace_back(key, double(of) / double(by));
  };
  ratio("ld_sectors/request", c.global_load_sectors, c.global_load_requests);
  ratio("st_sectors/request", c.global_store_sectors, c.global_store_requests);
  ratio("bytes_transferred", c.bytes_transferred(), t.rows);
  ratio("x_min", c.bytes_transferred(), t.shape.bytes() / t.shape.rows * t.rows);
  all.emplace_back("traced_rows", rows);
  return all;
}

}  // namespace softmax::bench
