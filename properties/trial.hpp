#pragma once
// A kernel that is asked case after case, each in the next of the ways that it has.

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/input.hpp"
#include "kernels/narrow.hpp"
#include "properties/laws.hpp"
#include "properties/runner.hpp"
#include "reference/error.hpp"

namespace softmax::properties {

// A GPU is asked everything. The CPU device runs a thread as a fiber, and is asked a share unless someone has the time.
inline bool exhaustive(const Kernel& k) {
  const char* const set = std::getenv("SOFTMAX_EXHAUSTIVE");
  return !k.machine().simulated() || (set && std::string_view(set) == "1");
}

template <class... T>
std::string say(const T&... parts) {
  std::ostringstream out;
  out.precision(9);
  (out << ... << parts);
  return out.str();
}

inline float some(std::int64_t r, std::int64_t i) { return normal(random_bits(std::uint64_t(r), std::uint64_t(i))); }

// Asks a kernel one case after the other, up to the first that is wrong. What it does not take is left out, but then
// there must be something that it takes.
class Trial {
 public:
  explicit Trial(const Kernel& kernel) : kernel_(kernel) {}

  // `rows` rows, or as many of them as the machine can afford, under the next of the block sizes and types; none if the
  // kernel does not take them.
  std::vector<Case> way(std::int64_t rows, std::int64_t cols) {
    const int turn = turn_++;
    return fit({}, rows, cols, turn);
  }
  // The same under each block size and each plan.
  std::vector<Case> ways(std::int64_t rows, std::int64_t cols) {
    const Traits& traits = kernel_.traits();
    const int count = traits.plans.size() > 0 ? traits.plans.size() + 2 : traits.blocks.size();
    std::vector<Case> all;
    for (int i = 0; i < count; ++i) {
      Plan plan;  // at first the kernel's own, then two blocks a row
      if (i == 1 && traits.plans.size() > 0) plan.blocks = 2;
      if (i >= 2 && traits.plans.size() > 0) plan = traits.plans[i - 2];
      for (Case& c : fit(plan, rows, cols, turn_ + i)) all.push_back(c);
    }
    ++turn_;
    return all;
  }

  // Row r is x(r, 0), x(r, 1), ...: each must be its softmax, or NaN.
  template <class X>
  void right(const std::vector<Case>& cases, X x) {
    for (const Case& c : cases)
      judge(c, [&] {
        const auto in = drawn(c, x);
        const Output out = run(kernel_, c, in);
        return out.trespass.empty() ? wrong_row(kernel_, c, in, out.y) : out.trespass;
      });
  }
  // Rows of one value: 1 / cols to the bit.
  void uniform(const std::vector<Case>& cases, float value) {
    for (const Case& c : cases)
      judge(c, [&] {
        const Output out = run(kernel_, c, drawn(c, [&](auto, auto) { return value; }));
        const float exact = rounded(1.0f / float(c.cols), c.types.out);
        const bool fast = kernel_.machine().math() == "fast";
        const std::int64_t slack = !fast ? 0 : c.types.out == DataType::fp32 ? 2 : 1 << 16;  // one step of bf16
        for (std::size_t i = 0; i < out.y.size(); ++i)
          if (!(reference::ulp_distance(out.y[i], exact) <= slack))
            return say("row ", std::int64_t(i) / c.cols, ", column ", std::int64_t(i) % c.cols, ": ", out.y[i],
                       ", exactly ", exact, ", of rows of ", value);
        return out.trespass;
      });
  }
  // Anything else that can be said of a case.
  template <class Refute>
  void judge(const Case& c, Refute refute) {
    if (!why_.empty()) return;
    ++asked_;
    if (const std::string why = refute(); !why.empty()) why_ = say(why, "; case ", c);
  }
  template <class X>
  static std::vector<float> drawn(const Case& c, X x) {
    std::vector<float> all;
    for (std::int64_t r = 0; r < c.rows; ++r)
      for (std::int64_t i = 0; i < c.cols; ++i) all.push_back(x(r, i));
    round_to(c.types.in, all);
    return all;
  }
  std::string verdict() const { return asked_ == 0 ? "it takes none of the cases" : why_; }

 private:
  std::int64_t fibers(const Case& c) const {
    const Traits& traits = kernel_.traits();
    if (traits.plan) return threads_of(kernel_, c);
    return traits.summation == Summation::sequential || traits.summation == Summation::sequential_double
               ? (c.rows + c.block - 1) / c.block * c.block
               : c.rows * c.block;
  }
  std::vector<Case> fit(Plan plan, std::int64_t rows, std::int64_t cols, int turn) const {
    constexpr std::int64_t kFibers = 1536, kFew = 3;  // rows: neighbours on both sides
    const Traits& traits = kernel_.traits();
    Case c{.rows = rows, .cols = cols, .types = traits.types[turn % traits.types.size()], .plan = plan};
    c.block = traits.blocks[turn % traits.blocks.size()];
    const auto takes = [&] {
      const Problem p = problem_of(c);
      return kernel_.unsupported(p).empty() && (!traits.plan || kernel_.plan(p).threads > 0);
    };
    if (!takes()) return {};
    if (exhaustive(kernel_)) return {c};
    while (c.rows > kFew && fibers(c) > kFibers) c.rows = std::max(kFew, c.rows / 2);
    while (traits.plans.size() > 0 && fibers(c) > kFibers && kernel_.plan(problem_of(c)).blocks > 2) {
      const Case before = c;
      c.plan = kernel_.plan(problem_of(c));
      c.plan.shared = 0, c.plan.blocks = std::max(2, c.plan.blocks / 2);
      if (!takes()) return {before};
    }
    return {c};
  }

  const Kernel& kernel_;
  int turn_ = 0, asked_ = 0;
  std::string why_;
};

// All widths up to the last, or each kernel its own thirteenth of them, the short ones, and those around a whole number of
// blocks.
inline std::vector<std::int64_t> widths(const Kernel& k, std::int64_t last) {
  std::vector<std::int64_t> all;
  for (std::int64_t c = 1; c <= last; ++c)
    if (exhaustive(k) || c <= 130 || (c + 1) % 512 <= 2 || c % 13 == k.version() % 13) all.push_back(c);
  return all;
}

// Two of the replays, see replays_launches.cpp.
std::string many_launches(const Kernel&);
std::string past_32_bits(const Kernel&);

}  // namespace softmax::properties
