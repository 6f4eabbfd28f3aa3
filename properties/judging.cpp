#include "properties/judging.hpp"

#include <bit>
#include <cmath>

#include "properties/bounds.hpp"

namespace softmax::properties {

std::string without_sign_of_nan(std::string text) {
  for (std::size_t at; (at = text.find("-nan")) != std::string::npos;) text.erase(at, 1);
  return text;
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

bool fast(const Kernel& k) { return k.machine().math() == "fast"; }

reference::ErrorModel model(const Kernel& k, const Case& c, std::span<const float> row, std::int64_t r) {
  Problem p = problem_of(c);
  p.temperature = temperature_of(c, r);
  return error_model(k.traits(), p, row, arithmetic_of(k.machine()));
}

long double bound_of(const reference::ErrorModel& m, const reference::Row& exact, std::span<const float> x,
                     std::size_t i) {
  return reference::element_bound(m, exact.y[i], exact.below_max(x[i]), exact.spread);
}

std::string difference(const std::vector<float>& a, const std::vector<float>& b, std::int64_t cols, const char* what) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i]))
      return say("row ", std::int64_t(i) / cols, ", column ", std::int64_t(i) % cols, ": ", a[i], " but ", b[i], " ",
                 what);
  return {};
}

std::string judge_sum(const Kernel& k, const Case& c, std::span<const float> x, std::span<const float> y) {
  long double sum = 0;
  for (float v : y) sum += v;
  const long double bound = reference::row_sum_bound(model(k, c, x), c.cols, reference::analyse(x).spread);
  return !(std::fabs(sum - 1) <= bound) ? say("sums to 1 + ", sum - 1, ", allowed ", bound) : "";
}

std::string judge_elements(const Kernel& k, const Case& c, std::span<const float> x, std::span<const float> y,
                           std::int64_t r) {
  const reference::Row exact = reference::analyse(x, temperature_of(c, r));
  const reference::ErrorModel m = model(k, c, x, r);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double bound = bound_of(m, exact, x, i);
    if (!(std::fabs(y[i] - exact.y[i]) <= bound))
      return say("column ", i, ": ", y[i], ", exactly ", exact.y[i], ", off by ", std::fabs(y[i] - exact.y[i]),
                 ", allowed ", bound);
  }
  return {};
}

std::string judge_range(std::span<const float> y) {
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!(y[i] >= 0 && y[i] <= 1)) return say("column ", i, ": ", y[i], " is not in [0, 1]");
  return {};
}

}  // namespace softmax::properties
