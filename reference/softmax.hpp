#pragma once
// One row of softmax in long double, to judge kernels by, and the two classic algorithms in float, to read.
//
// Every function takes one row of any length, keeps its order and throws nothing but std::bad_alloc. An empty row gives
// an empty result. A -inf beside a finite value gives 0. A row with a NaN or a +inf, or of nothing but -inf, gives NaN
// everywhere.

#include <limits>
#include <span>
#include <vector>

namespace softmax::reference {

// The reference must be so much better than float (24 bits) that its own error never decides a test.
static_assert(std::numeric_limits<long double>::digits >= 64, "the reference needs a long double of 64 bits or more");

// What the error bounds need to know about a row. For a row of NaN all of it but max is NaN; for an empty row max and
// log_sum are -inf and the rest is 0.
struct Row {
  std::vector<long double> y;
  long double temperature = 1;
  long double max = 0;      // of the numbers in the row, divided by the temperature
  long double sum = 0;      // S = sum of exp(x_j - max), in [1, cols]
  long double log_sum = 0;  // ln S, accurate near 0 too
  long double spread = 0;   // D = sum of y_j * (max - x_j), in [0, ln(cols / S)]

  long double below_max(float x) const { return max - x / temperature; }  // d, for an element of the row
};
// Of the row divided by a temperature above 0.
Row analyse(std::span<const float> row, long double temperature = 1);

// exp(x_i - max) / S.
std::vector<long double> softmax(std::span<const float> row);
// (x_i - max) - ln S, and not x_i - (max + ln S): for [1e8, 1e8] in float the latter gives 0 in place of -ln 2.
std::vector<long double> log_softmax(std::span<const float> row);
// max + ln S. Unlike softmax it is well defined beyond finite rows: -inf for an empty row or one of nothing but -inf,
// +inf for a row with a +inf, NaN only for a row with a NaN.
long double log_sum_exp(std::span<const float> row);

// The safe algorithm in float, from left to right: maximum, sum, output.
std::vector<float> three_loops(std::span<const float> row);
// The online algorithm in float (Milakov and Gimelshein 2018): maximum and sum in one loop, then the output.
std::vector<float> two_loops(std::span<const float> row);

}  // namespace softmax::reference
