#pragma once
// Which shapes a run measures.

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/machine.hpp"

namespace softmax::bench {

struct Shape {
  std::int64_t rows = 0, cols = 0;
  bool file = false;  // its data are the first rows of the session's file, not noise

  Rows layout() const { return {rows, cols, cols}; }
  std::int64_t elements() const { return rows * cols; }
  std::int64_t bytes() const { return 8 * elements(); }  // the least a softmax moves: one fp32 read, one written
  auto operator<=>(const Shape&) const = default;
};

// What is measured of every kernel.
struct Point {
  Shape shape;
  Mode mode = Mode::cold;        // of a simulated machine no more than a word
  std::vector<int> blocks = {};  // if any, only these
  auto operator<=>(const Point&) const = default;
};

enum class Suite { ladder, shapes, atlas, few_rows, studies };
std::string_view name(Suite);

// A simulated machine gets stand-ins that take it milliseconds: as many rows as a warp has lanes, 1/32 of the columns.
// `sample` is the shape of the file that comes with the project; the ladder ends with it. `studies` has no point.
std::vector<Point> points(Suite, bool simulated, Shape sample = {});

}  // namespace softmax::bench
