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

// A row, and whether what lies around it is as poison() left it: up to 4 KiB behind it, and all ahead of the first.
struct Row {
  std::vector<float> values;
  std::string trespass;  // empty if it is
};
Row download_row(const Buffer& buffer, const Placed& m, std::int64_t row, std::size_t room) {
  const std::size_t begin = row == 0 ? 0 : m.begin(row), first = m.begin(row) - begin;
  const std::size_t next = row + 1 < m.rows.rows ? m.begin(row + 1) : std::max(room, m.end(row));
  std::vector<unsigned char> bytes(std::min(next, m.end(row) + 4096) - begin);
  buffer.download(bytes.data(), bytes.size(), begin);
  Row got{std::vector<float>(std::size_t(m.rows.cols)), {}};
  for (std::size_t i = 0; i < got.values.size(); ++i) got.values[i] = element(&bytes[first], i, m.type);
  const auto row_begin = bytes.begin() + std::ptrdiff_t(first),
             row_end = bytes.begin() + std::ptrdiff_t(m.end(row) - begin);
  const auto written = [](unsigned char byte) { return byte != kPoison; };
  if (const auto hit = std::find_if(bytes.begin(), row_begin, written); hit != row_begin)
    got.trespass =
        text("row %lld: byte %td before its start was written", static_cast<long long>(row), row_begin - hit);
  if (const auto hit = std::find_if(row_end, bytes.end(), written); hit != bytes.end())
    got.trespass = text("row %lld: byte %td past its end was written", static_cast<long long>(row), hit - row_end);
  return got;
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

std::vector<double> sums(const Buffer& matrix, const Placed& m) {
  return matrix.machine().row_sums(static_cast<char*>(matrix.data()) + m.begin(0), m.rows, m.type);
}

// Of all gaps the first and the last element, which read as NaN until somebody writes there.
std::string check_gaps(const Buffer& matrix, const Placed& m) {
  const auto [rows, cols, stride] = m.rows;
  for (const std::int64_t i : {cols, stride - 1}) {
    if (stride == cols) continue;
    const std::vector<double> found = sums(matrix, {m.type, m.at + i, {rows - 1, 1, stride}});
    const auto written = std::ranges::find_if(found, [](double sum) { return !std::isnan(sum); });
    if (written != found.end())
      return text("row %td: element %lld past its end was written", written - found.begin(),
                  static_cast<long long>(i - cols));
  }
  return {};
}

std::string check_sums(const Workspace& ws, Expected& expected, const Traits& traits, const How& how,
                       const Arithmetic& by) {
  const Shape shape = ws.shape();
  const std::int64_t rows = shape.rows, cols = shape.cols;
  reference::ErrorModel model = error_model(traits, problem_of(shape, how), by);
  // How often each row is rescaled; the worst order of a row's elements would allow hundreds of times as much.
  const int threads = rescaling_threads(traits, how.block);
  std::vector<int>& rescales = expected.rescales[threads];
  if (threads && rescales.empty())
    rescales = ws.machine().rescales(ws.in().floats() + shape.at.in, shape.in().rows, threads);
  const std::vector<double> out = sums(ws.out(), shape.out()), in = sums(ws.in(), shape.in());
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
    const Row row = download_row(ws.in(), shape.in(), r, ws.room());
    if (std::memcmp(x.data(), row.values.data(), x.size() * sizeof(float)) != 0 || !row.trespass.empty())
      throw std::runtime_error("row " + std::to_string(r) + " of the input on the " + std::string(ws.machine().id()) +
                               " differs from the host's; the machine, or a kernel that ran before, is wrong");
    expected.rows.push_back({r, std::move(x), {}});
    const std::span<const float> host = expected.rows.back().x;  // stays where it is when the vector of rows grows
    exact.push_back(std::async(how, [host] { return reference::analyse(host); }));
  }
  for (std::size_t i = 0; i < exact.size(); ++i) expected.rows[i].exact = exact[i].get();
  expected.input_sums = sums(ws.in(), shape.in());
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
    const Row got = download_row(ws.out(), ws.shape().out(), want.row, ws.room());
    verdict.wrong = check_row(want, got.values, error_model(traits, problem_of(ws.shape(), how), want.x, by),
                              ws.shape().out_type, verdict.max_ulp);
    if (verdict.wrong.empty()) verdict.wrong = got.trespass;
  }
  if (verdict.wrong.empty()) verdict.wrong = check_gaps(ws.out(), ws.shape().out());
  if (verdict.wrong.empty()) verdict.wrong = check_sums(ws, expected, traits, how, by);
  return verdict;
}

}  // namespace softmax::bench
