#include "properties/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "reference/certified.hpp"

namespace softmax {
namespace {

// The order a kernel adds in; none if it says nothing.
std::optional<reference::Order> order(Summation summation) {
  switch (summation) {
    case Summation::unknown: return {};
    case Summation::sequential:
    case Summation::sequential_double: return reference::Order::sequential;
    case Summation::warp: return reference::Order::warp;
    case Summation::block_tree: return reference::Order::block_tree;
    case Summation::block_serial: return reference::Order::block_serial;
    case Summation::block_warp: return reference::Order::block_warp;
  }
  return {};
}

// How many threads share a row's elements.
int threads(reference::Order order, int block) {
  switch (order) {
    case reference::Order::sequential: return 1;
    case reference::Order::warp: return 32;
    default: return block;
  }
}

// Whether the outputs' exps are more exact than those of the sum need be.
bool fine(const Traits& traits, const Problem& p) { return traits.exp == Exp::shifted && p.out_type == DataType::fp32; }

reference::ErrorModel constants(const Traits& traits, const Arithmetic& by) {
  const bool fast_math = by.fast_math;
  reference::ErrorModel model;
  switch (traits.exp) {
    case Exp::expf: model.exp = by.expf; break;
    case Exp::fast: model.exp = by.fast; break;
    case Exp::shifted: model.exp = by.shifted; break;
    case Exp::exp2_folded:
      model.exp = reference::kExp2Folded;
      model.a = 0;  // there is no x - max to round; the fused multiply-add's rounding is in kExp2Folded
      break;
  }
  switch (traits.divide) {
    case Divide::ieee: model.divide = fast_math ? reference::kDivideFast : reference::kDivideIeee; break;
    case Divide::reciprocal:
      model.divide = fast_math ? reference::kDivideFastReciprocal : reference::kDivideReciprocal;
      break;
    case Divide::fast: model.divide = reference::kDivideFast; break;
  }
  if (fast_math || traits.exp == Exp::fast || traits.exp == Exp::shifted) model.eta = reference::kEtaFlushed;
  model.online = traits.algorithm == Algorithm::online;
  model.double_sum = traits.summation == Summation::sequential_double;
  return model;
}

}  // namespace

Arithmetic::Arithmetic(bool fast)
    : fast_math(fast),
      expf(fast ? reference::kFastExp : reference::kExpf),
      fast(reference::kFastExp),
      shifted(reference::kFastExp),
      fine(reference::kFineExp) {}

Arithmetic arithmetic_of(const Machine& machine) {
  static thread_local std::map<const Machine*, Arithmetic> known;  // rows ask for it one by one
  if (const auto at = known.find(&machine); at != known.end()) return at->second;
  const std::string device = machine.name();
  const std::string_view math = machine.math();
  Arithmetic found(math == "fast");
  const auto expf = reference::certified(device, math, "expf"), by_name = reference::certified(device, math, "fast"),
             shifted = reference::certified(device, math, "shifted"), fine = reference::certified(device, math, "fine");
  if (expf && by_name && shifted && fine) {
    found.expf = expf->error;
    found.fast = by_name->error;
    found.shifted = shifted->error;
    found.fine = fine->error;
    found.monotone = expf->monotone && by_name->monotone && shifted->monotone && fine->monotone;
  }
  return known.emplace(&machine, found).first->second;
}

int rescaling_threads(const Traits& traits, int block) {
  const auto known = order(traits.summation);
  return known && !traits.rounding && traits.algorithm == Algorithm::online ? threads(*known, block) : 0;
}

reference::ErrorModel error_model(const Traits& traits, const Problem& p, const Arithmetic& by) {
  reference::ErrorModel model = constants(traits, by);
  if (fine(traits, p)) {
    model.sum_exp = model.exp;
    model.exp = by.fine;
  }
  if (p.out_type == DataType::fp16) model.output = reference::kFp16Output;
  if (p.out_type == DataType::bf16) model.output = reference::kBf16Output;
  if (traits.rounding) {
    const Rounding r = traits.rounding(p);
    model.additions = double(r.additions);
    model.merges = double(r.merges);
    model.online = r.merges > 0;
    if (r.one_exp) model.sum_exp.reset();
    return model;
  }
  const std::optional<reference::Order> known = order(traits.summation);
  const reference::Order order_of = known.value_or(reference::Order::sequential);  // no order has more additions
  model.additions = double(reference::additions(order_of, p.cols, p.block));
  if (!model.online) return model;
  model.merges = double(reference::merges(order_of, p.cols, p.block));
  const std::int64_t share = threads(order_of, p.block);
  model.rescales = double(std::max<std::int64_t>((p.cols + share - 1) / share - 1, 0));
  return model;
}

reference::ErrorModel error_model(const Traits& traits, const Problem& p, std::span<const float> row,
                                  const Arithmetic& by) {
  reference::ErrorModel model = error_model(traits, p, by);
  if (const int threads = rescaling_threads(traits, p.block))
    model.rescales = double(reference::running_max_updates(row, threads));
  int exponent;
  if (std::frexp(p.temperature, &exponent) == 0.5f) return model;
  if (traits.exp == Exp::shifted) {
    // Its arguments are others than those that `certify` has seen.
    const auto documented = [](const reference::ExpError& seen) {
      return reference::ExpError{std::max(seen.eps0, reference::kFastExp.eps0), seen.kappa + reference::kQuotientScale};
    };
    model.exp = fine(traits, p) ? reference::kFineExp : documented(model.exp);
    if (model.sum_exp) model.sum_exp = documented(*model.sum_exp);
  } else {
    float max = -INFINITY;
    for (const float x : row)
      if (x > max) max = x;
    model.a += reference::kScaledRow;
    model.scaled_max = std::fabs(double(max) / p.temperature);
  }
  return model;
}

}  // namespace softmax
