#pragma once
// What the tests share.

#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::properties {

// "V6_cpu": `ctest -R V6` is everything about V6.
inline std::string test_name(const Kernel& kernel) { return kernel.label() + "_" + std::string(kernel.machine().id()); }

// With SOFTMAX_REQUIRE_GPU=1 a missing GPU is a failure: a broken driver must not look like a machine without one.
inline bool gpu_required() {
  const char* value = std::getenv("SOFTMAX_REQUIRE_GPU");
  return value && std::string_view(value) == "1";
}

// Why this program cannot run the kernel here; empty if it can.
inline std::string why_not(const Kernel& kernel) {
  if (const std::string why = kernel.machine().unavailable(); !why.empty()) return why;
  return kernel.traits().cuda_only && kernel.machine().simulated() ? kernel.label() + " runs on a GPU only" : "";
}

// A file's bytes; where it cannot be read the test fails.
inline std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in) << path;
  return text.str();
}

// What `f` throws, as text; empty if it throws nothing.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace softmax::properties

// In SetUp.
#define SKIP_IF_UNAVAILABLE(kernel)                                                   \
  if (const std::string why = ::softmax::properties::why_not(kernel); !why.empty()) { \
    if (::softmax::properties::gpu_required() && !(kernel).machine().simulated())     \
      FAIL() << "SOFTMAX_REQUIRE_GPU=1, but " << why;                                 \
    GTEST_SKIP() << why;                                                              \
  }
