#include "properties/bounds.hpp"

#include <algorithm>
#include <optional>

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

reference::ErrorModel constants(const Traits& traits, bool fast_math) {
  reference::ErrorModel model;
  switch (traits.exp) {
    case Exp::expf: model.exp = fast_math ? reference::kFastExp : reference::kExpf; break;
    case Exp::fast: model.exp = reference::kFastExp; break;
    case Exp::exp2_folded:
      model.exp = reference::kExp2Folded;
      model.a = 0;  // there is no x - max to round; the fused multiply-add's rounding is in kExp2Folded
      break;
  }
  switch (traits.divide) {
    case Divide::ieee: model.divide = fast_math ? reference::kDivideFast : reference::kDivideIeee; break;
    // Under fast math 1 / sum is approximate, so the pair is no better than the fast division.
    case Divide::reciprocal: model.divide = fast_math ? reference::kDivideFast : reference::kDivideReciprocal; break;
    case Divide::fast: model.divide = reference::kDivideFast; break;
  }
  if (fast_math) model.eta = reference::kEtaFlushed;
  model.online = traits.algorithm == Algorithm::online;
  model.double_sum = traits.summation == Summation::sequential_double;
  return model;
}

}  // namespace

int rescaling_threads(const Traits& traits, int block) {
  const auto known = order(traits.summation);
  return known && traits.algorithm == Algorithm::online ? threads(*known, block) : 0;
}

reference::ErrorModel error_model(const Traits& traits, std::int64_t cols, int block, bool fast_math) {
  reference::ErrorModel model = constants(traits, fast_math);
  const std::optional<reference::Order> known = order(traits.summation);
  const reference::Order by = known.value_or(reference::Order::sequential);  // no order has more additions
  model.additions = double(reference::additions(by, cols, block));
  if (!model.online) return model;
  model.merges = double(reference::merges(by, cols, block));
  const std::int64_t share = threads(by, block);
  model.rescales = double(std::max<std::int64_t>((cols + share - 1) / share - 1, 0));
  return model;
}

reference::ErrorModel error_model(const Traits& traits, std::span<const float> row, int block, bool fast_math) {
  reference::ErrorModel model = error_model(traits, std::int64_t(row.size()), block, fast_math);
  if (const int threads = rescaling_threads(traits, block))
    model.rescales = double(reference::running_max_updates(row, threads));
  return model;
}

}  // namespace softmax
