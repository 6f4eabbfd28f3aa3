#pragma once
// A law as a property for RapidCheck, which draws cases and shrinks the first that fails. On the CPU device a case may take long
// and have many that are smaller: after a while the smallest so far will do.

#include <rapidcheck.h>

#include <chrono>
#include <sstream>
#include <string>

#include "properties/laws.hpp"

namespace softmax::properties {

class Falsify {
 public:
  static constexpr double kShrinkSeconds = 3;  // and one case more, so that a failure is there in 5

  Falsify(const Kernel& kernel, const Law& law) : kernel_(kernel), law_(law) {}

  // Inside a property.
  void draw() {
    const Case c = *law_.cases(kernel_);
    std::ostringstream line;
    line << c;
    // RapidCheck asks for what it ends with again.
    if (failed() && seconds_since_failure() > kShrinkSeconds && line.str() != smallest_) return;
    std::string why;
    try {
      why = law_.refute(kernel_, c);
    } catch (...) {
      fails(c, line.str());
      throw;
    }
    if (why.empty()) return;
    fails(c, line.str());
    RC_FAIL(why + "\nthis case again: SOFTMAX_CASE='" + smallest_ + "'");
  }

  bool failed() const { return !smallest_.empty(); }
  double seconds_since_failure() const { return std::chrono::duration<double>(Clock::now() - first_).count(); }
  const std::string& smallest() const { return smallest_; }
  std::int64_t first_elements() const { return first_elements_; }
  std::int64_t elements() const { return elements_; }  // of the smallest

 private:
  using Clock = std::chrono::steady_clock;

  void fails(const Case& c, const std::string& line) {
    elements_ = c.rows * c.cols;
    if (!failed()) first_ = Clock::now(), first_elements_ = elements_;
    smallest_ = line;
  }

  const Kernel& kernel_;
  const Law& law_;
  Clock::time_point first_;
  std::string smallest_;
  std::int64_t first_elements_ = 0, elements_ = 0;
};

}  // namespace softmax::properties
