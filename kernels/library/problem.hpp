#pragma once
// One call of a softmax, and the types that it is told in. No CUDA word in here.
//
// Softmax is taken over the last axis of a row-major (rows, cols) matrix:
//   out[r][c] = exp(in[r][c] - max_r) / sum_j exp(in[r][j] - max_r)
// A -inf beside a finite value gives 0. A row with a NaN or a +inf, or of nothing but -inf, gives a row of NaN.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace softmax {

enum class DataType { fp32, fp16, bf16 };
std::string_view name(DataType);
std::size_t bytes_per_element(DataType);

// What goes in and what comes out.
struct Types {
  DataType in = DataType::fp32, out = DataType::fp32;
  bool operator==(const Types&) const = default;
};
std::string name(Types);  // "fp32"; "bf16-fp32" where they differ

// How a kernel of several shapes goes about a problem. 0 leaves a choice to the kernel.
struct Plan {
  int threads = 0;  // a block
  int vectors = 0;  // of 16 bytes that a thread keeps in registers
  int shared = 0;   // and in shared memory
  int blocks = 0;   // that share a row
  auto operator<=>(const Plan&) const = default;
};
std::string to_string(const Plan&);  // "512x8+4s c2"

// One call. Strides and sizes are in elements and 64-bit; rows = 0 or cols = 0 is a success that launches nothing. Input and
// output may not overlap, but for a kernel that works in place if they are the same.
struct Problem {
  std::int64_t rows = 0, cols = 0;
  std::int64_t in_stride = 0, out_stride = 0;  // from one row to the next, at least cols
  DataType in_type = DataType::fp32, out_type = DataType::fp32;
  const void* in = nullptr;
  void* out = nullptr;
  int block = 0;                        // threads a block, one of Traits::blocks; 0 where the kernel chooses for itself
  Plan plan = {};                       // of a kernel that has plans
  float temperature = 1;                // the row is divided by it first; above 0, exact from 2^-100 to 2^100
  const float* temperatures = nullptr;  // in place of that one for each row, in the machine's memory: not checked
  bool overlap = false;  // the launch may begin before the one ahead of it in the stream ends, and waits for it itself
  int max_blocks = 0;    // resident at one time, where blocks wait for each other; 0: as many as the machine holds
  bool spin = true;      // blocks may wait for each other; clusters, which the machine starts as one, always may
  // The bits of a row do not depend on how many rows there are.
  bool batch_invariant = false;
  void* stream = nullptr;  // the machine's stream; null is its default one
  // Kernel::workspace bytes, one for each of the launches that may run at one time. Of any content; where the kernel keeps
  // its workspace, zero before the first launch and as the last one left it from then on. One that was broken off leaves
  // it to be zeroed again.
  void* workspace = nullptr;

  Types types() const { return {in_type, out_type}; }

  bool empty() const { return rows == 0 || cols == 0; }
};

}  // namespace softmax
