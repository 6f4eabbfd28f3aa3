#pragma once
// From a case that fails to a smaller one that fails too.

#include <rapidcheck.h>

#include <chrono>

#include "properties/case.hpp"

namespace softmax::properties {

inline double now() {  // seconds
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kShrinkSeconds = 4;

// Walks to a smaller case as long as `still` holds for it, and there is time.
template <class Still>
rc::Shrinkable<Case> shrink(rc::Shrinkable<Case> from, const Still& still) {
  const double end = now() + kShrinkSeconds;
  for (bool smaller = true; smaller;) {
    smaller = false;
    auto candidates = from.shrinks();
    for (auto next = candidates.next(); next && !smaller; next = candidates.next()) {
      if (now() > end) return from;
      if (!still(next->value())) continue;
      from = *next;
      smaller = true;
    }
  }
  return from;
}

}  // namespace softmax::properties
