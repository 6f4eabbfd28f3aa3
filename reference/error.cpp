#include "reference/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace softmax::reference {
namespace {

constexpr long double kInf = std::numeric_limits<long double>::infinity();

// Floats in order as integers: the bits of a positive float already are; negative ones run the other way.
std::int64_t ordinal(float x) {
  const std::int64_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffff;
  return std::signbit(x) ? -magnitude : magnitude;
}

// Each factor of the sum costs an exp, and the product a rounding.
double factors(const ErrorModel& m) { return m.online ? m.rescales + m.merges : 0; }

// Roundings of the additions and the rescaling products, in units of u.
double sum_roundings(const ErrorModel& m) {
  const double count = m.additions + factors(m);
  return m.double_sum ? count * kDoubleRounding + 1 : count;
}

long double amplify(long double b) { return b < 1 ? b / (1 - b) : kInf; }

void require(bool holds, const char* what, std::int64_t value) {
  if (!holds)
    throw std::invalid_argument(std::string("softmax::reference: ") + what + ", not " + std::to_string(value));
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t ceil_log2(std::int64_t n) { return n < 2 ? 0 : std::bit_width(std::uint64_t(n - 1)); }

}  // namespace

std::int64_t ulp_distance(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<std::int64_t>::max();
  return std::abs(ordinal(a) - ordinal(b));
}

double ulp_error(float value, long double exact) {
  if (std::isnan(value) && std::isnan(exact)) return 0;
  if (std::isinf(value) && value == float(exact)) return 0;
  if (!std::isfinite(value) || !std::isfinite(exact)) return std::numeric_limits<double>::infinity();
  // Below 2^-126 floats are evenly spaced. From 2^128 on there are none: the last spacing goes on.
  const int exponent = exact == 0 ? -126 : std::clamp(std::ilogb(exact), -126, 127);
  return double(std::fabs(value - exact) / std::ldexp(1.0L, exponent - 23));
}

long double relative_error(const ErrorModel& m, long double d, long double spread) {
  // exp turns the relative error of its argument into d times as much: of this term, and on average D of the sum's, plus
  // what is of second order. Online, the arguments of a term and of its rescaling factors add up to d again, so range costs
  // nothing more.
  const ExpError sum = m.sum_exp.value_or(m.exp);
  return kUnit * ((m.a + m.exp.kappa) * d + (m.a + sum.kappa) * spread + kSecondOrder + 2 * m.scaled_max + m.exp.eps0 +
                  sum.eps0 * (1 + factors(m)) + sum_roundings(m) + m.divide + m.output.relative);
}

long double element_bound(const ErrorModel& m, long double y, long double d, long double spread) {
  const long double eta = m.eta + m.output.absolute;
  // exp(-110) < 2^-158: exact and computed terms both lie within 2 float spacings of 0, and the sum is at least the
  // largest term, 1. Without this case a -inf, or anything 2^24 below the maximum, would have no bound at all.
  if (d >= 110) return eta;
  return y * amplify(relative_error(m, d, spread)) + eta;
}

long double row_sum_bound(const ErrorModel& m, std::int64_t cols, long double spread) {
  // Safe: the exponentials cancel, being the same in the sum and the outputs. Online they were taken against other
  // maxima, or they are other ones: the outputs' errors remain, averaged, so that d becomes D.
  const bool cancel = !m.online && !m.sum_exp;
  const long double b =
      cancel ? kUnit * (sum_roundings(m) + m.divide + m.output.relative) : relative_error(m, spread, spread);
  return amplify(b) + static_cast<long double>(cols) * (m.eta + m.output.absolute);
}

std::int64_t merges(Order order, std::int64_t cols, int threads) {
  require(cols >= 0, "cols must be 0 or more", cols);
  if (order == Order::sequential) return 0;
  if (order == Order::warp) threads = 32;
  require(threads >= 1, "threads must be 1 or more", threads);
  const std::int64_t busy = std::min<std::int64_t>(threads, cols);  // the others hold an exact 0
  const std::int64_t in_warp = ceil_log2(std::min<std::int64_t>(busy, 32)), warps = ceil_divide(busy, 32);
  switch (order) {
    case Order::block_tree: return ceil_log2(busy);
    case Order::block_serial: return in_warp + std::max<std::int64_t>(warps - 1, 0);
    default: return in_warp + ceil_log2(warps);
  }
}

std::int64_t additions(Order order, std::int64_t cols, int threads) {
  const std::int64_t tree = merges(order, cols, threads);
  if (cols == 0) return 0;
  const std::int64_t strided = order == Order::sequential ? 1 : order == Order::warp ? 32 : threads;
  return ceil_divide(cols, strided) - 1 + tree;
}

std::int64_t running_max_updates(std::span<const float> row, int threads) {
  require(threads >= 1, "threads must be 1 or more", threads);
  const std::size_t stride = std::size_t(threads);
  std::int64_t most = 0;
  for (std::size_t first = 0; first < std::min(stride, row.size()); ++first) {
    float max = -std::numeric_limits<float>::infinity();
    std::int64_t updates = 0;
    for (std::size_t i = first; i < row.size(); i += stride) {
      if (!(row[i] > max)) continue;
      updates += !std::isinf(max);
      max = row[i];
    }
    most = std::max(most, updates);
  }
  return most;
}

}  // namespace softmax::reference
