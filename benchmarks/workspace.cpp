#include "benchmarks/workspace.hpp"

#include <algorithm>

#include "kernels/input.hpp"

namespace softmax::bench {

std::vector<float> Input::row(Shape shape, std::int64_t row) const {
  const std::int64_t cols = shape.cols;
  std::vector<float> x(static_cast<std::size_t>(cols));
  if (shape.file) {
    std::copy_n(file->data.begin() + row * cols, cols, x.begin());
  } else {
    for (std::int64_t i = 0; i < cols; ++i) x[std::size_t(i)] = noise(seed, std::uint64_t(row * cols + i));
  }
  return x;
}

Workspace::Workspace(Machine& machine, Shape shape, const Input& input)
    : shape_(shape),
      in_(machine, std::size_t(shape.elements()) * sizeof(float)),
      out_(machine, std::size_t(shape.elements()) * sizeof(float)) {
  if (shape.file)
    in_.upload(input.file->data.data(), in_.bytes());
  else
    machine.fill_noise(in_.floats(), std::size_t(shape.elements()), input.seed);
}

std::size_t Workspace::needed(const Machine& machine, Shape shape) {
  constexpr std::size_t kBands = 2 * 2 * (64 << 10);  // two buffers, each with a band on both sides
  return std::size_t(shape.bytes()) + kBands + 2 * machine.cache_bytes();
}

Problem Workspace::problem(const Kernel& kernel, int block) {
  Problem p = problem_of(shape_, block);
  p.in = in_.data();
  p.out = out_.data();
  if (const std::int64_t bytes = kernel.workspace(p); bytes > 0) {
    if (!scratch_ || scratch_->bytes() < std::size_t(bytes)) scratch_.emplace(machine(), std::size_t(bytes));
    p.workspace = scratch_->data();
  }
  return p;
}

std::string Workspace::damage() const {
  for (const auto& [name, buffer] :
       {std::pair{"input", &in_}, {"output", &out_}, {"scratch", scratch_ ? &*scratch_ : nullptr}})
    if (const std::string what = buffer ? buffer->damage() : ""; !what.empty()) return std::string(name) + ": " + what;
  return {};
}

Problem problem_of(Shape shape, int block) {
  Problem p;
  p.rows = shape.rows;
  p.cols = p.in_stride = p.out_stride = shape.cols;
  p.block = block;
  return p;
}

}  // namespace softmax::bench
