#pragma once
// The laws of softmax, one list for all who judge kernels by them: the tests, the sabotage study, the soak.

#include <rapidcheck.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "properties/case.hpp"

namespace softmax::properties {

struct Law {
  std::string_view name;
  std::string_view statement;
  rc::Gen<Case> (*cases)(const Kernel&);
  // Empty if the law holds for this case, else what broke it. Throws what the kernel throws.
  std::string (*refute)(const Kernel&, const Case&);
  // A sum by atomics adds up in another order each time: every answer may be right, and no two runs have the same bits.
  enum class Asks {
    values,
    bits,   // compares the bits of two runs
    order,  // and asks for nothing else
  } asks = Asks::values;
  bool (*applies)(const Traits&) = nullptr;  // to every kernel, if null
};

std::span<const Law> laws();
std::vector<const Law*> laws(const Kernel&);  // those that say something about it
const Law& law(std::string_view name);        // throws std::out_of_range

// The first row of y that is not the softmax of x's: off by more than the kernel's bound, or not NaN where it must be.
std::string wrong_row(const Kernel&, const Case&, const std::vector<float>& x, const std::vector<float>& y);

// Draws `count` cases as RapidCheck would and returns the first refutation or fault, with its case; empty if there is
// none.
std::string search(const Law&, const Kernel&, int count, std::uint64_t seed);

}  // namespace softmax::properties
