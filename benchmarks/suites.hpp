#pragma once
// Which shapes a run measures.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::bench {

// A number of elements, of the input and of the output.
struct InOut {
  std::int64_t in = 0, out = 0;
  auto operator<=>(const InOut&) const = default;
};
inline constexpr std::int64_t kMostAt = 15, kMostGap = 1 << 20;
// Of "1.2", or of "3" for both; none if that is not what the text says, or one is above `most`.
std::optional<InOut> in_out(const std::string& text, std::int64_t most);

// A matrix in a buffer that begins where any vector may.
struct Placed {
  DataType type;
  std::int64_t at;  // elements ahead of the first row
  Rows rows;

  std::size_t width() const { return bytes_per_element(type); }
  std::size_t begin(std::int64_t row) const { return std::size_t(at + row * rows.stride) * width(); }
  std::size_t end(std::int64_t row) const { return begin(row) + std::size_t(rows.cols) * width(); }
};

struct Shape {
  std::int64_t rows = 0, cols = 0;
  bool file = false;  // its data are the first rows of the session's file, not noise
  DataType in_type = DataType::fp32, out_type = DataType::fp32;
  InOut at = {};   // elements by which the first row misses an address where any vector may begin
  InOut gap = {};  // elements between two rows

  Placed in() const { return {in_type, at.in, {rows, cols, cols + gap.in}}; }
  Placed out() const { return {out_type, at.out, {rows, cols, cols + gap.out}}; }
  bool dense() const { return at == InOut() && gap == InOut(); }
  // What of a name says so: "at:1.2", "gap:3.0"; nothing where all is 0.
  std::vector<std::string> layout() const;
  std::int64_t elements() const { return rows * cols; }
  Types types() const { return {in_type, out_type}; }
  std::int64_t in_bytes() const { return elements() * std::int64_t(bytes_per_element(in_type)); }
  std::int64_t out_bytes() const { return elements() * std::int64_t(bytes_per_element(out_type)); }
  std::int64_t bytes() const { return in_bytes() + out_bytes(); }  // the least a softmax moves: one read, one write
  auto operator<=>(const Shape&) const = default;
};

std::string to_string(const Shape&);  // "8192 x 50257", "4 x 73 at 1.2 gap 3.0"

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

// A CSV file that begins with dtype,N,C,mode, and may have columns `at` and `gap`: of kernels that have plans; what is in a
// graph also with launches that overlap. Throws UsageError, which names the line.
std::vector<Point> read_points(const std::string& path);

// A simulated machine gets stand-ins that take it milliseconds: as many rows as a warp has lanes, 1/32 of the columns.
// `sample` is the shape of the file that comes with the project; the ladder ends with it. `studies` has no point.
// `goals` is benchmarks/goals.csv: what the fast kernels are measured against; throws UsageError without it.
std::vector<Point> points(Suite, bool simulated, Shape sample = {});

}  // namespace softmax::bench
