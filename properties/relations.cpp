// Laws that hold a kernel against itself: what it makes of a row follows from what it made of another, or of another element.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "kernels/input.hpp"
#include "kernels/narrow.hpp"
#include "properties/judging.hpp"

namespace softmax::properties {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr long double kUnit = reference::kUnit;

// The case with another number of columns, under its own plan or else the kernel's; none if the kernel takes neither.
std::optional<Case> with_cols(const Kernel& k, Case c, std::int64_t cols) {
  const auto taken = [&] { return k.unsupported(problem_of(c)).empty(); };
  c.cols = cols;
  if (!taken()) c.plan = {};
  if (!taken()) return {};
  return c;
}

// B / (1 - B) of some factors (1 + delta), |delta| together B.
long double grown(long double b) { return b < 1 ? b / (1 - b) : std::numeric_limits<long double>::infinity(); }

// A kernel that says how it adds up computes the same exp of the same x - max, whatever else is in the row. Of others this is
// not known: they may take another exp for long rows, or another element for the maximum.
bool takes_one_exp(const Traits& t) {
  return (t.summation != Summation::unknown || t.rounding) && t.exp != Exp::exp2_folded;
}

// Of two outputs that are y: what the narrow type and underflow add.
long double last_rounding(const reference::ErrorModel& m, long double y) {
  return 2 * (m.output.relative * kUnit * y + m.eta + m.output.absolute);
}

}  // namespace

// The terms of a sum are the same, to the bit: a safe kernel can differ by its additions and the division alone.
std::string permutation_is_harmless(const Kernel& k, const Case& c) {
  std::vector<std::size_t> to(std::size_t(c.cols));
  std::iota(to.begin(), to.end(), 0);
  for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[random_bits(c.seed, 1000 + i) % i]);
  const auto x = values(c);
  auto moved = x;
  for (std::size_t i = 0; i < x.size(); ++i) moved[i / to.size() * to.size() + to[i % to.size()]] = x[i];
  const auto y = run(k, c, x).y, there = run(k, c, moved).y;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r), in2 = row(moved, c.cols, r), out = row(y, c.cols, r),
               out2 = row(there, c.cols, r);
    const reference::Row exact = reference::analyse(in);
    const reference::ErrorModel m = model(k, c, in), m2 = model(k, c, in2);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const long double d = exact.below_max(in[i]), y_i = exact.y[i];
      const long double allowed = m.online
                                      ? bound_of(m, exact, in, i) + reference::element_bound(m2, y_i, d, exact.spread)
                                      : y_i * (1 + grown(reference::relative_error(m, d, exact.spread) * kUnit)) *
                                                grown((m.additions + m2.additions + 2 * m.divide) * kUnit) +
                                            last_rounding(m, y_i);
      if (!(std::fabs((long double)out2[to[i]] - out[i]) <= allowed))
        return say("row ", r, ": ", out[i], " in column ", i, " but ", out2[to[i]], " in column ", to[i], ", allowed ",
                   allowed);
    }
  }
  return {};
}

// Elements that are -inf, or so far below the maximum that their exp is 0: they get 0 and cost the others nothing.
std::string far_elements_add_nothing(const Kernel& k, const Case& c) {
  const std::int64_t more = 1 + std::int64_t(random_bits(c.seed, 5) % 40);
  const auto longer = with_cols(k, c, c.cols + more);
  if (!longer) return {};
  const bool masked = random_bits(c.seed, 6) % 2;
  const auto x = values(c);
  std::vector<float> with;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r);
    with.insert(with.end(), in.begin(), in.end());
    with.insert(with.end(), std::size_t(more), masked ? -kInf : *std::ranges::max_element(in) - 300);
  }
  round_to(c.types.in, with);
  const auto y = run(k, c, x).y, y2 = run(k, *longer, with).y;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r), in2 = row(with, longer->cols, r), out = row(y, c.cols, r),
               out2 = row(y2, longer->cols, r);
    const reference::Row exact = reference::analyse(in);
    const reference::ErrorModel m = model(k, c, in), m2 = model(k, *longer, in2);
    for (std::size_t i = 0; i < out2.size(); ++i) {
      if (i >= out.size()) {
        if (!same_bits(out2[i], 0)) return say("row ", r, ", column ", i, ": ", out2[i], ", not 0, where x = ", in2[i]);
        continue;
      }
      const long double allowed = bound_of(m, exact, in, i) + bound_of(m2, exact, in, i);
      if (!(std::fabs((long double)out2[i] - out[i]) <= allowed))
        return say("row ", r, ", column ", i, ": ", out[i], " but ", out2[i], " with ", more, " more of ", in2.back(),
                   ", allowed ", allowed);
    }
  }
  return {};
}

// softmax([a, b]) on a is softmax(a) times a's part of the sum. Where a holds the maximum the same exps are divided: all of a
// by the same, but for the rounding of each quotient and of the two that say by what.
std::string halves_make_a_row(const Kernel& k, const Case& c) {
  if (c.cols < 2) return {};
  const auto half = with_cols(k, c, 1 + std::int64_t(random_bits(c.seed, 7) % std::uint64_t(c.cols - 1)));
  if (!half) return {};
  const auto x = values(c);
  std::vector<float> first;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r).first(std::size_t(half->cols));
    first.insert(first.end(), in.begin(), in.end());
  }
  const auto y = run(k, c, x).y, y2 = run(k, *half, first).y;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r), in2 = row(first, half->cols, r), out = row(y, c.cols, r),
               out2 = row(y2, half->cols, r);
    const reference::Row exact = reference::analyse(in), exact2 = reference::analyse(in2);
    const reference::ErrorModel m = model(k, c, in), m2 = model(k, *half, in2);
    const long double part = std::exp((exact2.max - exact.max) + (exact2.log_sum - exact.log_sum));
    const bool same_exps = takes_one_exp(k.traits()) && exact.max == exact2.max && c.types.out == DataType::fp32;
    const auto top = std::size_t(std::ranges::max_element(in2) - in2.begin());
    for (std::size_t i = 0; i < out2.size(); ++i) {
      const long double scaled = (long double)out2[i] * out[top] / out2[top];
      if (same_exps && !(std::fabs(out[i] - scaled) <= scaled * grown(4 * m.divide * kUnit) + 2 * m.eta))
        return say("row ", r, ", column ", i, ": ", out[i], ", but ", scaled, " by what the first ", half->cols,
                   " columns make of it and of column ", top);
      const long double allowed = bound_of(m, exact, in, i) + part * bound_of(m2, exact2, in2, i);
      if (!(std::fabs(out[i] - part * out2[i]) <= allowed))
        return say("row ", r, ", column ", i, ": ", out[i], ", but ", out2[i], " times ", part, " by the first ",
                   half->cols, " columns, allowed ", allowed);
    }
  }
  return {};
}

// ln y_i - ln y_j = x_i - x_j. The sum cancels, so neither its order nor its length enters: an exp, a division, and the
// difference from the maximum.
std::string outputs_keep_ratios(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](std::span<const float> in, std::span<const float> out) -> std::string {
    const reference::ErrorModel m = model(k, c, in);
    const auto top = std::size_t(std::ranges::max_element(in) - in.begin());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const long double d = (long double)in[top] - in[i], expected = out[top] * std::exp(-d);
      // exp(0) is 1; the maximum's own output is divided, and rounded, as this one is.
      const long double b = ((m.a + m.exp.kappa) * d + m.exp.eps0 + 2 * m.divide) * kUnit;
      const long double allowed =
          d < 104 ? expected * grown(b) + last_rounding(m, expected) : m.eta + m.output.absolute;
      if (!(std::fabs(out[i] - expected) <= allowed))
        return say("x[", i, "] is ", d, " below the maximum, so ", out[top], " asks for ", expected, ", not ", out[i],
                   ", allowed ", allowed);
    }
    return {};
  });
}

// exp(d) is at most 1 for d of at most 0, and what divides it is the same.
std::string maximum_stays_maximum(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](std::span<const float> in, std::span<const float> out) -> std::string {
    const float most = *std::ranges::max_element(in), largest = *std::ranges::max_element(out);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in[i] == most && out[i] != largest)
        return say("x[", i, "] = ", in[i], " is the largest, y = ", out[i], " is not: ", largest);
    return {};
  });
}

// Two columns are 1 and e = exp(-d) over 1 + e: one exp, which the smaller output feels by its distance from 1 and the larger
// by that from 0, one addition, in double one more to come back, and the division. If the sum has an e of its own, both feel
// that by the smaller output, and the smaller its own.
std::string two_columns_are_logistic(const Kernel& k, const Case& given) {
  Case unplanned = given;
  unplanned.plan = {};
  const auto two = with_cols(k, unplanned, 2);
  if (!two) return {};
  const Case& c = *two;
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](std::span<const float> in, std::span<const float> out) -> std::string {
    const reference::ErrorModel m = model(k, c, in);
    const reference::Row exact = reference::analyse(in);
    for (std::size_t i = 0; i < 2; ++i) {
      const long double logistic = 1 / (1 + std::exp((long double)in[1 - i] - in[i]));
      const long double d = std::fabs((long double)in[1] - in[0]);
      const auto of_exp = [&](reference::ExpError e) { return (m.a + e.kappa) * d + e.eps0; };
      const bool smaller = in[i] < in[1 - i];
      const long double exps = !m.sum_exp
                                   ? of_exp(m.exp) * (1 - logistic)
                                   : smaller * of_exp(m.exp) + of_exp(*m.sum_exp) * std::min(logistic, 1 - logistic),
                        b = exps + 1 + m.double_sum + m.divide;
      long double allowed = bound_of(m, exact, in, i);
      if (takes_one_exp(k.traits()))
        allowed = std::min(allowed, logistic * grown((b + m.output.relative) * kUnit) + m.eta + m.output.absolute);
      if (!(std::fabs(out[i] - logistic) <= allowed))
        return say(out[i], " of {", in[0], ", ", in[1], "}, exactly ", logistic, ", allowed ", allowed);
    }
    return {};
  });
}

}  // namespace softmax::properties
