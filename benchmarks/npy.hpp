#pragma once
// Reads the matrices that people save with numpy.save. Debian has no small maintained reader, so this one is strict
// instead of general: a 2-D, C-order, little-endian float32 array in format 1.0 or 2.0, and nothing else.

#include <cstdint>
#include <string>
#include <vector>

namespace softmax::bench {

struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> data;  // row-major, rows * cols
};

// Throws std::runtime_error that names the file, what is wrong with it and what would be right.
Matrix read_npy(const std::string& path);

}  // namespace softmax::bench
