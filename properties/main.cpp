// main of every test program: RapidCheck draws the same cases each time, unless RC_PARAMS says otherwise. CTest runs each
// test in a process of its own, and the test's name is its seed: two laws should not look at the same fifty cases.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "kernels/input.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::uint64_t seed = 20241219;
  for (const char c : testing::GTEST_FLAG(filter))
    seed = softmax::mix(seed ^ std::uint64_t(static_cast<unsigned char>(c)));
  const std::string parameters = "seed=" + std::to_string(seed) + " max_success=50";
  setenv("RC_PARAMS", parameters.c_str(), /*overwrite=*/0);
  return RUN_ALL_TESTS();
}
