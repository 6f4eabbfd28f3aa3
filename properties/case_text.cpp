// The kinds' names; a case as a line of text, and back.

#include <charconv>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "properties/case.hpp"

namespace softmax::properties {
namespace {

// With as few digits as bring the same number back.
std::string text(float value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

template <class T>
T number(std::string_view word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    throw std::invalid_argument("'" + std::string(word) + "' is not a number");
  return value;
}
// "a/b".
std::pair<int, int> two(std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash == word.npos) throw std::invalid_argument("'" + std::string(word) + "' is not of the form 1/2");
  return {number<int>(word.substr(0, slash)), number<int>(word.substr(slash + 1))};
}
// "256x8+4s", or without what is in shared memory.
Plan plan_of(std::string_view word) {
  const std::size_t by = word.find('x'), plus = word.find('+');
  if (by == word.npos || (plus != word.npos && word.back() != 's'))
    throw std::invalid_argument("'" + std::string(word) + "' is no plan");
  Plan plan{number<int>(word.substr(0, by)),
            number<int>(word.substr(by + 1, plus == word.npos ? plus : plus - by - 1))};
  if (plus != word.npos) plan.shared = number<int>(word.substr(plus + 1, word.size() - plus - 2));
  return plan;
}
template <class T, class Name>
T named(std::string_view word, const std::vector<T>& all, Name name) {
  for (const T& one : all)
    if (name(one) == word) return one;
  throw std::invalid_argument("'" + std::string(word) + "' is not known here");
}
std::vector<Types> all_types() {
  std::vector<Types> all;
  for (const DataType in : {DataType::fp32, DataType::fp16, DataType::bf16})
    for (const DataType out : {DataType::fp32, DataType::fp16, DataType::bf16}) all.push_back({in, out});
  return all;
}

}  // namespace

bool masked(Kind kind) { return kind >= Kind::mask_first; }

std::vector<Kind> finite_kinds() {
  return {Kind::normal,   Kind::wide,      Kind::scales,     Kind::constant, Kind::spike20,  Kind::spike200,
          Kind::creeping, Kind::ascending, Kind::descending, Kind::grid,     Kind::subnormal};
}

std::vector<Kind> masked_kinds() {
  return {Kind::mask_first, Kind::mask_last, Kind::mask_every_other, Kind::mask_all_but_one, Kind::few_equal};
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds = finite_kinds();
  for (const Kind kind : masked_kinds()) kinds.push_back(kind);
  return kinds;
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::normal: return "normal";
    case Kind::wide: return "wide";
    case Kind::scales: return "scales";
    case Kind::constant: return "constant";
    case Kind::spike20: return "spike20";
    case Kind::spike200: return "spike200";
    case Kind::creeping: return "creeping";
    case Kind::ascending: return "ascending";
    case Kind::descending: return "descending";
    case Kind::grid: return "grid";
    case Kind::subnormal: return "subnormal";
    case Kind::mask_first: return "mask_first";
    case Kind::mask_last: return "mask_last";
    case Kind::mask_every_other: return "mask_every_other";
    case Kind::mask_all_but_one: return "mask_all_but_one";
    case Kind::few_equal: return "few_equal";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const Case& c) {
  out << name(c.kind) << " " << c.rows << " x " << c.cols << " offset " << text(c.offset) << " padding " << c.in_padding
      << "/" << c.out_padding << " shift " << c.in_shift << "/" << c.out_shift;
  if (c.block != 0) out << " block " << c.block;
  if (c.types != Types()) out << " types " << name(c.types);
  if (c.plan != Plan()) {
    out << " plan " << c.plan.threads << "x" << c.plan.vectors << "+" << c.plan.shared << "s";
    if (c.plan.blocks > 0) out << " c" << c.plan.blocks;
  }
  if (c.in_place) out << " in_place";
  if (c.temperature != 1 || c.each_row) out << (c.each_row ? " temperatures " : " temperature ") << text(c.temperature);
  return out << " schedule " << to_string(c.schedule) << " seed " << c.seed;
}

Case parse_case(const std::string& line) {
  std::istringstream words(line);
  const auto next = [&] {
    std::string word;
    if (!(words >> word)) throw std::invalid_argument("a case ends too early: " + line);
    return word;
  };
  Case c;
  c.block = 0;
  c.kind = named(next(), all_kinds(), [](Kind kind) { return name(kind); });
  c.rows = number<std::int64_t>(next());
  if (next() != "x") throw std::invalid_argument("rows x cols are missing: " + line);
  c.cols = number<std::int64_t>(next());
  for (std::string word; words >> word;) {
    if (word == "offset") {
      c.offset = number<float>(next());
    } else if (word == "padding") {
      std::tie(c.in_padding, c.out_padding) = two(next());
    } else if (word == "shift") {
      std::tie(c.in_shift, c.out_shift) = two(next());
    } else if (word == "block") {
      c.block = number<int>(next());
    } else if (word == "types") {
      c.types = named(next(), all_types(), [](Types types) { return name(types); });
    } else if (word == "plan") {
      c.plan = plan_of(next());
    } else if (word.size() > 1 && word[0] == 'c' && c.plan != Plan()) {
      c.plan.blocks = number<int>(std::string_view(word).substr(1));
    } else if (word == "in_place") {
      c.in_place = true;
    } else if (word == "temperature" || word == "temperatures") {
      c.temperature = number<float>(next());
      c.each_row = word == "temperatures";
    } else if (word == "schedule") {
      const std::string order = next();
      using Order = Schedule::Order;
      if (order == "seed")
        c.schedule = {Order::seeded, number<std::uint64_t>(next())};
      else
        c.schedule.order = named(order, std::vector{Order::forward, Order::reverse}, [](Order one) {
          return to_string(Schedule{one, 0});
        });
    } else if (word == "seed") {
      c.seed = number<std::uint64_t>(next());
    } else {
      throw std::invalid_argument("'" + word + "' means nothing in a case: " + line);
    }
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // what follows from it shall not overflow
  const auto within = [](std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most;
  };
  bool fits = within(c.rows, 1, kMost) && within(c.cols, 1, kMost / c.rows);
  for (const int one : {c.in_padding, c.out_padding, c.in_shift, c.out_shift, c.block, c.plan.threads, c.plan.vectors,
                        c.plan.shared, c.plan.blocks})
    fits &= within(one, 0, 1 << 20);
  if (!fits) throw std::invalid_argument("a number is out of range: " + line);
  return c;
}

}  // namespace softmax::properties
