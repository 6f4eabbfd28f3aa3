#include "benchmarks/suites.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

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

// A line is "bf16,8192,50257,cold,...". Graphs without and with launches that overlap.
std::vector<Point> goals() {
  const std::string path = SOFTMAX_SOURCE_DIR "/benchmarks/goals.csv";
  std::ifstream file(path);
  std::vector<Point> all;
  std::string line;
  for (std::getline(file, line); std::getline(file, line);) {
    std::istringstream cells(line);
    std::string type, rows, cols, mode;
    for (std::string* cell : {&type, &rows, &cols, &mode}) std::getline(cells, *cell, ',');
    const DataType of = type == "bf16" ? DataType::bf16 : type == "fp16" ? DataType::fp16 : DataType::fp32;
    Point point{{std::stoll(rows), std::stoll(cols), false, of, of}, mode == "graph" ? Mode::graph : Mode::cold};
    point.only_plans = true;
    all.push_back(point);
    point.overlap = true;
    if (point.mode == Mode::graph) all.push_back(point);
  }
  if (all.empty()) throw std::runtime_error(path + " holds no goal");
  return all;
}

}  // namespace

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
    return goals();
  }
  return all;
}

std::string_view name(Suite suite) {
  constexpr std::string_view names[] = {"ladder", "shapes", "atlas", "few-rows", "goals", "studies"};
  return names[int(suite)];
}

}  // namespace softmax::bench
