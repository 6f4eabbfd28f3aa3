#pragma once
// Which shapes a run measures.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::bench {

struct Shape {
  std::int64_t rows = 0, cols = 0;
  bool file = false;  // its data are the first rows of the session's file, not noise
  DataType in_type = DataType::fp32, out_type = DataType::fp32;

  Rows layout() const { return {rows, cols, cols}; }
  std::int64_t elements() const { return rows * cols; }
  Types types() const { return {in_type, out_type}; }
  std::int64_t in_bytes() const { return elements() * std::int64_t(bytes_per_element(in_type)); }
  std::int64_t out_bytes() const { return elements() * std::int64_t(bytes_per_element(out_type)); }
  std::int64_t bytes() const { return in_bytes() + out_bytes(); }  // the least a softmax moves: one read, one write
  auto operator<=>(const Shape&) const = default;
};

// What is measured of every kernel.
struct Point {
  Shape shape;
  Mode mode = Mode::cold;        // of a simulated machine no more than a word
  std::vector<int> blocks = {};  // if any, only these
  Plan plan = {};                // of kernels that have plans
  bool overlap = false;          // of them too; see Problem
  bool only_plans = false;       // other kernels of ours are left out without a word
  auto operator<=>(const Point&) const = default;
};

enum class Suite { ladder, shapes, atlas, few_rows, goals, studies };
std::string_view name(Suite);

// What a kernel is told beside the shape.
struct How {
  How(int block_ = 0, Plan plan_ = {}, bool overlap_ = false) : block(block_), plan(plan_), overlap(overlap_) {}
  bool operator==(const How&) const = default;

  int block;
  Plan plan;
  bool overlap;
};

// A CSV file that begins with dtype,N,C,mode: of kernels that have plans; what is in a graph also with launches that
// overlap. Throws UsageError, which names the line.
std::vector<Point> read_points(const std::string& path);

// A simulated machine gets stand-ins that take it milliseconds: as many rows as a warp has lanes, 1/32 of the columns.
// `sample` is the shape of the file that comes with the project; the ladder ends with it. `studies` has no point.
// `goals` is benchmarks/goals.csv: what the fast kernels are measured against; throws UsageError without it.
std::vector<Point> points(Suite, bool simulated, Shape sample = {});

}  // namespace softmax::bench
