#pragma once
// Fresh cases for every kernel and every law, one case each in turn, for as long as there is time.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"

namespace softmax::soak {

struct Options {
  double seconds = 60;
  std::int64_t cases = std::numeric_limits<std::int64_t>::max();  // at most
  std::uint64_t seed = 0;  // a kernel's n-th case under a law follows from this, both names and n alone
  std::string device;      // "cpu" or "gpu"; empty: all, each for the same time
  std::span<const Kernel* const> kernels = softmax::kernels();
  bool merge = true;                                        // the laws of the merge too
  std::function<bool()> stop = [] { return false; };        // asked between cases
  std::function<void(const std::string&)> say = nullptr;    // told of the progress and of each failure, a line each
  std::function<void(const std::string&)> doing = nullptr;  // the line of a failure, should the case at hand be one
};

// The first case of a kernel that broke a law, and that case shrunk.
struct Failure {
  std::string kernel, law;  // "V6_cpu"
  std::int64_t times = 0;   // that the kernel broke it
  std::string drawn, smallest, why;
};
std::string to_string(const Failure&);  // one line, which says how to run it again

// A class of properties/classes.hpp: how often it was drawn, and how often it should have been.
struct Drawn {
  std::string name;
  std::int64_t cases = 0;
  double least = 0;
};

struct Report {
  std::uint64_t seed = 0;
  double seconds = 0;
  bool stopped = false;  // before its time
  std::vector<std::string> devices, math;
  bool simulated = true;                                             // by CPU devices alone
  std::map<std::string, std::map<std::string, std::int64_t>> cases;  // by kernel and law
  std::vector<Drawn> classes;
  std::vector<Failure> failures;

  std::int64_t total() const;
};
std::ostream& operator<<(std::ostream&, const Report&);

// Throws std::runtime_error where there is nothing to ask.
Report soak(const Options&);

}  // namespace softmax::soak
