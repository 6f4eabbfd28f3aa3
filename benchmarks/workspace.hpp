#pragma once
// The memory a case works on. Made once a shape and kept for all its cases, repetitions and re-entries: Google
// Benchmark calls a benchmark's function and SetUp many times.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/npy.hpp"
#include "benchmarks/suites.hpp"
#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::bench {

// Where a run's numbers come from: noise(seed, i), or a file's rows where a shape says so. Never zeros: they cost a GPU
// less power than data does.
struct Input {
  std::uint64_t seed = 1;
  std::shared_ptr<const Matrix> file;
  std::string file_name;  // without its folder

  Shape file_shape() const { return file ? Shape{file->rows, file->cols, true} : Shape{}; }
  std::vector<float> row(Shape, std::int64_t row) const;  // computed on the host
};

class Workspace {
 public:
  // Throws OutOfMemory.
  Workspace(Machine&, Shape, const Input&);

  // Bytes of machine memory that a shape's buffers take, guard bands and what a cold measurement overwrites included.
  static std::size_t needed(const Machine&, Shape);

  Machine& machine() const { return in_.machine(); }
  Shape shape() const { return shape_; }
  const Buffer& in() const { return in_; }
  Buffer& out() { return out_; }
  const Buffer& out() const { return out_; }

  // Dense rows from in() to out(). `kernel` tells how much scratch memory it needs; it may find anything in there.
  Problem problem(const Kernel& kernel, int block);
  // Empty if no guard band was written to, else which buffer's and where.
  std::string damage() const;

 private:
  Shape shape_;
  Buffer in_, out_;
  std::optional<Buffer> scratch_;
};

// The same, without memory: what a kernel says before there is any. Strides are dense.
Problem problem_of(Shape, int block);

}  // namespace softmax::bench
