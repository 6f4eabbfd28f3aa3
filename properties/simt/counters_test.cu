// Where the CPU device's counts are found: at the line that asks for them. properties/counters has how many they are.
#include <string>
#include <string_view>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::Counters;
using softmax::Profile;
using softmax::Watch;
using softmax::device::launch;

template <class Run>
Profile profile(Run run) {
  softmax::Machine& machine = softmax::device::machine();
  machine.watch(Watch::count);
  run();
  const Profile all = machine.profile();
  machine.watch(Watch::check);
  return all;
}

// One line for each counter that is not as it should be.
std::string difference(const Counters& counted, const Counters& expected) {
  std::string text;
  for (const auto& c : softmax::counter_names())
    if (counted.*c.value != expected.*c.value)
      text += std::string(c.key) + " is " + std::to_string(counted.*c.value) + ", not " +
              std::to_string(expected.*c.value) + "\n";
  return text;
}

constexpr int kFirst = __LINE__;
__global__ void lines(const float* in, float* out) {
  SHARED(tile, float[64]);
  const float mine = in[threadIdx.x];
  tile[threadIdx.x] = mine;
  __syncthreads();
  float value = tile[threadIdx.x ^ 1];
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  if (__any_sync(0xffffffffu, value > 0)) value += 1;
  out[threadIdx.x] = value;
}

TEST(SimtCounters, AreFoundAtTheirLines) {
  static float in[64], out[64];
  const Profile all = profile([&] { launch(lines, {.blocks = 1, .threads = 64}, in, out); });
  struct {
    int line;
    Counters counters;
  } const expected[] = {
      {3, {.global_load_requests = 2, .global_load_sectors = 8, .global_load_bytes = 256}},
      {4, {.shared_store_requests = 2, .shared_store_wavefronts = 2}},
      {5, {.barriers = 1}},
      {6, {.shared_load_requests = 2, .shared_load_wavefronts = 2}},
      {7, {.shuffles = 2}},
      {8, {.votes = 2}},
      {9, {.global_store_requests = 2, .global_store_sectors = 8, .global_store_bytes = 256}},
  };
  ASSERT_EQ(all.lines.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(all.lines[i].line, kFirst + expected[i].line);
    EXPECT_TRUE(std::string_view(all.lines[i].file).ends_with("properties/simt/counters_test.cu")) << all.lines[i].file;
    EXPECT_EQ(difference(all.lines[i].counters, expected[i].counters), "") << "line " << all.lines[i].line;
  }
}

}  // namespace
