#pragma once
// The bugs that other projects' softmax was reported to have, as one table: each with the test that this project's kernels
// must pass not to have it. A replay is of the whole kind of a fault, not of the one input that was reported.

#include <span>
#include <string>
#include <string_view>

#include "kernels/kernel.hpp"

namespace softmax::properties {

struct Replay {
  std::string_view issues;  // "pytorch/pytorch#147284", pull requests too; the first names the test
  std::string_view fault;
  // Empty if the kernel does not have the fault, else what shows it. Throws what the kernel throws.
  std::string (*refute)(const Kernel&) = nullptr;
  std::string_view tests = {};               // that replay it, or more of it: "Suite.name", "law:name"
  bool (*applies)(const Kernel&) = nullptr;  // to every kernel on every machine, if null
  std::string_view beyond = {};              // why nothing replays it
};

std::span<const Replay> replays();
const Replay& replay(std::string_view name);  // throws std::out_of_range
std::string name(const Replay&);              // "pytorch_147284"

}  // namespace softmax::properties
