#pragma once
// What the tests of the CPU device's executor share. A test file is compiled as kernel files are, its host side
// included.

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "kernels/device/device.hpp"

namespace softmax::simt_test {

using device::simt::Fault;

// Puts the schedule back at the end, also when a test throws.
struct Scheduled {
  explicit Scheduled(Schedule s) { device::simt::set_schedule(s); }
  ~Scheduled() { device::simt::set_schedule({}); }
  Scheduled(const Scheduled&) = delete;
  Scheduled& operator=(const Scheduled&) = delete;
};

// Until it goes, nothing is checked: for tests of what holds without, and of what a broken kernel would see.
struct Unwatched {
  Unwatched() { device::machine().watch(Watch::off); }
  ~Unwatched() { device::machine().watch(Watch::check); }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

inline constexpr Schedule kForward{Schedule::Order::forward, 0}, kReverse{Schedule::Order::reverse, 0};
constexpr Schedule seeded(std::uint64_t seed) { return {Schedule::Order::seeded, seed}; }

// Calls test() under both orders and under seeds of both kinds.
template <class Test>
void under_every_schedule(Test test) {
  for (const Schedule& s : {kForward, kReverse, seeded(1), seeded(2), seeded(3), seeded(4)}) {
    SCOPED_TRACE(to_string(s));
    const Scheduled scheduled(s);
    test();
  }
}

// The text of the exception that call() ends with, which must be of this type.
template <class Exception = Fault, class Call>
std::string report(Call call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "nothing thrown";
}

inline testing::AssertionResult mentions(const std::string& report, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    if (report.find(part) == std::string::npos)
      return testing::AssertionFailure() << "no \"" << part << "\" in \"" << report << "\"";
  return testing::AssertionSuccess();
}

}  // namespace softmax::simt_test
