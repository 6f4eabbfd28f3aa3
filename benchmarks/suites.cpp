#include "benchmarks/suites.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "benchmarks/options.hpp"

namespace softmax::bench {
namespace {

// 8 batches of 1024 tokens over GPT-2's vocabulary: the article's shape. 50257 is odd, so three rows of four start
// where no 16-byte access may; 1571 is odd too.
constexpr Shape kArticle{8192, 50257}, kArticleStandIn{32, 1571};

constexpr Shape kShapes[] = {
    kArticle,       {8192, 1024},  // attention scores: a row is one 4 KiB burst, so fixed costs of a row show
    {8192, 4096},                  // the widest row that 1024 threads hold in one float4 each
    {8192, 32000},                 // Llama 2's vocabulary: 125 KiB, a whole row fits shared memory
    {8192, 128256},  // Llama 3's vocabulary: 501 KiB, a row fits neither shared memory nor the registers of one block
};
constexpr Shape kStandIns[] = {
    kArticleStandIn, {32, 32},  // one element a lane
    {32, 128},                  // one float4 a lane
    {32, 1000},                 // 31.25 warps: the last one is not full
    {32, 4008},                 // more than any block has threads
};

// 1 GiB of input at every width.
std::vector<Point> atlas() {
  std::vector<Point> all;
  for (std::int64_t cols = 32; cols <= 1 << 20; cols *= 2)
    all.push_back({{(1 << 28) / cols, cols}, Mode::cold, {32, 256, 1024}});
  return all;
}

// The softmax before sampling: few rows over the vocabularies of Llama 2, GPT-2, Llama 3, Qwen 2.5 and Gemma 3.
std::vector<Point> few_rows() {
  std::vector<Point> all;
  for (const std::int64_t rows : {1, 4, 16, 64, 256})
    for (const std::int64_t cols : {32000, 50257, 128256, 151936, 262144})
      all.push_back({{rows, cols}, Mode::graph, {1024}});
  return all;
}

}  // namespace

std::optional<InOut> in_out(const std::string& text, std::int64_t most) {
  InOut both;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, both.in);
  both.out = both.in;
  if (read.ec == std::errc() && *read.ptr == '.') read = std::from_chars(read.ptr + 1, end, both.out);
  const auto [least, largest] = std::minmax({both.in, both.out});
  if (read.ec != std::errc() || read.ptr != end || least < 0 || largest > most) return {};
  return both;
}

std::vector<std::string> Shape::layout() const {
  std::vector<std::string> parts;
  for (const auto& [name, both] : {std::pair{"at", at}, {"gap", gap}})
    if (both != InOut()) parts.push_back(name + (":" + std::to_string(both.in) + "." + std::to_string(both.out)));
  return parts;
}

std::string to_string(const Shape& shape) {
  std::string text = std::to_string(shape.rows) + " x " + std::to_string(shape.cols);
  for (const std::string& part : shape.layout()) text += " " + part;
  std::ranges::replace(text, ':', ' ');
  return text;
}

std::vector<Point> read_points(const std::string& path) {
  constexpr std::string_view kModes[] = {"cold", "hot", "graph", "graph-hot"};  // in the order of Mode
  constexpr std::size_t kMost = 1 << 20;  // bytes: more points than anybody waits for; /dev/zero has no end
  std::ifstream in(path);
  std::vector<Point> all;
  std::string line;
  std::vector<std::string> columns;
  const auto refuse = [&](int number, const std::string& why) {
    throw UsageError(path + ", line " + std::to_string(number) + ": " + why);
  };
  if (!in) throw UsageError(path + ": cannot be read");
  std::string text(kMost, ' ');
  in.read(text.data(), kMost);
  if (in) throw UsageError(path + ": more than a MiB of points");
  text.resize(std::size_t(in.gcount()));
  std::istringstream file(text);
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1 && !(line + ",").starts_with("dtype,N,C,mode,"))
      refuse(1, "wants dtype,N,C,mode; at and gap may follow, and other columns are free");
    if (line.empty()) continue;
    std::vector<std::string> cells;
    std::istringstream in_line(line);
    for (std::string cell; std::getline(in_line, cell, ',');) cells.push_back(cell);
    if (number == 1) columns = cells;
    if (number == 1) continue;
    cells.resize(std::max(cells.size(), columns.size()));
    const std::string &type = cells[0], *const size = &cells[1], &mode = cells[3];
    const auto types = std::ranges::find(kTypes, type, [](Types t) { return softmax::name(t); });
    if (types == kTypes.end()) refuse(number, "'" + type + "' is no type");
    const auto how = std::ranges::find(kModes, mode);
    if (how == std::end(kModes)) refuse(number, "'" + mode + "' is no mode");
    std::int64_t value[2];
    for (int i : {0, 1}) {
      const auto [end, error] = std::from_chars(size[i].data(), size[i].data() + size[i].size(), value[i]);
      if (error != std::errc() || *end != 0 || value[i] < 1)
        refuse(number, "'" + size[i] + "' is no number of rows or columns");
    }
    Point point{{value[0], value[1], false, types->in, types->out}, Mode(how - kModes)};
    for (const auto& [name, most, to] :
         {std::tuple{"at", kMostAt, &point.shape.at}, {"gap", kMostGap, &point.shape.gap}}) {
      const auto column = std::size_t(std::ranges::find(columns, name) - columns.begin());
      if (column == columns.size() || cells[column].empty()) continue;
      const auto both = in_out(cells[column], most);
      if (!both)
        refuse(number,
               "'" + cells[column] + "' is no " + name + ": a number or IN.OUT, at most " + std::to_string(most));
      *to = *both;
    }
    point.only_plans = true;
    all.push_back(point);
    point.overlap = true;
    if (in_graph(point.mode)) all.push_back(point);
  }
  if (all.empty()) throw UsageError(path + ": no point in it");
  return all;
}

std::vector<Point> points(Suite suite, bool simulated, Shape sample) {
  std::vector<Point> all;
  if (suite == Suite::ladder) {
    all.push_back({simulated ? kArticleStandIn : kArticle});
    if (simulated) sample.rows = std::min(sample.rows, kArticleStandIn.rows);
    if (sample.file) all.push_back({sample});
  } else if (suite != Suite::studies && simulated) {
    for (const Shape shape : kStandIns) all.push_back({shape});
  } else if (suite == Suite::shapes) {
    for (const Shape shape : kShapes) all.push_back({shape});
  } else if (suite == Suite::atlas) {
    return atlas();
  } else if (suite == Suite::few_rows) {
    return few_rows();
  } else if (suite == Suite::goals) {
    return read_points(SOFTMAX_SOURCE_DIR "/benchmarks/goals.csv");
  }
  return all;
}

std::string_view name(Suite suite) {
  constexpr std::string_view names[] = {"ladder", "shapes", "atlas", "few-rows", "goals", "studies"};
  return names[int(suite)];
}

}  // namespace softmax::bench
