#pragma once
// The pair (max, sum) of collective/online.hpp, merged on a machine: what the merge laws are asked of.

#include <vector>

#include "kernels/machine.hpp"

namespace softmax::merge {

struct Pair {  // collective::MaxSum, which each back end has for itself
  float max, sum;
};

struct Merger {
  Machine& (*machine)();
  // Device memory. out[i] = merge(a[i], b[i]), and the 32 pairs of each warp's lanes: out[lane] is what that lane gets.
  void (*two)(const Pair* a, const Pair* b, Pair* out, int count, float scale);
  void (*warps)(const Pair* in, Pair* out, int warps, float scale);
};
bool register_merger(const Merger&);
const std::vector<Merger>& mergers();

}  // namespace softmax::merge
