// What the driver and CUPTI tell of a GPU. Most of it needs none.

#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <set>
#include <stdexcept>

#include "kernels/device/cuda/counters.hpp"
#include "kernels/device/cuda/driver.hpp"
#include "properties/harness.hpp"

namespace softmax::device::cuda {
namespace {

using testing::HasSubstr;

TEST(GpuDriver, a_driver_answers_of_the_gpu_at_that_place) {
  const Driver driver("0000:17:00.0", SOFTMAX_FAKE_NVML);
  ASSERT_EQ(driver.unavailable(), "");
  EXPECT_EQ(driver.throttle_reasons(), 0x84u) << "the rest does not slow a program down";
  const Condition now = driver.condition();
  ASSERT_TRUE(now.watt_limit);
  EXPECT_NEAR(*now.watt_limit, 123.456, 1e-9);
  EXPECT_FALSE(now.celsius) << "it refused to say";
}

TEST(GpuDriver, says_nothing_and_why_without_library_or_gpu) {
  const Driver nothing("0000:17:00.0", "libsoftmax-no-such.so"), elsewhere("0000:18:00.0", SOFTMAX_FAKE_NVML);
  EXPECT_THAT(nothing.unavailable(), HasSubstr("libsoftmax-no-such.so"));
  EXPECT_THAT(elsewhere.unavailable(), HasSubstr("'0000:18:00.0': Not Found"));
  for (const Driver* driver : {&nothing, &elsewhere}) {
    EXPECT_FALSE(driver->throttle_reasons());
    EXPECT_FALSE(driver->condition().watt_limit);
  }
}

TEST(GpuCounters, have_the_keys_of_the_cpu_device) {
  std::set<std::string_view> ours, theirs;
  for (const CounterName& name : counter_names())
    if (name.key.find("__") != std::string_view::npos) ours.insert(name.key);
  for (const Counter& counter : counters()) {
    EXPECT_TRUE(theirs.insert(counter.key).second) << counter.key << " is there twice";
    if (ours.erase(counter.key)) {
      EXPECT_EQ(std::string(counter.key) + ".sum", counter.metric);
    }
  }
  EXPECT_THAT(ours, testing::IsEmpty());
}

TEST(GpuCounters, are_unavailable_without_the_library) {
  HardwareCounters none("libsoftmax-no-such.so");
  EXPECT_NE(none.unavailable(), "");
  EXPECT_EQ(none.unavailable().find('\n'), std::string::npos) << none.unavailable();
  EXPECT_THROW(none.measure([] { FAIL() << "a launch that nobody can count"; }), std::runtime_error);
}

// CUPTI plans its passes for a chip without having one.
TEST(GpuCounters, are_all_known_on_hopper) {
  HardwareCounters all;
  if (all.schedulable("GH100").empty()) GTEST_SKIP() << all.unavailable();
  EXPECT_EQ(all.schedulable("GH100").size(), counters().size());
  EXPECT_THROW(all.schedulable("no such chip"), std::runtime_error);
}

class GpuHere : public testing::Test {
 protected:
  void SetUp() override {
    for (Machine* m : machines())
      if (!m->simulated()) gpu_ = m;
    ASSERT_TRUE(gpu_) << "built without CUDA";
    const std::string why = gpu_->unavailable();
    if (!why.empty() && properties::gpu_required()) FAIL() << "SOFTMAX_REQUIRE_GPU=1, but " << why;
    if (!why.empty()) GTEST_SKIP() << why;
  }
  Machine* gpu_ = nullptr;
};

TEST_F(GpuHere, its_driver_answers_quickly) {
  ASSERT_EQ(driver().unavailable(), "");
  EXPECT_GT(driver().condition().celsius.value_or(0), 0u);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(driver().throttle_reasons());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

// A copy by 16-byte vectors, cold: what it asks for is known.
TEST_F(GpuHere, its_counters_count_a_copy) {
  HardwareCounters hardware;
  if (const std::string why = hardware.unavailable(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::size_t kBytes = 64 << 20;
  const Buffer from(*gpu_, kBytes), to(*gpu_, kBytes), other(*gpu_, 4 * gpu_->cache_bytes());
  int launches = 0;
  const auto copy = [&] { gpu_->copy(1, to.data(), from.data(), kBytes), ++launches; };
  std::map<std::string, double> counts;
  for (const auto& [key, value] : hardware.measure(copy, [&] { gpu_->fill(other.data(), 0, other.bytes()); }))
    counts.emplace(key, value);
  for (const std::string& why : hardware.left_out()) ADD_FAILURE() << "left out " << why;
  for (const std::string op : {"_ld", "_st"}) {
    EXPECT_EQ(counts["l1tex__t_requests_pipe_lsu_mem_global_op" + op], kBytes / 512) << op;
    EXPECT_EQ(counts["l1tex__t_sectors_pipe_lsu_mem_global_op" + op], kBytes / 32) << op;
    EXPECT_EQ(counts["smsp__sass_data_bytes_mem_global_op" + op], kBytes) << op;
    EXPECT_EQ(counts["smsp__inst_executed_op_shared" + op], 0) << op;
  }
  EXPECT_NEAR(counts["dram_bytes_read"], kBytes, 0.05 * kBytes);
  EXPECT_GT(counts["instructions"], 2 * kBytes / 512);
  EXPECT_GT(counts["occupancy%"], 30);
  EXPECT_LE(counts["occupancy%"], 100);

  const int passes = launches;
  EXPECT_THROW(hardware.measure([] { throw std::logic_error("the launch's own"); }), std::logic_error);
  EXPECT_EQ(hardware.measure(copy).size(), counts.size()) << "a failure is left behind";
  EXPECT_EQ(launches, 2 * passes);
}

}  // namespace
}  // namespace softmax::device::cuda
