#include "benchmarks/workspace.hpp"

#include <algorithm>

#include "kernels/input.hpp"
#include "kernels/narrow.hpp"

namespace softmax::bench {
namespace {

// Every set begins where an allocation of its own might: at a multiple of 256 bytes. So does what is copied.
std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
std::size_t room_of(Shape shape) {
  const std::int64_t last = shape.rows - 1;
  return shape.dense() ? 0 : aligned(std::max(shape.in().end(last), shape.out().end(last)) + 256);
}
// Of the input, the output and what is copied from one to the other.
std::size_t bytes_of(Shape shape) {
  return room_of(shape) + std::size_t(std::max(shape.in_bytes(), shape.out_bytes()));
}
char* past(void* at, std::size_t bytes) { return static_cast<char*>(at) + bytes; }
std::size_t stride_of(Shape shape, int sets) { return sets == 1 ? 0 : aligned(bytes_of(shape)); }

}  // namespace

std::vector<float> Input::row(Shape shape, std::int64_t row) const {
  const std::int64_t cols = shape.cols;
  std::vector<float> x(static_cast<std::size_t>(cols));
  if (shape.file) {
    std::copy_n(file->data.begin() + row * cols, cols, x.begin());
  } else {
    for (std::int64_t i = 0; i < cols; ++i) x[std::size_t(i)] = noise(seed, std::uint64_t(row * cols + i));
  }
  for (float& value : x) value = rounded(value, shape.in_type);
  return x;
}

Workspace::Workspace(Machine& machine, Shape shape, const Input& input, int sets)
    : shape_(shape),
      sets_(sets),
      room_(room_of(shape)),
      stride_(stride_of(shape, sets)),
      in_(machine, bytes_of(shape) + std::size_t(sets - 1) * stride_),
      out_(machine, in_.bytes()) {
  if (shape.file) {
    std::vector<unsigned char> data(std::size_t(shape.in_bytes()));
    for (std::size_t i = 0; i < std::size_t(shape.elements()); ++i)
      set_element(data.data(), i, shape.in_type, input.file->data[i]);
    in_.upload(data.data(), data.size());
  } else {
    machine.fill_noise(past(in_.data(), room_), std::size_t(shape.elements()), input.seed, shape.in_type);
  }
  if (!shape.dense()) spread();
  for (int set = 1; set < sets; ++set) machine.copy(Machine::kDriverCopy, in(set), in_.data(), bytes_of(shape));
}

// The copy's rows, where the shape has its own. What is not a row stays poison, which is NaN to whoever reads it.
void Workspace::spread() {
  const Placed to = shape_.in();
  if (shape_.gap.in == 0) {
    machine().copy(Machine::kDriverCopy, past(in_.data(), to.begin(0)), past(in_.data(), room_),
                   std::size_t(shape_.in_bytes()));
    return;
  }
  const std::size_t row = to.end(0) - to.begin(0), stride = to.begin(1) - to.begin(0);
  const auto most = std::max<std::int64_t>(1, std::int64_t((64 << 20) / stride));  // 64 MiB of them at a time
  std::vector<unsigned char> dense, spread;
  for (std::int64_t r = 0; r < shape_.rows; r += most) {
    const auto rows = std::size_t(std::min(most, shape_.rows - r));
    dense.resize(rows * row);
    spread.assign(rows * stride, kPoison);
    in_.download(dense.data(), dense.size(), room_ + std::size_t(r) * row);
    for (std::size_t i = 0; i < rows; ++i) std::copy_n(&dense[i * row], row, &spread[i * stride]);
    in_.upload(spread.data(), spread.size() - (stride - row), to.begin(r));
  }
}

std::string Workspace::no_room(const Machine& machine, Shape shape, int sets) {
  constexpr std::size_t kBands = 2 * 2 * (64 << 10);  // two buffers, each with a band on both sides
  const std::size_t buffer = bytes_of(shape) + std::size_t(sets - 1) * stride_of(shape, sets);
  const std::size_t needed = 2 * buffer + kBands + 2 * machine.cache_bytes(), free = machine.free_memory();
  if (needed <= free) return {};
  return "needs " + std::to_string(needed >> 20) + " MiB, " + machine.name() + " has " + std::to_string(free >> 20) +
         " MiB free";
}

void Workspace::copy(int way, int set) const {
  machine().copy(way, past(out(set), room_), past(in(set), room_), std::size_t(shape_.bytes() / 2));
}

bool Workspace::copied(int set) const {
  return machine().equal(past(in(set), room_), past(out(set), room_), std::size_t(shape_.bytes() / 2));
}

Problem Workspace::problem(const Kernel& kernel, const How& how, int set) {
  Problem p = problem_of(shape_, how);
  p.in = past(in(set), shape_.in().begin(0));
  p.out = past(out(set), shape_.out().begin(0));
  p.stream = machine().stream();
  if (const std::int64_t bytes = kernel.workspace(p); bytes > 0) {
    if (!scratch_ || scratch_->bytes() < std::size_t(bytes)) scratch_.emplace(machine(), std::size_t(bytes));
    p.workspace = scratch_->data();
    if (kernel.traits().keeps_workspace && set == 0) machine().fill(p.workspace, 0, std::size_t(bytes));
  }
  return p;
}

std::string Workspace::damage() const {
  for (const auto& [name, buffer] :
       {std::pair{"input", &in_}, {"output", &out_}, {"scratch", scratch_ ? &*scratch_ : nullptr}})
    if (const std::string what = buffer ? buffer->damage() : ""; !what.empty()) return std::string(name) + ": " + what;
  return {};
}

Problem problem_of(Shape shape, const How& how) {
  Problem p;
  p.rows = shape.rows;
  p.cols = shape.cols;
  p.in_stride = shape.in().rows.stride;
  p.out_stride = shape.out().rows.stride;
  p.in = reinterpret_cast<const void*>(shape.in().begin(0));
  p.out = reinterpret_cast<void*>(shape.out().begin(0));
  p.in_type = shape.in_type;
  p.out_type = shape.out_type;
  p.block = how.block;
  p.plan = how.plan;
  p.overlap = how.overlap;
  return p;
}

}  // namespace softmax::bench
