#pragma once
// A machine whose memory is the host's: what the CPU device and the fake machines of tests have in common.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/input.hpp"
#include "kernels/machine.hpp"
#include "kernels/narrow.hpp"

namespace softmax {

class HostMachine : public Machine {
 public:
  void upload(void* to, const void* from, std::size_t bytes) override { copy_bytes(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy_bytes(to, from, bytes); }
  void fill(void* to, unsigned char value, std::size_t bytes) override { std::memset(to, value, bytes); }
  void fill_noise(void* to, std::size_t count, std::uint64_t seed, DataType type) override {
    for (std::size_t i = 0; i < count; ++i) set_element(to, i, type, noise(seed, i));
  }
  std::vector<double> row_sums(const void* matrix, Rows m, DataType type) override {
    std::vector<double> sums(std::size_t(m.rows), 0.0);
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.cols; ++c)
        sums[std::size_t(r)] += element(matrix, std::size_t(r * m.stride + c), type);
    return sums;
  }
  std::vector<int> rescales(const float* matrix, Rows m, int threads) override {
    std::vector<int> most(std::size_t(m.rows), 0);
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t t = 0; t < std::min<std::int64_t>(threads, m.cols); ++t) {
        int rises = 0;
        float max = -INFINITY;
        for (std::int64_t c = t; c < m.cols; c += threads)
          if (const float x = matrix[r * m.stride + c]; x > max) {
            rises += max != -INFINITY;
            max = x;
          }
        most[std::size_t(r)] = std::max(most[std::size_t(r)], rises);
      }
    return most;
  }
  bool equal(const void* a, const void* b, std::size_t bytes) override { return std::memcmp(a, b, bytes) == 0; }
  void read(const void*, std::size_t) override {}
  void write(void* to, std::size_t bytes) override { std::memset(to, 0, bytes); }
  void nothing() override {}
  void synchronize() override {}

 private:
  static void copy_bytes(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);  // of an empty matrix the pointers may be null
  }
};

}  // namespace softmax
