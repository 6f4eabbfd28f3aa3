#pragma once
// What the laws' checks have in common, and those that laws.cpp lists from another file. Each gives an empty text if all is
// right, else the first thing that is not.

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "properties/case.hpp"
#include "properties/runner.hpp"
#include "reference/error.hpp"
#include "reference/softmax.hpp"

namespace softmax::properties {

std::string without_sign_of_nan(std::string);  // which means nothing
template <class... T>
std::string say(const T&... parts) {
  std::ostringstream out;
  out.precision(9);
  (out << ... << parts);
  return without_sign_of_nan(out.str());
}

bool same_bits(float a, float b);
bool fast(const Kernel&);

// With the temperature of row r.
reference::ErrorModel model(const Kernel&, const Case&, std::span<const float> row, std::int64_t r = 0);

// Of the i-th element of a row whose exact softmax this is.
long double bound_of(const reference::ErrorModel&, const reference::Row& exact, std::span<const float> x,
                     std::size_t i);

// First place where two outputs differ in their bits.
std::string difference(const std::vector<float>& a, const std::vector<float>& b, std::int64_t cols, const char* what);

// Applies `judge(row of x, row of y, r)` to every row; the first complaint wins.
template <class Judge>
std::string each_row(const Case& c, const std::vector<float>& x, const std::vector<float>& y, Judge judge) {
  for (std::int64_t r = 0; r < c.rows; ++r)
    if (const std::string why = judge(row(x, c.cols, r), row(y, c.cols, r)); !why.empty())
      return say("row ", r, ": ", why);
  return {};
}

std::string judge_sum(const Kernel&, const Case&, std::span<const float> x, std::span<const float> y);
std::string judge_elements(const Kernel&, const Case&, std::span<const float> x, std::span<const float> y,
                           std::int64_t r = 0);
std::string judge_range(std::span<const float> y);

// Laws of relations.cpp.
std::string permutation_is_harmless(const Kernel&, const Case&);
std::string far_elements_add_nothing(const Kernel&, const Case&);
std::string halves_make_a_row(const Kernel&, const Case&);
std::string outputs_keep_ratios(const Kernel&, const Case&);
std::string maximum_stays_maximum(const Kernel&, const Case&);
std::string two_columns_are_logistic(const Kernel&, const Case&);

}  // namespace softmax::properties
