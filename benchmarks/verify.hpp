#pragma once
// Is an output right? Asked before a kernel is timed and again after it: a wrong kernel gets no number.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/workspace.hpp"
#include "reference/softmax.hpp"

namespace softmax::bench {

// Some rows of a shape in long double, computed once and shared by all kernels and block sizes.
struct Expected {
  struct Row {
    std::int64_t row = 0;
    std::vector<float> x;
    reference::Row exact;
  };
  std::vector<Row> rows;
  // Rows that must be NaN, in order; only a file has any.
  std::vector<std::int64_t> nan_rows;
  std::map<int, std::vector<int>> rescales;  // of every row, by the number of threads; filled when first asked for
  std::vector<double> input_sums;  // of every row, as the machine adds them: a kernel must not write to its input
};

// The rows to look at, sorted: the first, the last, those beside block boundaries and beside offsets where 31 and 32
// bits end, and some that a hash picks. At most 64, and fewer when rows are long: long double takes about 0.1 us an
// element.
std::vector<std::int64_t> rows_to_verify(Shape);

// Throws std::runtime_error if the workspace's input is not what `input` says: then every comparison would be void.
Expected expect(const Workspace&, const Input& input);

struct Verdict {
  std::string wrong;   // empty if all is right, else the first place that is not: row, column, got, expected, bound
  double max_ulp = 0;  // the largest error over the verified rows
};
// Compares what a kernel of these traits left in the workspace's output: Expected's rows element by element within
// their error bound, every row's sum, what lies between rows, the guard bands, and that the input is unchanged.
Verdict verify(const Workspace&, Expected&, const Traits&, const How&);

}  // namespace softmax::bench
