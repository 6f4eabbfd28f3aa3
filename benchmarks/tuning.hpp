#pragma once
// What `tune` decides without a GPU: which problems stand for a rule, what is worth measuring there, who wins, and the
// table that comes of it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/suites.hpp"
#include "kernels/kernel.hpp"
#include "kernels/library/table.hpp"

namespace softmax::bench {

// Problems that get the same pick: at most `rows` rows, more than `below` and at most `cols` columns.
struct Cell {
  Types types;
  std::int64_t rows = 0;  // 0: many, of so many bytes of input that memory decides
  std::int64_t below = 0, cols = 0;
  std::int64_t many_bytes = 0;

  Shape high() const { return at(cols); }
  Shape low() const { return at(below + 1); }  // where rows are no whole vectors, if the cell has such
  Shape at(std::int64_t cols) const;
};
std::string to_string(const Cell&);  // "fp32 8 x 1,048,576", "fp32 many (131,072) x 1,024"

// In the order of the table: rows ascending with many last, then columns ascending. A small one is for the CPU device.
std::vector<Cell> grid(Types, bool small);

struct Pick {
  int version = 0;
  Plan plan = {};  // `shared` is left to the kernel, or all of it
  bool operator==(const Pick&) const = default;
};
std::string to_string(const Pick&);  // "V11 256x8 c64", "V8"

// What could be the fastest of these kernels, V8 to V13 of one machine, and takes both ends of the cell: the plan that
// a kernel has by itself, which is no plan here, and all others. Left out: blocks most of whose threads would have
// nothing, and plans with registers to spare where the same with fewer holds the row.
std::vector<Pick> candidates(const Cell&, std::span<const Kernel* const>, int multiprocessors);

// A pick's times, one at each end of the cell, and the worst of their ratios to the fastest there.
struct Timed {
  Pick pick;
  std::vector<double> seconds;
  double ratio = 0;
};
// Computes the ratios and sorts by them; all have times at the same ends.
std::vector<Timed> ranked(std::vector<Timed>);
// Those of a ranked list that are at most so many times worse than the first.
std::vector<Timed> within(std::vector<Timed>, double factor);
// The first of a ranked list; within 0.5 % of it rather what the neighbour has, which keeps the table short. Throws
// std::runtime_error if the list is empty.
Pick decide(const std::vector<Timed>& ranked, const std::optional<Pick>& neighbour);

// Decisions in the order of grid(), also of several types one after another, as rules. Adjacent columns of one pick are
// one rule, the last column has no limit where the pick takes any row, and rows that get what more of them get have no
// rules of their own.
struct Decision {
  Cell cell;
  Pick pick;
};
Table merge(std::span<const Decision>);

}  // namespace softmax::bench
