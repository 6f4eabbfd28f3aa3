#pragma once
// The classes of cases that a kernel must be asked, and how often: a law holds for want of looking where one is rare.

#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "properties/case.hpp"

namespace softmax::properties {

struct Class {
  std::string name;
  std::function<double(const Kernel&)> least;  // per cent of a kernel's cases; 0 where it has no such case
  std::function<bool(const Kernel&, const Case&)> is;
};
const std::vector<Class>& classes();  // for all kernels of this program

}  // namespace softmax::properties
