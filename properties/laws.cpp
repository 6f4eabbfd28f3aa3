#include "properties/laws.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "kernels/input.hpp"
#include "kernels/narrow.hpp"
#include "properties/bounds.hpp"
#include "properties/judging.hpp"
#include "properties/runner.hpp"
#include "reference/error.hpp"
#include "reference/softmax.hpp"

namespace softmax::properties {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

const std::vector<float> kOffsets = {0, 1, -1000, 1e4f, -5e4f};

std::string sums_to_one(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](auto in, auto out) { return judge_sum(k, c, in, out); });
}

std::string matches_reference(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](auto in, auto out) { return judge_elements(k, c, in, out); });
}

std::string in_range(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](auto, auto out) { return judge_range(out); });
}

// Multiples of a step, and few enough of them: x, the shift, x + shift and all differences are exact, so x - max has the same
// bits.
std::string shift_is_exact(const Kernel& k, const Case& c) {
  const auto x = values(c);
  auto shifted = x;
  const auto [step, count] = grid_step(c.types.in);
  const float shift = float(std::int64_t(random_bits(~c.seed, 0) % std::uint64_t(2 * count)) - count) * step;
  for (float& v : shifted) v += shift;
  if (k.traits().exp == Exp::exp2_folded) {  // folds the maximum into a product: not exact, but within its bound
    const auto y = run(k, c, shifted).y;
    return each_row(c, shifted, y, [&](auto in, auto out) { return judge_elements(k, c, in, out); });
  }
  return difference(run(k, c, x).y, run(k, c, shifted).y, c.cols, say("after a shift by ", shift).c_str());
}

// Elsewhere x + shift rounds, by e at most; ln y moves by at most 2 e, on top of what both runs are allowed.
// One shift in four goes to where a published kernel had its sentinel (FlashInfer 4267): no other law draws rows there.
std::string shift_is_bounded(const Kernel& k, const Case& c) {
  const auto x = values(c);
  auto shifted = x;
  const float far = random_bits(~c.seed, 2) % 4 == 0 ? -2.45e5f : 0, shift = far + 8 * normal(random_bits(~c.seed, 1));
  for (float& v : shifted) v += shift;
  round_to(c.types.in, shifted);
  const auto y = run(k, c, x).y, y2 = run(k, c, shifted).y;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto a = row(x, c.cols, r), b = row(shifted, c.cols, r);
    const reference::Row exact = reference::analyse(a), exact2 = reference::analyse(b);
    const reference::ErrorModel m = model(k, c, a), m2 = model(k, c, b);
    long double moved = 0;
    for (std::size_t i = 0; i < a.size(); ++i) moved = std::max(moved, std::fabs((long double)b[i] - a[i] - shift));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t at = std::size_t(r * c.cols) + i;
      const long double allowed =
          exact.y[i] * std::expm1(2 * moved) + bound_of(m, exact, a, i) + bound_of(m2, exact2, b, i);
      if (!(std::fabs((long double)y2[at] - y[at]) <= allowed))
        return say("row ", r, ", column ", i, ": ", y[at], " but ", y2[at], " after a shift by ", shift, ", allowed ",
                   allowed);
    }
  }
  return {};
}

std::string does_not_overflow(const Kernel& k, const Case& c) {
  const float scale = std::vector<float>{1e4f, 1e30f, 2.0f * 0x1p126f}[random_bits(c.seed, 2) % 3];
  auto x = values(c);
  for (float& v : x) v = std::fmax(-FLT_MAX, std::fmin(FLT_MAX, v * scale));
  round_to(c.types.in, x);
  const auto y = run(k, c, x).y;
  return each_row(c, x, y, [&](auto in, auto out) {
    const std::string why = judge_range(out);
    return why.empty() ? judge_elements(k, c, in, out) : why;
  });
}

// exp(0) = 1 and sums of ones are exact up to 2^24, so only the division rounds, and then the output's type. -inf does not
// count.
std::string judge_constant(const Kernel& k, const Case& c) {
  // A folded exponent, x * log2e - max * log2e in one rounding, need not be 0.
  if (k.traits().exp == Exp::exp2_folded) return matches_reference(k, c);
  const auto x = values(c), y = run(k, c, x).y;
  const bool ieee = k.traits().divide != Divide::fast && !fast(k);
  return each_row(c, x, y, [&](std::span<const float> in, std::span<const float> out) -> std::string {
    const float exact = 1.0f / float(std::ranges::count_if(in, [](float v) { return v != -kInf; }));
    float least = exact, most = exact;
    for (int ulp = 0; ulp < (ieee ? 0 : 2); ++ulp) {
      least = std::nextafter(least, 0.0f);
      most = std::nextafter(most, 2.0f);
    }
    least = rounded(least, c.types.out);
    most = rounded(most, c.types.out);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (in[i] == -kInf ? !same_bits(out[i], 0) : !(out[i] >= least && out[i] <= most))
        return say("column ", i, ": ", out[i], " where x = ", in[i], ", of equal ones ", exact);
    return {};
  });
}

// At the case's width and at a fourth of the shorter listed ones: a kernel may be wrong at one of them alone, which few draws
// would find.
std::string constant_is_exact(const Kernel& k, const Case& c) {
  std::string why = judge_constant(k, c);
  const std::vector<std::int64_t> widths = column_list();
  for (std::size_t i = c.seed % 4; i < widths.size() && widths[i] < 4100 && why.empty(); i += 4) {
    Case at = c;
    at.rows = std::min<std::int64_t>(c.rows, 2);
    at.cols = widths[i];
    at.plan = {};
    if (k.unsupported(problem_of(at)).empty()) why = judge_constant(k, at);
  }
  return why;
}

// Equal elements get equal bits. A larger one may fall behind by the error of two exps, unless the machine's are known to be
// monotone, as a division is.
std::string is_monotone(const Kernel& k, const Case& c) {
  const Traits& traits = k.traits();
  const bool exact = arithmetic_of(k.machine()).monotone && traits.exp != Exp::exp2_folded && !fast(k) &&
                     traits.divide != Divide::fast;
  const auto x = values(c), y = run(k, c, x).y;
  return each_row(c, x, y, [&](std::span<const float> in, std::span<const float> out) -> std::string {
    const reference::ErrorModel m = model(k, c, in);
    const double slack = exact ? 0 : (4 * (m.exp.eps0 + 90 * m.exp.kappa) + 2 * m.output.relative) * reference::kUnit;
    const double absolute = exact ? 0 : 2 * (m.eta + m.output.absolute);
    for (std::size_t step : {std::size_t{1}, std::size_t{7}, in.size() / 2 + 1})
      for (std::size_t i = 0; i + step < in.size(); ++i) {
        std::size_t small = i, large = i + step;
        if (in[small] > in[large]) std::swap(small, large);
        const bool tie = in[small] == in[large];
        if (tie ? !same_bits(out[small], out[large]) : !(out[large] >= out[small] * (1 - slack) - absolute))
          return say("x[", large, "] = ", in[large], " >= x[", small, "] = ", in[small], " but y = ", out[large],
                     " and ", out[small]);
      }
    return {};
  });
}

// A row alone gives the bits it gives among others, even others that are poison.
std::string rows_are_independent(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  const std::int64_t r = std::int64_t(random_bits(c.seed, 3) % std::uint64_t(c.rows));
  const auto own_x = row(x, c.cols, r), own_y = row(y, c.cols, r);
  // What it does with few rows may be another plan than with many: the same bits are asked of the same plan.
  // And at the same place in a line of the cache: vectors begin where the address allows, sums follow them.
  constexpr int kLine = 64;  // elements of 16 bits
  Case alone = c;
  alone.rows = 1;
  const auto place = [&](int shift, int padding, DataType type) {
    const int there = int((shift + r * (c.cols + padding)) % kLine);
    // A matrix may have to begin where its other rows need not.
    return there * int(bytes_per_element(type)) % k.traits().alignment == 0 ? there : shift;
  };
  alone.in_shift = place(c.in_shift, c.in_padding, c.types.in);
  alone.out_shift = place(c.out_shift, c.out_padding, c.types.out);
  alone.plan = k.plan(problem_of(c));
  const bool same_plan = k.unsupported(problem_of(alone)).empty() && k.plan(problem_of(alone)) == alone.plan;
  const std::vector<float> expected(own_y.begin(), own_y.end());
  if (same_plan) {
    const auto single = run(k, alone, {own_x.begin(), own_x.end()}).y;
    if (const auto why = difference(expected, single, c.cols, say("as a matrix of row ", r, " alone").c_str());
        !why.empty())
      return why;
  }
  // The card seldom has fewer groups of blocks than there are rows; with one, it takes them one after the other.
  if (Case one = c; k.traits().keeps_workspace) {
    one.plan = alone.plan;
    one.max_blocks = one.plan.blocks;
    if (k.unsupported(problem_of(one)).empty())
      if (const auto why = difference(y, run(k, one, x).y, c.cols, "by one group of blocks"); !why.empty()) return why;
  }
  auto poisoned = x;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::int64_t(i) / c.cols != r) poisoned[i] = i % 2 ? kNan : kInf;
  const auto among = run(k, c, poisoned).y;
  const auto again = row(among, c.cols, r);
  return difference(expected, {again.begin(), again.end()}, c.cols,
                    say("in row ", r, " among rows of NaN and inf").c_str());
}

// In the same memory: what a kernel keeps there from launch to launch must not show.
std::string repeats(const Kernel& k, const Case& c) {
  const std::vector<std::vector<float>> inputs(4, values(c));
  const std::vector<Output> outputs = run_in_turn(k, c, inputs);
  for (const Output& later : outputs)
    if (const auto why = difference(outputs[0].y, later.y, c.cols, "in a later run"); !why.empty()) return why;
  return {};
}

// On a GPU the order is not ours to set: there this is one more repetition.
std::string order_does_not_matter(const Kernel& k, const Case& given) {
  Case c = given;
  const auto x = values(c), first = run(k, c, x).y;
  using Order = Schedule::Order;
  for (const Schedule s : {Schedule{Order::forward, 0}, Schedule{Order::reverse, 0}, Schedule{Order::seeded, c.seed},
                           Schedule{Order::seeded, c.seed + 1}, Schedule{Order::seeded, c.seed + 2}}) {
    c.schedule = s;
    if (const auto why = difference(first, run(k, c, x).y, c.cols, say("under schedule ", to_string(s)).c_str());
        !why.empty())
      return why;
  }
  return {};
}

std::string masked_is_zero(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] == -kInf && !same_bits(y[i], 0.0f))
      return say("row ", std::int64_t(i) / c.cols, ", column ", std::int64_t(i) % c.cols, ": -inf gives ", y[i],
                 ", not 0");
  return each_row(c, x, y, [&](auto in, auto out) { return judge_elements(k, c, in, out); });
}

// A third of the rows hold one NaN, one +inf, or nothing but -inf; these are NaN throughout and the others as ever.
std::string undefined_rows_are_nan(const Kernel& k, const Case& c) {
  auto x = values(c);
  const float nans[] = {kNan, -kNan, std::bit_cast<float>(0x7f812345u)};  // either sign, and a signalling one
  auto broken = [&](std::int64_t r) { return (r + std::int64_t(c.seed % 3)) % 3 != 0 || c.rows == 1; };
  for (std::int64_t r = 0; r < c.rows; ++r) {
    if (!broken(r)) continue;
    const std::uint64_t bits = random_bits(c.seed, 100 + std::uint64_t(r));
    float* const own = &x[std::size_t(r * c.cols)];
    const std::int64_t where =
        bits / 8 % 2 ? std::int64_t(bits / 16 % std::uint64_t(c.cols)) : (bits / 16 % 2 ? 0 : c.cols - 1);
    if (bits % 3 == 2)
      std::fill(own, own + c.cols, -kInf);
    else
      own[where] = bits % 3 == 0 ? nans[bits / 64 % 3] : kInf;
  }
  const auto y = run(k, c, x).y;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r), out = row(y, c.cols, r);
    if (!broken(r)) {
      if (const std::string why = judge_elements(k, c, in, out); !why.empty())
        return say("row ", r, ", beside broken ones: ", why);
      continue;
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!std::isnan(out[i])) return say("row ", r, ", column ", i, ": ", out[i], ", not NaN, where x = ", in[i]);
  }
  return {};
}

// What a kernel remembers, by address, by shape or by a sum of the input, must not answer for it: the same memory holds
// other data, then the same with two elements exchanged.
std::string answers_this_input(const Kernel& k, const Case& c) {
  Case other = c;
  other.seed = ~c.seed;
  std::vector<std::vector<float>> inputs = {values(c), values(other), values(other)};
  const std::uint64_t bits = random_bits(c.seed, 4);
  float* const row = &inputs[2][std::size_t(bits % std::uint64_t(c.rows) * std::uint64_t(c.cols))];
  const std::uint64_t from = bits / 1024 % std::uint64_t(c.cols);
  std::swap(row[from], row[(from + std::uint64_t(c.cols) / 2) % std::uint64_t(c.cols)]);
  constexpr const char* kWhen[] = {"", "other data in the same memory, ", "two elements exchanged, "};
  const std::vector<Output> outputs = run_in_turn(k, c, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const std::string why = wrong_row(k, c, inputs[i], outputs[i].y); !why.empty()) return kWhen[i] + why;
  return {};
}

// Row by row, with each one's temperature; a power of two gives the bits of a row that was divided beforehand.
std::string temperature(const Kernel& k, const Case& c) {
  const auto x = values(c), y = run(k, c, x).y;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto in = row(x, c.cols, r), out = row(y, c.cols, r);
    if (const std::string why = judge_elements(k, c, in, out, r); !why.empty()) return say("row ", r, ": ", why);
  }
  int exponent;
  if (c.each_row || std::frexp(c.temperature, &exponent) != 0.5f) return {};
  Case plain = c;
  plain.temperature = 1;
  auto scaled = x;
  for (float& v : scaled) v /= c.temperature;
  auto exact = scaled;
  round_to(c.types.in, exact);
  if (exact != scaled) return {};  // beyond the type's range, or below
  if (!k.traits().choice) plain.plan = k.plan(problem_of(c));
  return difference(run(k, plain, scaled).y, y, c.cols, "by temperature");
}

std::string in_place(const Kernel& k, const Case& c) {
  const auto x = values(c);
  Case apart = c;
  apart.in_place = false;
  apart.out_padding = c.in_padding;
  const Output own = run(k, c, x);
  if (!own.trespass.empty()) return own.trespass;
  return difference(run(k, apart, x).y, own.y, c.cols, "in place");
}

std::string stays_inside(const Kernel& k, const Case& c) { return run(k, c).trespass; }

template <auto... kinds>
rc::Gen<Case> only(const Kernel& k) {
  return cases(k, {kinds...});
}
rc::Gen<Case> finite(const Kernel& k) { return cases(k, finite_kinds(), kOffsets); }
rc::Gen<Case> finite_at_zero(const Kernel& k) { return cases(k, finite_kinds()); }
rc::Gen<Case> any(const Kernel& k) { return cases(k, all_kinds(), kOffsets); }
rc::Gen<Case> with_temperature(const Kernel& k) {
  return cases(k, all_kinds(), kOffsets, {.temperature = true, .in_place = false});
}
rc::Gen<Case> any_in_place(const Kernel& k) {
  return cases(k, all_kinds(), kOffsets, {.temperature = true, .in_place = true});
}
bool has_temperature(const Traits& t) { return t.temperature; }
bool works_in_place(const Traits& t) { return t.in_place; }
// Below the finite numbers that kernels write for -inf, such as -1e4.
rc::Gen<Case> with_mask(const Kernel& k) { return cases(k, masked_kinds(), {0, -2e4f}); }
rc::Gen<Case> finite_or_masked(const Kernel& k) { return rc::gen::oneOf(finite(k), cases(k, masked_kinds())); }
rc::Gen<Case> constant(const Kernel& k) {
  return cases(k, {Kind::constant, Kind::few_equal},
               {0, 1, -1, 1e-30f, 1e4f, -1e4f, 1e8f, 1e10f, -1e30f, FLT_MAX, -FLT_MAX});
}

// In the order of the battery that kills all mutants (properties/mutants/), what kills most first.
constexpr Law kLaws[] = {
    {"halves_make_a_row", "a part of a row has its softmax times its part of the sum", finite, halves_make_a_row},
    {"rows_are_independent", "a row's bits do not depend on other rows", any, rows_are_independent, Law::Asks::bits},
    {"masked_is_zero", "-inf gives exactly 0, wherever it stands, and the rest is a softmax", with_mask,
     masked_is_zero},
    {"answers_this_input", "what the memory held before does not matter, nor what the kernel answered then",
     only<Kind::normal, Kind::wide>, answers_this_input},
    {"temperature", "a row is divided by its temperature first", with_temperature, temperature, Law::Asks::values,
     has_temperature},
    {"shift_is_bounded", "softmax(x + c) is near softmax(x) elsewhere", finite_at_zero, shift_is_bounded},
    {"constant_is_exact", "k equal elements give 1 / k, bit for bit, among others of -inf", constant,
     constant_is_exact},
    {"undefined_rows_are_nan", "a NaN, a +inf or nothing but -inf makes its row NaN, and only that", finite_at_zero,
     undefined_rows_are_nan},
    {"two_columns_are_logistic", "two columns are 1 / (1 + exp(x' - x))", finite, two_columns_are_logistic},
    {"stays_inside", "nothing is written but the output, and the input is as it was", any, stays_inside},
    {"shift_is_exact", "softmax(x + c) has the bits of softmax(x) where x + c is exact", only<Kind::grid>,
     shift_is_exact, Law::Asks::bits},
    {"rows_sum_to_one", "every row sums to 1 within the bound of its reduction", finite_or_masked, sums_to_one},
    {"repeats", "a second run gives the same bits", any, repeats, Law::Asks::order},
    {"permutation_is_harmless", "elements in another order give the same outputs in that order", finite,
     permutation_is_harmless},
    {"outputs_keep_ratios", "two outputs differ by the factor exp(x - x')", finite, outputs_keep_ratios},
    {"order_does_not_matter", "no order of threads that the barriers allow changes a bit", any, order_does_not_matter,
     Law::Asks::order},
    {"maximum_stays_maximum", "the largest input has the largest output", finite, maximum_stays_maximum},
    {"matches_reference", "every output is within the bound of its arithmetic of the long-double reference", finite,
     matches_reference},
    {"is_monotone", "a larger input gives no smaller output, equal inputs equal bits", finite, is_monotone},
    {"in_range", "outputs lie in [0, 1]", any, in_range},
    {"in_place", "the output may be the input and gets the same bits", any_in_place, in_place, Law::Asks::bits,
     works_in_place},
    {"far_elements_add_nothing", "more elements that are -inf, or far below the maximum, get 0 and change nothing",
     finite, far_elements_add_nothing},
    {"does_not_overflow", "inputs up to the largest float give finite, right outputs", finite_at_zero,
     does_not_overflow},
};

}  // namespace

std::span<const Law> laws() { return kLaws; }

std::vector<const Law*> laws(const Kernel& k) {
  std::vector<const Law*> its;
  for (const Law& l : kLaws)
    if (!l.applies || l.applies(k.traits())) its.push_back(&l);
  return its;
}

const Law& law(std::string_view name) {
  for (const Law& l : kLaws)
    if (l.name == name) return l;
  throw std::out_of_range("no law is called " + std::string(name));
}

std::string wrong_row(const Kernel& k, const Case& c, const std::vector<float>& x, const std::vector<float>& y) {
  return each_row(c, x, y, [&](std::span<const float> in, std::span<const float> out) -> std::string {
    if (!std::isnan(reference::analyse(in).y[0])) return judge_elements(k, c, in, out);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!std::isnan(out[i])) return say("column ", i, ": ", out[i], ", not NaN, where x = ", in[i]);
    return {};
  });
}

std::string search(const Law& law, const Kernel& kernel, int count, std::uint64_t seed) {
  const rc::Gen<Case> gen = law.cases(kernel);
  for (int i = 0; i < count; ++i) {
    const Case c = gen(rc::Random(mix(seed + std::uint64_t(i))), i % 100).value();
    std::string why;
    try {
      why = law.refute(kernel, c);
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (!why.empty()) return say(why, "; case ", c);
  }
  return {};
}

}  // namespace softmax::properties
