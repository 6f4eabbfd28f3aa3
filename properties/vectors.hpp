#pragma once
// Test vectors that other projects published, read from a JSON file.

#include <cstdint>
#include <string>
#include <vector>

namespace softmax::properties {

// One matrix and what an operation over its last axis must give. Both are row-major, rows * cols long.
struct Vector {
  std::string name, op, dtype;  // op: softmax or log_softmax; dtype of input and output: fp32, fp16 or bf16
  std::int64_t rows = 0, cols = 0;
  double tolerance = 0;  // absolute, of each output
  std::vector<float> input;
  std::vector<double> expected;
};

// The file is a list of objects {name, op, dtype, rows, cols, tolerance_abs, input, expected}; other keys are ignored.
// Numbers JSON lacks are strings: "inf", "-inf", "nan". Throws std::runtime_error, naming file, vector and what is
// wrong, if the file is unreadable, is no such list, or holds no vector.
std::vector<Vector> load_vectors(const std::string& path);

}  // namespace softmax::properties
