#include "benchmarks/sweep.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "benchmarks/measure.hpp"
#include "benchmarks/options.hpp"

namespace softmax::bench {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMost = 10000;  // points: at a second a case they take longer than anybody waits
struct NamedTypes {
  std::string_view name;
  DataType in, out;
};
constexpr NamedTypes kTypes[] = {{"fp32", DataType::fp32, DataType::fp32},
                                 {"fp16", DataType::fp16, DataType::fp16},
                                 {"bf16", DataType::bf16, DataType::bf16},
                                 {"fp16-fp32", DataType::fp16, DataType::fp32},
                                 {"bf16-fp32", DataType::bf16, DataType::fp32}};
constexpr const char* kAxes[] = {"N", "C", "MiB", "at", "gap", "block", "mode", "flush", "dtype", "plan", "overlap"};

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw UsageError("--sweep: " + what + ": " + why);
}

// Unlike std::getline's, the last part counts even if it is empty.
std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

template <class Values, class Text>
std::string listed(const Values& values, Text text) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + std::string(text(value));
  return list;
}

std::int64_t number(const std::string& text, const std::string& where) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool suffix = stop + 1 == end && (*stop == 'K' || *stop == 'M');
  const std::int64_t scale = !suffix ? 1 : *stop == 'K' ? 1 << 10 : 1 << 20;
  if (error == std::errc::result_out_of_range || (error == std::errc() && value > kLargest / scale))
    refuse(where, "does not fit 64 bits");
  if (error != std::errc() || (stop != end && !suffix))
    refuse(where, "\"" + text + "\" is no whole number; there are 1000, 64K, 1M, a:b, a:b:+step, a:b:xfactor and a|b");
  if (value < 1) refuse(where, "at least 1");
  return value * scale;
}

// "1024", "a:b", "a:b:+s" or "a:b:xk"
void add_numbers(const std::string& text, const std::string& where, std::vector<std::int64_t>& to) {
  const auto parts = split(text, ':');
  const std::int64_t first = number(parts[0], where);
  if (parts.size() == 1) return to.push_back(first);
  const std::int64_t last = number(parts[1], where);
  const std::string by = parts.size() > 2 ? parts[2] : "+1";
  if (parts.size() > 3 || (by[0] != '+' && by[0] != 'x')) refuse(where, "a range is a:b, a:b:+step or a:b:xfactor");
  const std::int64_t step = number(by.substr(1), where);
  const bool times = by[0] == 'x';
  if (times && step == 1) refuse(where, "a factor is at least 2");
  if (first > last) refuse(where, "an empty range");
  for (std::int64_t value = first;;) {
    to.push_back(value);
    if (to.size() > kMost)
      refuse(where, "more than " + std::to_string(kMost) + " values; a:b steps by 1, a:b:x2 doubles");
    if (times ? value > last / step : value > last - step) return;
    value = times ? value * step : value + step;
  }
}

// The values of each axis, as text.
class Axes {
 public:
  explicit Axes(const std::string& text) {
    for (const std::string& part : split(text, ',')) {
      const std::size_t at = part.find('=');
      const std::string axis = part.substr(0, at);
      if (std::ranges::count(kAxes, axis) == 0)
        refuse("\"" + axis + "\"", "no such axis; there are " + listed(kAxes, [](auto a) { return a; }));
      if (at == std::string::npos || at + 1 == part.size()) refuse(axis, "needs a value, as in " + axis + "=...");
      if (!axes_.emplace(axis, part.substr(at + 1)).second) refuse(axis, "named twice");
    }
  }

  bool has(const std::string& axis) const { return axes_.count(axis) > 0; }

  // In the order given, none twice; `otherwise` if the axis is not named.
  std::vector<std::int64_t> numbers(const std::string& axis, std::int64_t otherwise = 0) const {
    if (!has(axis)) return {otherwise};
    std::vector<std::int64_t> all, once;
    for (const std::string& one : split(axes_.at(axis), '|')) add_numbers(one, axis + "=" + one, all);
    std::set<std::int64_t> seen;
    for (const std::int64_t value : all)
      if (seen.insert(value).second) once.push_back(value);
    return once;
  }

  // Values that are words, as what stands for each.
  template <class Value>
  std::vector<Value> words(const std::string& axis, std::initializer_list<Value> possible,
                           std::string_view (*name)(Value)) const {
    if (!has(axis)) return {*possible.begin()};
    std::vector<Value> all;
    for (const std::string& word : split(axes_.at(axis), '|')) {
      const auto found = std::ranges::find(possible, word, name);
      if (found == possible.end()) refuse(axis + "=" + word, "there are " + listed(possible, name));
      if (std::ranges::count(all, *found) == 0) all.push_back(*found);
    }
    return all;
  }

  // Numbers of elements, of both matrices or of each; 0 if the axis is not named.
  std::vector<InOut> layouts(const std::string& axis, std::int64_t most) const {
    if (!has(axis)) return {InOut()};
    std::vector<InOut> all;
    for (const std::string& one : split(axes_.at(axis), '|')) {
      const auto both = in_out(one, most);
      if (!both) refuse(axis + "=" + one, "a number of elements, or IN.OUT, each at most " + std::to_string(most));
      if (std::ranges::count(all, *both) == 0) all.push_back(*both);
    }
    return all;
  }

  // "threads.vectors.shared.blocks", where what is 0 or not there is the kernel's choice; one of all 0 if none is named.
  std::vector<Plan> plans() const {
    if (!has("plan")) return {Plan()};
    std::vector<Plan> all;
    for (const std::string& one : split(axes_.at("plan"), '|')) {
      const auto parts = split(one, '.');
      if (parts.size() > 4) refuse("plan=" + one, "a plan is threads.vectors.shared.blocks");
      Plan plan;
      int* const to[] = {&plan.threads, &plan.vectors, &plan.shared, &plan.blocks};
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t value = parts[i] == "0" ? 0 : number(parts[i], "plan=" + one);
        if (value > 1024) refuse("plan=" + one, "1024 at most");
        *to[i] = int(value);
      }
      if (std::ranges::count(all, plan) == 0) all.push_back(plan);
    }
    return all;
  }

 private:
  std::map<std::string, std::string> axes_;
};

}  // namespace

Sweep parse_sweep(const std::string& text, const SweepOn& on) {
  const Axes axes(text);
  for (const char* axis : {"N", "C", "MiB", "at", "gap"})
    if (on.shape.file && axes.has(axis))
      refuse(axis, "--input's file has its shape, without gaps; axes with it: block, mode, flush");
  if (axes.has("N") && axes.has("MiB")) refuse("N and MiB", "exclude each other: MiB is N * C elements' bytes");
  for (const char* axis : {"mode", "flush"})
    if (on.simulated && axes.has(axis))
      refuse(axis, "is a GPU's; the CPU device has no cache and no graphs, and one mode, sim");
  const auto types = axes.words(
      "dtype", {0, 1, 2, 3, 4}, +[](int i) { return kTypes[i].name; });
  const auto overlaps = axes.words(
      "overlap", {0, 1}, +[](int i) { return std::string_view(i ? "1" : "0"); });
  const std::vector<Plan> plans = axes.plans();

  const auto modes = axes.words("mode", {Mode::cold, Mode::hot, Mode::graph, Mode::graph_hot}, name);
  const auto flushes = axes.words("flush", {Flush::memset, Flush::read, Flush::none}, name);
  if (flushes.size() > 1) refuse("flush", "one value: it is the whole run's");

  std::vector<int> blocks;
  if (axes.has("block"))
    for (const std::int64_t block : axes.numbers("block")) {
      if (std::ranges::count(on.blocks, block) == 0)
        refuse("block=" + std::to_string(block),
               "kernels take " + listed(on.blocks, [](int b) { return std::to_string(b); }));
      blocks.push_back(int(block));
    }

  const bool by_size = axes.has("MiB");
  const auto rows = axes.numbers(by_size ? "MiB" : "N", on.shape.rows), cols = axes.numbers("C", on.shape.cols);
  const auto ats = axes.layouts("at", kMostAt), gaps = axes.layouts("gap", kMostGap);
  const std::size_t count = rows.size() * cols.size() * types.size() * ats.size() * gaps.size() * modes.size() *
                            plans.size() * overlaps.size();
  if (count > kMost) refuse(std::to_string(count) + " points", "at most " + std::to_string(kMost) + " in a run");
  Sweep sweep{{}, flushes.front()};
  std::set<Point> seen;
  for (const std::int64_t r : rows)
    for (const std::int64_t c : cols) {
      if (by_size && r > kLargest >> 20) refuse("MiB=" + std::to_string(r), "its bytes do not fit 64 bits");
      for (const int t : types) {
        const auto [name, in, out] = kTypes[t];
        const auto width = std::int64_t(bytes_per_element(in));
        const std::int64_t n = by_size ? std::max<std::int64_t>(1, (r << 20) / width / c) : r;
        // With the copy's own matrices beside those that have gaps.
        if (c > kLargest / 64 || n > kLargest / 32 / (c + kMostGap))
          refuse("N=" + std::to_string(n) + ",C=" + std::to_string(c), "the bytes of its buffers do not fit 64 bits");
        for (const InOut& at : ats)
          for (const InOut& gap : gaps)
            for (const Mode mode : modes)
              for (const Plan& plan : plans)
                for (const int overlap : overlaps) {
                  const Point point{{n, c, on.shape.file, in, out, at, gap}, mode, blocks, plan, overlap != 0};
                  if (seen.insert(point).second) sweep.points.push_back(point);
                }
      }
    }
  return sweep;
}

}  // namespace softmax::bench
