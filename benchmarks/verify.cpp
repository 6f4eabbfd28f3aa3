#include "benchmarks/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <future>
#include <set>
#include <stdexcept>

#include "kernels/input.hpp"
#include "kernels/narrow.hpp"
#include "properties/bounds.hpp"

namespace softmax::bench {
namespace {

std::string text(const char* format, auto... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

std::vector<float> download_row(const Buffer& buffer, std::int64_t row, std::int64_t cols, DataType type) {
  std::vector<float> values(static_cast<std::size_t>(cols));
  std::vector<unsigned char> bytes(values.size() * bytes_per_element(type));
  buffer.download(bytes.data(), bytes.size(), std::size_t(row) * bytes.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(bytes.data(), i, type);
  return values;
}

int digits(DataType type) { return type == DataType::fp32 ? 24 : type == DataType::fp16 ? 11 : 8; }

// |value - exact| in units of the spacing of a type's numbers at exact.
double ulp_error(float value, long double exact, DataType type) {
  if (type == DataType::fp32 || !std::isfinite(value) || !std::isfinite(exact))
    return reference::ulp_error(value, exact);
  const int least = type == DataType::fp16 ? -14 : -126;
  const int exponent = exact == 0 ? least : std::max(std::ilogb(exact), least);
  return double(std::fabs(value - exact) / std::ldexp(1.0L, exponent - digits(type) + 1));
}

bool becomes_nan(const float* x, std::int64_t cols) {
  constexpr float kInf = INFINITY;
  bool has_number = false;
  for (std::int64_t i = 0; i < cols; ++i) {
    if (std::isnan(x[i]) || x[i] == kInf) return true;
    has_number |= x[i] != -kInf;
  }
  return !has_number;
}

// Empty if the row is right. Raises max_ulp to the row's largest error.
std::string check_row(const Expected::Row& want, const std::vector<float>& got, const reference::ErrorModel& model,
                      DataType type, double& max_ulp) {
  const reference::Row& exact = want.exact;
  // Times y, this is at most any element's bound: bounds grow with the distance d from the maximum, and y <= 1. It
  // settles nearly all elements, at a tenth of the price.
  const long double quick = reference::element_bound(model, 1, 0, exact.spread);
  const long double spacings = std::ldexp(1.0L, digits(type));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double y = exact.y[i], error = std::fabs(got[i] - y);
    // An error is at most 2^digits error / y spacings at y.
    if (y > 0x1p-120L && error <= y * quick && error * spacings <= y * max_ulp) continue;
    const bool nan = std::isnan(y);
    const long double bound = nan ? 0 : reference::element_bound(model, y, exact.max - want.x[i], exact.spread);
    if (nan ? !std::isnan(got[i]) : !(error <= bound))
      return text("row %lld, column %zu: got %.9g, expected %.9Lg, bound %.3Lg", static_cast<long long>(want.row), i,
                  std::isnan(got[i]) ? NAN : double(got[i]), y, bound);  // not "-nan"
    max_ulp = std::max(max_ulp, ulp_error(got[i], y, type));
  }
  return {};
}

std::vector<double> sums(const Workspace& ws, const Buffer& matrix, DataType type) {
  return ws.machine().row_sums(matrix.data(), ws.shape().layout(), type);
}

std::string check_sums(const Workspace& ws, Expected& expected, const Traits& traits, const How& how,
                       const Arithmetic& by) {
  const Shape shape = ws.shape();
  const std::int64_t rows = shape.rows, cols = shape.cols;
  reference::ErrorModel model = error_model(traits, problem_of(shape, how), by);
  // How often each row is rescaled; the worst order of a row's elements would allow hundreds of times as much.
  const int threads = rescaling_threads(traits, how.block);
  std::vector<int>& rescales = expected.rescales[threads];
  if (threads && rescales.empty()) rescales = ws.machine().rescales(ws.in().floats(), ws.shape().layout(), threads);
  const std::vector<double> out = sums(ws, ws.out(), shape.out_type), in = sums(ws, ws.in(), shape.in_type);
  // D is at most ln cols. The machine adds in double, in an order of its own.
  const auto bound_of = [&] { return reference::row_sum_bound(model, cols, std::log(double(cols))) + cols * 0x1p-53L; };
  long double bound = bound_of();
  for (std::int64_t r = 0; r < rows; ++r) {
    const double sum = out.at(std::size_t(r));
    const bool nan = std::binary_search(expected.nan_rows.begin(), expected.nan_rows.end(), r);
    if (threads) {
      model.rescales = rescales.at(std::size_t(r));
      bound = bound_of();
    }
    if (nan ? std::isnan(sum) : std::fabs(sum - 1) <= bound) continue;
    return text("row %lld: its sum is %.9g, expected %s, bound %.3Lg", static_cast<long long>(r), sum,
                nan ? "nan" : "1", bound);
  }
  // Bit for bit, since a file's rows may sum to NaN.
  for (std::int64_t r = 0; r < rows; ++r)
    if (std::memcmp(&in.at(std::size_t(r)), &expected.input_sums.at(std::size_t(r)), sizeof(double)) != 0)
      return text("row %lld of the input was changed", static_cast<long long>(r));
  return {};
}

}  // namespace

std::vector<std::int64_t> rows_to_verify(Shape shape) {
  std::set<std::int64_t> rows;
  // Long double takes its time: 2^18 elements at most, but 8 rows, and 64 while those are at most 2^20.
  const std::int64_t budget = std::max((1 << 18) / shape.cols, std::clamp<std::int64_t>((1 << 20) / shape.cols, 8, 64));
  const auto limit = std::size_t(std::min(shape.rows, budget));
  const auto add = [&](std::int64_t row) {
    if (row >= 0 && row < shape.rows && rows.size() < limit) rows.insert(row);
  };
  add(0);
  add(shape.rows - 1);
  // Where an offset in elements or bytes leaves 31 or 32 bits: 2^29 floats are 2^31 bytes.
  for (const int bits : {29, 30, 31, 32})
    for (const int beside : {0, 1}) add((std::int64_t{1} << bits) / shape.cols + beside);
  // The last block of rows is the one that may be part empty. Then the first boundaries of blocks of rows.
  for (const std::int64_t block : {32, 64, 128, 256, 512, 1024}) add((shape.rows - 1) / block * block);
  for (const std::int64_t block : {1, 32, 64, 128, 256, 512, 1024})
    for (const int beside : {-1, 0}) add(block + beside);
  if (std::int64_t(limit) == shape.rows)
    for (std::int64_t r = 0; r < shape.rows; ++r) add(r);
  for (std::uint64_t i = 0; i < 4 * limit; ++i)
    add(std::int64_t(random_bits(shape.cols, i) % std::uint64_t(shape.rows)));
  return {rows.begin(), rows.end()};
}

Expected expect(const Workspace& ws, const Input& input) {
  Expected expected;
  const Shape shape = ws.shape();
  // Long rows of long double: as many at a time as there are.
  const auto how = shape.cols < 4096 ? std::launch::deferred : std::launch::async;
  std::vector<std::future<reference::Row>> exact;
  for (const std::int64_t r : rows_to_verify(shape)) {
    std::vector<float> x = input.row(shape, r);
    if (std::memcmp(x.data(), download_row(ws.in(), r, shape.cols, shape.in_type).data(), x.size() * sizeof(float)) !=
        0)
      throw std::runtime_error("row " + std::to_string(r) + " of the input on the " + std::string(ws.machine().id()) +
                               " differs from the host's; the machine, or a kernel that ran before, is wrong");
    expected.rows.push_back({r, std::move(x), {}});
    const std::span<const float> row = expected.rows.back().x;  // stays where it is when the vector of rows grows
    exact.push_back(std::async(how, [row] { return reference::analyse(row); }));
  }
  for (std::size_t i = 0; i < exact.size(); ++i) expected.rows[i].exact = exact[i].get();
  expected.input_sums = sums(ws, ws.in(), shape.in_type);
  if (shape.file)
    for (std::int64_t r = 0; r < shape.rows; ++r)
      if (becomes_nan(input.file->data.data() + r * shape.cols, shape.cols)) expected.nan_rows.push_back(r);
  return expected;
}

Verdict verify(const Workspace& ws, Expected& expected, const Traits& traits, const How& how) {
  Verdict verdict;
  verdict.wrong = ws.damage();
  const Arithmetic by = arithmetic_of(ws.machine());
  for (const Expected::Row& want : expected.rows) {
    if (!verdict.wrong.empty()) return verdict;
    const std::vector<float> got = download_row(ws.out(), want.row, ws.shape().cols, ws.shape().out_type);
    verdict.wrong = check_row(want, got, error_model(traits, problem_of(ws.shape(), how), want.x, by),
                              ws.shape().out_type, verdict.max_ulp);
  }
  if (verdict.wrong.empty()) verdict.wrong = check_sums(ws, expected, traits, how, by);
  return verdict;
}

}  // namespace softmax::bench
