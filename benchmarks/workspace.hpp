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
  // `sets` of buffers of the same contents, for launches that rotate over them. Throws OutOfMemory.
  Workspace(Machine&, Shape, const Input&, int sets = 1);

  // Empty if the machine has room for a shape's buffers, guard bands and what a cold measurement overwrites; else what
  // is needed and what is free.
  static std::string no_room(const Machine&, Shape, int sets = 1);

  Machine& machine() const { return in_.machine(); }
  Shape shape() const { return shape_; }
  int sets() const { return sets_; }
  const Buffer& in() const { return in_; }
  Buffer& out() { return out_; }
  const Buffer& out() const { return out_; }

  // Where a set begins, `at` ahead of its first row; in() and out() begin with set 0.
  void* in(int set) const { return static_cast<char*>(in_.data()) + std::size_t(set) * stride_; }
  void* out(int set) const { return static_cast<char*>(out_.data()) + std::size_t(set) * stride_; }

  // What a set's matrices may take, and 256 bytes at least behind their last rows; 0: their ends are the buffers'.
  std::size_t room() const { return room_; }

  // The rows of a set, on the machine's stream. `kernel` tells how much scratch memory it needs; all sets share it. It
  // may hold anything, but for a kernel that keeps it: then it is zeroed where set 0 is asked for.
  Problem problem(const Kernel& kernel, const How& how, int set = 0);
  // The machine's copy from in to out, of half the bytes that a softmax moves: where an output's element is longer than
  // an input's, it reads more and writes less than that does, the same in all. Whatever the layout, it copies dense
  // matrices that begin where any vector may; beside a layout's they are others.
  void copy(int way, int set = 0) const;
  bool copied(int set) const;
  // Empty if no guard band was written to, else which buffer's and where.
  std::string damage() const;

 private:
  void spread();

  Shape shape_;
  int sets_;
  std::size_t room_;
  std::size_t stride_;  // bytes from one set to the next
  Buffer in_, out_;
  std::optional<Buffer> scratch_;
};

// The same, without memory: what a kernel says before there is any. Of its pointers no more than how they are aligned.
Problem problem_of(Shape, const How&);

}  // namespace softmax::bench
