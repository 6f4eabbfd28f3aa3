#pragma once
// The laws of the merge of (max, sum), each of 4096 draws of a seed.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "properties/certify/merge.hpp"

namespace softmax::merge {

struct MergeLaw {
  std::string_view name;
  // Empty if the law holds, else what broke it. Throws what the machine throws.
  std::string (*refute)(const Merger&, std::uint64_t seed);
};
std::span<const MergeLaw> merge_laws();

}  // namespace softmax::merge
