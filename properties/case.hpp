#pragma once
// One input of a law, small enough to print in a line: the data follow from it. RapidCheck draws and shrinks cases,
// never data.

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::properties {

// What a row looks like. Each is here because some wrong kernel gets all the others right.
enum class Kind {
  normal,      // about N(0, 1): everything counts
  wide,        // the same times 10
  scales,      // neighbouring rows 100 times apart: shows what one row leaves behind for the next
  constant,    // 1 / cols, bit for bit
  spike20,     // one 20 among zeros, at another place in each row: the rest still counts, so a dropped element shows
  spike200,    // one 200: overflows whatever did not see the maximum
  creeping,    // every element is a new maximum, by next to nothing
  ascending,   // every element is a new maximum
  descending,  // no element is, but the first
  grid,        // multiples of grid_step, whose differences are exact
  subnormal,   // too small to matter, so 1 / cols
  mask_first,  // a third of the row, at its beginning, is -inf
  mask_last,
  mask_every_other,
  mask_all_but_one,
  few_equal,  // k equal ones, the rest is -inf: 1 / k, bit for bit
};
std::string_view name(Kind);
bool masked(Kind);

struct Case {
  Kind kind = Kind::normal;
  std::int64_t rows = 1, cols = 1;
  float offset = 0;                     // added to every element
  int in_padding = 0, out_padding = 0;  // elements between a row's end and the next row's start
  int in_shift = 0, out_shift = 0;      // elements by which the pointers miss a 256-byte boundary
  int block = 32;                       // 0 where the kernel chooses for itself
  Types types = {};
  Plan plan = {};
  int max_blocks = 0;     // never drawn: a law's own, see Problem
  bool in_place = false;  // then out_padding and out_shift are the input's
  float temperature = 1;
  bool each_row = false;  // the rows have their own, see temperature_of
  Schedule schedule = {};
  std::uint64_t seed = 0;

  bool operator==(const Case&) const = default;
};
// One readable line, and the case of such a line. Throws std::invalid_argument, which names what it cannot read.
std::ostream& operator<<(std::ostream&, const Case&);
Case parse_case(const std::string&);

// The problem of a case, without pointers: what a kernel says before there is any memory.
Problem problem_of(const Case&);

// The threads that share the rows of a case, over all rows: what the CPU device takes its time for. 0 without a plan.
std::int64_t threads_of(const Kernel&, const Case&);

// Whether it takes rows with something between them. V13 takes none.
bool takes_gaps(const Kernel&);

// What row r is divided by; 1 where the case has no temperature.
float temperature_of(const Case&, std::int64_t r);

// Row-major, rows * cols, without padding; numbers that the input's type has.
std::vector<float> values(const Case&);
// The nearest numbers of that type, and no infinity where there was none.
void round_to(DataType, std::vector<float>& x);
// An exact step of Kind::grid and the number of them that a row is drawn from: shifted by twice as many, all is exact.
struct GridStep {
  float step;
  std::int64_t count;
};
GridStep grid_step(DataType);

// Cases that a kernel takes: its block sizes, types, plans, shapes and alignment; columns around every width that a warp, block, vector or tile might have, and
// some longer than any of them; at most 2^17 elements. Offsets at 0, where rounding is finest, up to where a sentinel
// might sit. Temperatures other than 1 and work in place only where they are asked for and the kernel has them.
struct Ask {
  bool temperature = false, in_place = false;
};
rc::Gen<Case> cases(const Kernel&, std::vector<Kind> kinds, std::vector<float> offsets = {0}, Ask ask = {});

// Around every power of two up to 131072, and lengths that people meet: 781 from Triton's tutorial, 50257 from GPT-2, 128256
// from Llama 3; 12288 is what 48 KiB of shared memory hold.
std::vector<std::int64_t> column_list();

// The kinds without any -inf, and those with one.
std::vector<Kind> finite_kinds();
std::vector<Kind> masked_kinds();
std::vector<Kind> all_kinds();

// Rows that no draw would find: the ends of float's range, where exp underflows, and every mix of NaN and infinities.
std::vector<std::vector<float>> special_rows();

}  // namespace softmax::properties
