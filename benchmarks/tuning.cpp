#include "benchmarks/tuning.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "benchmarks/workspace.hpp"

namespace softmax::bench {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kFewFrom = 1024;     // columns: below, few rows cost a launch whatever the kernel
constexpr std::int64_t kSharedFrom = 1024;  // below, no row is worth several blocks or two launches
constexpr std::int64_t kLongest = std::int64_t{1} << 23;
constexpr std::int64_t kMost = std::int64_t{1}
                               << 27;       // elements of few rows: more take a millisecond whatever the plan
constexpr std::int64_t kOnOne = 256 << 10;  // bytes: a longer row leaves a multiprocessor room for nothing else
constexpr int kAnyRow = 12;                 // the kernel that takes rows of every length

// To 2^20 by half octaves, and on to 2^22. Up to 2^13 with a cell of its own for each, since rows of whole vectors have kernels
// of their own: what wins there need not win at a column less.
std::vector<std::int64_t> columns() {
  constexpr std::int64_t kAlone = 1 << 13;
  std::vector<std::int64_t> all;
  for (std::int64_t c = 8; c < 1 << 20; c *= 2)
    for (const std::int64_t each : {c, c + c / 2}) {
      if (each <= kAlone) all.push_back(each - 1);
      all.push_back(each);
    }
  all.insert(all.end(), {1 << 20, 1 << 21, 1 << 22});
  return all;
}

std::string grouped(std::int64_t n) {
  std::string text = std::to_string(n);
  for (auto at = int(text.size()) - 3; at > 0; at -= 3) text.insert(std::size_t(at), ",");
  return text;
}

std::int64_t vectors(const Cell& cell) {
  const std::size_t widest = std::max(bytes_per_element(cell.types.in), bytes_per_element(cell.types.out));
  return cell.cols * std::int64_t(widest) / 16;
}

// How many blocks share a row; 0 where the kernel says.
std::vector<int> shares(int version) {
  if (version == 10) return {2, 3, 4, 5, 6, 8, 10, 12, 14, 15, 16};
  if (version == 11) return {8, 16, 32, 33, 48, 64, 66, 96, 128, 132, 198, 264, 528};
  return {0};
}

// Rules of one class of rows.
using Rules = std::vector<Rule>;
bool same_but_for_rows(const Rules& a, const Rules& b) {
  return std::ranges::equal(a, b, [](Rule x, const Rule& y) {
    x.rows = y.rows;
    return x == y;
  });
}

}  // namespace

Shape Cell::at(std::int64_t c) const {
  Shape shape{rows, c, false, types.in, types.out};
  if (rows == 0) shape.rows = std::max<std::int64_t>(1, many_bytes / (c * std::int64_t(bytes_per_element(types.in))));
  return shape;
}

std::string to_string(const Cell& cell) {
  const std::string rows = grouped(cell.high().rows);
  return name(cell.types) + " " + (cell.rows > 0 ? rows : "many (" + rows + ")") + " x " + grouped(cell.cols);
}

std::vector<Cell> grid(Types types, bool small) {
  const std::vector<std::int64_t> all = small ? std::vector<std::int64_t>{64, 1024, 2048} : columns();
  const std::vector<std::int64_t> few =
      small ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256};
  const std::int64_t many_bytes = small ? 64 << 10 : 512 << 20;
  std::vector<Cell> cells;
  const auto add = [&](std::int64_t rows, std::int64_t from, bool longest) {
    std::int64_t below = 0;
    for (const std::int64_t cols : all) {
      if (cols > 1 << 20 && rows * cols > kMost) break;
      if (cols >= from) cells.push_back({types, rows, below, cols, many_bytes});
      below = cols;
    }
    if (longest && !small) cells.push_back({types, rows, below, kLongest, many_bytes});
  };
  for (const std::int64_t rows : few) add(rows, kFewFrom - 1, rows <= 16);
  add(0, 0, true);
  return cells;
}

std::string to_string(const Pick& pick) {
  return "V" + std::to_string(pick.version) + (pick.plan == Plan() ? "" : " " + to_string(pick.plan));
}

std::vector<Pick> candidates(const Cell& cell, std::span<const Kernel* const> kernels, int multiprocessors) {
  std::vector<Pick> all;
  const Shape high = cell.high(), low = cell.low();
  const bool is_long = 16 * vectors(cell) > kOnOne;
  for (const Kernel* kernel : kernels) {
    const int version = kernel->version();
    if (version < 8 || version > 13 || (version >= 10 && version <= 12 && cell.cols < kSharedFrom)) continue;
    std::vector<Pick> of_kernel;
    const auto does = [&](const Plan& plan, const Shape& end) { return kernel->plan(problem_of(end, {0, plan})); };
    const auto consider = [&](const Plan& plan) {
      const std::int64_t blocks = std::max(plan.blocks, 1);
      if (blocks * plan.threads > std::max<std::int64_t>(1, 2 * vectors(cell))) return;
      // Blocks that wait for each other take the rows in turn where there are more: only worth it for long ones.
      if (version == 11 && !is_long && high.rows * blocks > 8 * multiprocessors) return;
      for (const Shape& end : {high, low})
        if (!kernel->unsupported(problem_of(end, {0, plan})).empty()) return;
      const bool own = !of_kernel.empty() && of_kernel.front().plan == Plan();
      if (own && does({}, high) == does(plan, high) && does({}, low) == does(plan, low)) return;
      of_kernel.push_back({version, plan});
    };
    // The plan that V9 to V11 have by themselves may be another one inside of the cell than at its ends: they state theirs.
    const bool states = version >= 9 && version <= 11;
    if (!states) consider({});
    for (Plan plan : kernel->traits().plans)
      for (const int blocks : shares(version)) plan.blocks = blocks, consider(plan);
    if (of_kernel.empty()) consider({});
    const auto holds = [&](const Plan& plan) { return version != kAnyRow && does(plan, high).shared == 0; };
    for (const Pick& pick : of_kernel)
      if (std::ranges::none_of(of_kernel, [&, &p = pick.plan](const Pick& other) {
            const Plan& q = other.plan;
            return q.threads == p.threads && q.blocks == p.blocks && q.vectors < p.vectors && holds(q);
          }))
        all.push_back(pick);
  }
  return all;
}

std::vector<Timed> ranked(std::vector<Timed> all) {
  if (all.empty()) return all;
  std::vector<double> best = all.front().seconds;
  for (const Timed& one : all)
    for (std::size_t end = 0; end < best.size(); ++end) best[end] = std::min(best[end], one.seconds[end]);
  for (Timed& one : all) {
    one.ratio = 0;
    for (std::size_t end = 0; end < best.size(); ++end) one.ratio = std::max(one.ratio, one.seconds[end] / best[end]);
  }
  std::ranges::stable_sort(all, {}, &Timed::ratio);
  return all;
}

std::vector<Timed> within(std::vector<Timed> all, double factor) {
  std::erase_if(all, [most = all.empty() ? 0 : factor * all.front().ratio](const Timed& t) { return t.ratio > most; });
  return all;
}

Pick decide(const std::vector<Timed>& ranked, const std::optional<Pick>& neighbour) {
  if (ranked.empty()) throw std::runtime_error("nothing to decide between");
  for (const Timed& one : ranked)
    if (one.ratio <= 1.005 * ranked.front().ratio && one.pick == neighbour) return one.pick;
  return ranked.front().pick;
}

Table merge(std::span<const Decision> decisions) {
  std::vector<Rules> classes;
  const Cell* before = nullptr;
  for (const auto& [cell, pick] : decisions) {
    const bool goes_on = before && before->types == cell.types && before->rows == cell.rows;
    if (!goes_on) {
      if (before && classes.back().back().version == kAnyRow) classes.back().back().cols = kAny;
      classes.emplace_back();
    }
    Rules& rules = classes.back();
    if (goes_on && rules.back().version == pick.version && rules.back().plan == pick.plan)
      rules.back().cols = cell.cols;
    else
      rules.push_back({int(bytes_per_element(cell.types.in)), int(bytes_per_element(cell.types.out)),
                       cell.rows > 0 ? cell.rows : kAny, cell.cols, pick.version, pick.plan});
    before = &cell;
  }
  if (before && classes.back().back().version == kAnyRow) classes.back().back().cols = kAny;
  Table table;
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (i + 1 == classes.size() || !same_but_for_rows(classes[i], classes[i + 1]))
      table.insert(table.end(), classes[i].begin(), classes[i].end());
  return table;
}

}  // namespace softmax::bench
