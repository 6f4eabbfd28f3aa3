#pragma once
// Which kernel is the fastest for a problem, as it was measured: rules in a text file that people can read. table.csv is
// built in, and is of the GPU that its first lines name.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/library/problem.hpp"

namespace softmax {

// For problems of these types, of so many rows and columns at most.
struct Rule {
  int in_bytes = 0, out_bytes = 0;  // an element
  std::int64_t rows = 0, cols = 0;
  int version = 0;
  Plan plan;

  bool fits(Types, std::int64_t rows, std::int64_t cols) const;
  bool operator==(const Rule&) const = default;
};

// In the order of the file: the first rule that fits and whose kernel takes the problem decides.
using Table = std::vector<Rule>;

// "in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks", then a line a rule; an empty field of rows or cols is no
// limit, one of threads, vectors or blocks leaves it to the kernel. Lines that begin with # are comments. Throws
// std::runtime_error, which names `source` and the line.
Table parse_table(std::string_view text, const std::string& source);
Table read_table(const std::string& path);  // throws too if it cannot be read, or asks a kernel for a plan it has not
std::string to_text(const Table&);          // that parse_table reads

// The table that Auto obeys: the built-in one, or the file that the environment names in SOFTMAX_TABLE, or what was set.
// Not to be set while another thread asks.
const Table& table();
void set_table(Table);
std::uint64_t table_generation();  // another after each set_table; above 0

}  // namespace softmax
