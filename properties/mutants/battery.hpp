#pragma once
// A law asked of one generator at a time: a kind of rows, about 0 or, with a + behind, far from it.

#include <map>
#include <string>

#include "properties/laws.hpp"

namespace softmax::properties {

struct Asked {
  int cases = 0, kill = 0;  // how many were judged; the first that broke the law, or 0
};

// By generator, three cases of each, more where a law has few, and none behind one that broke it; of `only` one generator,
// unless that is empty.
std::map<std::string, Asked> ask(const Law&, const Kernel&, const std::string& only = {});

}  // namespace softmax::properties
