// Calls the installed library as a stranger would: on the CPU device, and its errors on any machine.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <softmax/softmax.hpp>
#include <string>
#include <vector>

namespace {

using softmax::DataType;
using softmax::Device;
using softmax::Problem;

void check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "consumer: %s\n", what.c_str());
  std::exit(1);
}
template <class Error, class F>
void refuses(F f, const std::string& naming) {
  std::string said = "nothing was thrown";
  try {
    f();
  } catch (const Error& e) {
    said = e.what();
  }
  check(said.find(naming) != std::string::npos, "'" + said + "' does not name '" + naming + "'");
}

// At the beginning of a line of the cache: the order of additions depends on where a row begins.
struct alignas(128) Line {
  std::uint32_t words[32];
  bool operator==(const Line&) const = default;
};
// A matrix in the memory of the CPU device, which is the program's own.
struct Matrix {
  Matrix(DataType t, std::int64_t r, std::int64_t c) : type(t), rows(r), cols(c), lines(std::size_t(r * c) / 32 + 1) {}
  float get(std::int64_t i) const {
    return type == DataType::fp32 ? floats()[i] : std::bit_cast<float>(std::uint32_t(halves()[i]) << 16);
  }
  void set(std::int64_t i, float x) {
    if (type == DataType::fp32)
      floats()[i] = x;
    else
      halves()[i] = std::uint16_t(std::bit_cast<std::uint32_t>(x) >> 16);  // of numbers that bf16 has
  }
  void* data() const { return const_cast<Line*>(lines.data()); }
  float* floats() const { return static_cast<float*>(data()); }
  std::uint16_t* halves() const { return static_cast<std::uint16_t*>(data()); }

  DataType type;
  std::int64_t rows, cols;
  std::vector<Line> lines;
};
Matrix input(DataType type, std::int64_t rows, std::int64_t cols, float times) {
  Matrix m(type, rows, cols);
  for (std::int64_t i = 0; i < rows * cols; ++i) m.set(i, times * float(i * 37 % 101) / 16);
  return m;
}

void forward(const Matrix& in, Matrix& out, float temperature) {
  Problem p{.rows = in.rows,
            .cols = in.cols,
            .in_stride = in.cols,
            .out_stride = in.cols,
            .in_type = in.type,
            .out_type = out.type,
            .in = in.data(),
            .out = out.data(),
            .temperature = temperature};
  const std::int64_t bytes = softmax::workspace_bytes(p, Device::cpu);
  std::vector<std::max_align_t> workspace(std::size_t(bytes) / sizeof(std::max_align_t) + 1);
  if (bytes > 0) p.workspace = workspace.data();
  softmax::forward(p, Device::cpu);
  // Half a unit in the last place of a bf16 is 2^-9 of it; of floats, exp's error and that of the sum are far below 2^-16.
  const double most = out.type == DataType::fp32 ? 0x1p-16 : 0x1p-8;
  for (std::int64_t r = 0; r < in.rows; ++r) {
    double sum = 0;
    for (std::int64_t i = r * in.cols; i < (r + 1) * in.cols; ++i) sum += out.get(i);
    check(std::abs(sum - 1) <= most, softmax::picked(p, Device::cpu) + ": a row's sum is " + std::to_string(sum));
  }
}

}  // namespace

int main() {
  for (const DataType in : {DataType::fp32, DataType::bf16})
    for (const DataType out : {DataType::fp32, in})
      for (const std::int64_t cols : {100, 3000, 9000, 140000}) {
        const Matrix x = input(in, 2, cols, 1), twice = input(in, 2, cols, 2);
        Matrix y(out, 2, cols), z(out, 2, cols);
        forward(x, y, 1);
        forward(twice, z, 2);
        check(y.lines == z.lines, "a temperature of 2 is not half of everything");
        if (in != out) continue;
        Matrix same = x;
        forward(same, same, 1);
        check(same.lines == y.lines, "in place is not the same");
      }

  float cell = 3;
  Problem p{.rows = 1, .cols = 1, .in_stride = 1, .out_stride = 1, .in = &cell, .out = &cell};
  softmax::forward(p, Device::cpu);
  check(cell == 1, "softmax of one number is 1");
  p.in_stride = 0;
  refuses<softmax::InvalidProblem>([&] { softmax::forward(p, Device::cpu); }, "at least cols = 1, not 0");
  refuses<std::runtime_error>([] { softmax::load_table("/no/table"); }, "/no/table");
  p.in_stride = 1;
  try {
    std::printf("there is a GPU, which would run %s\n", softmax::picked(p, Device::gpu).c_str());
  } catch (const softmax::DeviceError& e) {
    std::printf("no GPU is used: %s\n", e.what());
  }
}
