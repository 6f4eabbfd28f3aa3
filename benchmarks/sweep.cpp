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
constexpr const char* kAxes[] = {"N", "C", "MiB", "block", "mode", "flush", "dtype"};

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
    if (to.size() > kMost) refuse(where, "more than " + std::to_string(kMost) + " values; a:b steps by 1, a:b:x2 doubles");
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

 private:
  std::map<std::string, std::string> axes_;
};

}  // namespace

Sweep parse_sweep(const std::string& text, const SweepOn& on) {
  const Axes axes(text);
  for (const char* axis : {"N", "C", "MiB"})
    if (on.shape.file && axes.has(axis)) refuse(axis, "--input's file has its shape; axes with it: block, mode, flush");
  if (axes.has("N") && axes.has("MiB")) refuse("N and MiB", "exclude each other: MiB is N * C * 4 bytes");
  for (const char* axis : {"mode", "flush"})
    if (on.simulated && axes.has(axis)) refuse(axis, "is a GPU's; the CPU device has no cache and no graphs, and one mode, sim");
  axes.words("dtype", {0}, +[](int) { return std::string_view("fp32"); });  // at present

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
  if (rows.size() * cols.size() * modes.size() > kMost)
    refuse(std::to_string(rows.size() * cols.size() * modes.size()) + " points",
           "at most " + std::to_string(kMost) + " in a run");
  Sweep sweep{{}, flushes.front()};
  std::set<Point> seen;
  for (const std::int64_t r : rows)
    for (const std::int64_t c : cols) {
      if (by_size && r > kLargest >> 20) refuse("MiB=" + std::to_string(r), "its bytes do not fit 64 bits");
      const std::int64_t n = by_size ? std::max<std::int64_t>(1, (r << 20) / 4 / c) : r;
      if (n > kLargest / 8 / c)
        refuse("N=" + std::to_string(n) + ",C=" + std::to_string(c),
               "the bytes of input and output do not fit 64 bits");
      for (const Mode mode : modes) {
        const Point point{{n, c, on.shape.file}, mode, blocks};
        if (seen.insert(point).second) sweep.points.push_back(point);
      }
    }
  return sweep;
}

}  // namespace softmax::bench
