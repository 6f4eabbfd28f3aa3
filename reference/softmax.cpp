#include "reference/softmax.hpp"

#include <algorithm>
#include <cmath>

#ifdef __FAST_MATH__
#error "the reference tests for NaN and compensates a sum: -ffast-math removes both"
#endif

namespace softmax::reference {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();

// Neumaier's compensated sum: what each addition loses is collected and added at the end, so the error does not grow
// with the number of terms. Valid while no partial sum overflows; here no term exceeds 1.
class CompensatedSum {
 public:
  void add(long double term) {
    const long double next = sum_ + term;
    // The smaller of the two lost digits, and this order of operations gives exactly those.
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  long double value() const { return sum_ + lost_; }

 private:
  long double sum_ = 0, lost_ = 0;
};

// The numbers' maximum; std::max would let the position of a NaN decide.
float max_of(std::span<const float> row) {
  float max = -kInf;
  for (const float x : row) {
    if (x > max) max = x;
  }
  return max;
}

}  // namespace

Row analyse(std::span<const float> row, long double temperature) {
  Row result;
  result.temperature = temperature;
  const float max = max_of(row);
  result.max = max / temperature;
  if (row.empty()) {
    result.log_sum = -kInf;
    return result;
  }
  const bool has_nan = std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); });
  if (has_nan || std::isinf(result.max)) {
    result.y.assign(row.size(), kNaN);
    result.sum = result.log_sum = result.spread = kNaN;
    return result;
  }

  // The largest term is exactly 1 and stays out of the sum, so that ln S = log1p(others) keeps its digits when the
  // others are below 2^-64.
  CompensatedSum others, spread;
  bool max_seen = false;
  for (const float x : row) {
    const long double e = std::exp(-result.below_max(x));
    result.y.push_back(e);
    if (x == max && !max_seen) {
      max_seen = true;
    } else {
      others.add(e);
    }
    if (e > 0) spread.add(e * result.below_max(x));  // not where x is -inf: 0 * inf
  }
  result.sum = 1 + others.value();
  result.log_sum = std::log1p(others.value());
  result.spread = spread.value() / result.sum;
  for (long double& y : result.y) y /= result.sum;
  return result;
}

std::vector<long double> softmax(std::span<const float> row) { return analyse(row).y; }

std::vector<long double> log_softmax(std::span<const float> row) {
  Row result = analyse(row);
  for (std::size_t i = 0; i < row.size(); ++i) result.y[i] = (row[i] - result.max) - result.log_sum;
  return result.y;
}

long double log_sum_exp(std::span<const float> row) {
  const Row result = analyse(row);
  if (std::isinf(result.max)) {  // the row is empty, or of infinities and NaN
    const bool has_nan = std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); });
    return has_nan ? kNaN : result.max;
  }
  return result.max + result.log_sum;
}

// Needs no guard: in a row of NaN, x - max is NaN at a NaN, at a +inf (inf - inf) and at each -inf of a row without a
// number (-inf - -inf), and one NaN makes the sum NaN.
std::vector<float> three_loops(std::span<const float> row) {
  const float max = max_of(row);

  float sum = 0;
  for (const float x : row) sum += std::exp(x - max);

  std::vector<float> y;
  for (const float x : row) y.push_back(std::exp(x - max) / sum);
  return y;
}

std::vector<float> two_loops(std::span<const float> row) {
  float max = -kInf, sum = 0;
  for (const float x : row) {
    if (x == -kInf) continue;  // adds nothing, and before the first number x - max would be -inf - -inf = NaN
    if (x > max) {
      sum *= std::exp(max - x);  // the first number: 0 * exp(-inf) = 0
      max = x;
    }
    sum += std::exp(x - max);
  }

  std::vector<float> y;
  for (const float x : row) y.push_back(std::exp(x - max) / sum);
  return y;
}

}  // namespace softmax::reference
