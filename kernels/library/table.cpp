#include "kernels/library/table.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "kernels/kernel.hpp"

namespace softmax {
extern const char* const kBuiltInTable;  // table.csv; made by CMake

namespace {

constexpr std::string_view kHead = "in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks";
constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

Table load() {
  const char* const path = std::getenv("SOFTMAX_TABLE");
  return path && *path ? read_table(path) : parse_table(kBuiltInTable, "the built-in table");
}
// What was set.
std::optional<Table>& in_force() {
  static std::optional<Table> one;
  return one;
}
std::uint64_t generation = 1;

// `empty` where nothing is written and that has a meaning, else -1.
std::int64_t number(std::string_view field, std::int64_t empty, std::int64_t least, std::int64_t most) {
  if (field.empty() && empty >= 0) return empty;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(field.begin(), field.end(), value);
  if (error != std::errc() || end != field.end() || value < least || value > most)
    throw std::runtime_error("'" + std::string(field) + "' is not a number from " + std::to_string(least) + " to " +
                             std::to_string(most));
  return value;
}
Rule parse_rule(std::string_view line) {
  std::string_view fields[8];
  for (int i = 0; i < 8; ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == line.npos) != (i == 7)) throw std::runtime_error("a rule has 8 fields");
    fields[i] = line.substr(0, comma);
    line.remove_prefix(i == 7 ? line.size() : comma + 1);
  }
  for (const std::string_view width : {fields[0], fields[1]})
    if (width != "2" && width != "4")
      throw std::runtime_error("an element has 2 or 4 bytes, not '" + std::string(width) + "'");
  Rule rule;
  rule.in_bytes = fields[0][0] - '0';
  rule.out_bytes = fields[1][0] - '0';
  rule.rows = number(fields[2], kAny, 1, kAny);
  rule.cols = number(fields[3], kAny, 1, kAny);
  rule.version = int(number(fields[4], -1, 8, 13));  // Auto's
  rule.plan = {int(number(fields[5], 0, 1, 1024)), int(number(fields[6], 0, 1, 1024)), 0,
               int(number(fields[7], 0, 1, 1 << 20))};
  return rule;
}

// Empty if the rule leaves the plan to the kernel, or names one of its plans. A kernel that is not built in may have any.
std::string unknown(const Rule& rule) {
  const Plan& asked = rule.plan;
  for (const Kernel* k : kernels()) {
    if (k->version() != rule.version || (asked.threads == 0 && asked.vectors == 0)) continue;
    const auto is_asked = [&](Plan p) { return p.threads == asked.threads && p.vectors == asked.vectors; };
    if (std::ranges::none_of(k->traits().plans, is_asked)) return k->label() + " has no plan " + to_string(asked);
  }
  return {};
}

}  // namespace

bool Rule::fits(Types t, std::int64_t r, std::int64_t c) const {
  return int(bytes_per_element(t.in)) == in_bytes && int(bytes_per_element(t.out)) == out_bytes && r <= rows &&
         c <= cols;
}

Table parse_table(std::string_view text, const std::string& source) {
  Table table;
  bool head = false;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    if (one.ends_with('\r')) one.remove_suffix(1);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (one.empty() || one[0] == '#') continue;
    try {
      if (head)
        table.push_back(parse_rule(one));
      else if (one != kHead)
        throw std::runtime_error("the first line must be " + std::string(kHead));
      head = true;
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(source + ", line " + std::to_string(line) + ": " + e.what());
    }
  }
  if (!head) throw std::runtime_error(source + ": no line " + std::string(kHead));
  return table;
}

Table read_table(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("cannot read the table " + path);
  Table table = parse_table(text.str(), path);
  for (const Rule& rule : table)
    if (const std::string why = unknown(rule); !why.empty()) throw std::runtime_error(path + ": " + why);
  return table;
}

std::string to_text(const Table& table) {
  std::string text = std::string(kHead) + "\n";
  const auto limit = [](std::int64_t value) { return value == kAny ? "" : std::to_string(value); };
  const auto choice = [](int value) { return value == 0 ? "" : std::to_string(value); };
  for (const Rule& r : table)
    text += std::to_string(r.in_bytes) + "," + std::to_string(r.out_bytes) + "," + limit(r.rows) + "," + limit(r.cols) +
            "," + std::to_string(r.version) + "," + choice(r.plan.threads) + "," + choice(r.plan.vectors) + "," +
            choice(r.plan.blocks) + "\n";
  return text;
}

const Table& table() {
  if (in_force()) return *in_force();
  static const Table loaded = load();
  return loaded;
}
void set_table(Table t) {
  in_force() = std::move(t);
  ++generation;
}
std::uint64_t table_generation() { return generation; }

}  // namespace softmax
