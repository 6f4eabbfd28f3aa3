#pragma once
// What `certify` found of a machine's exps, at every float of [-104, -0]: certified.csv.

#include <optional>
#include <string_view>

#include "reference/error.hpp"

namespace softmax::reference {

struct Certificate {
  ExpError error;
  bool monotone;  // exp(x) <= exp(x') wherever x < x'
};
// Of a machine's exp (certify/exps.cu has their names), as its math flags make it; none where all values were not seen.
std::optional<Certificate> certified(std::string_view device, std::string_view math, std::string_view exp);

}  // namespace softmax::reference
