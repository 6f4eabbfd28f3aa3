#pragma once
// What `certify` found of a machine's exps, at every float of [-104, -0]: certified.csv.

#include <optional>
#include <string_view>

#include "reference/error.hpp"

namespace softmax::reference {

// What eps0 may be more than the file says, relative: it has six digits, and `certify` compares with exp in double.
inline constexpr double kPrinted = 5.03e-6;

struct Certificate {
  ExpError error;
  bool monotone;  // exp(x) <= exp(x') wherever x < x'
};
// Of a machine's exp (certify/exps.cu has their names), as its math flags make it; none where all values were not seen.
std::optional<Certificate> certified(std::string_view device, std::string_view math, std::string_view exp);

}  // namespace softmax::reference
