#pragma once
// Judges one kernel on one machine: laws, examples, what a checking machine finds, traffic, and on a GPU speed.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"
#include "properties/case.hpp"
#include "properties/laws.hpp"

namespace softmax::judge {

struct Options {
  std::uint64_t seed = 1;
  int cases = 50;          // a law
  double law_seconds = 8;  // a law; it gets some cases whatever they cost
};

// What became of a law, or of a list of examples.
struct Ruling {
  std::string name, statement;
  int held = 0;     // cases
  int stopped = 0;  // cases that a finding ended before the law could be asked
  std::string why;  // empty, or how the smallest case breaks it
  properties::Case smallest;
  bool example = false;  // a list of examples: not every kernel takes their shapes

  properties::Law::Asks asks = properties::Law::Asks::values;

  bool broken() const { return !why.empty(); }
};

// A rule of CUDA that the kernel broke, once for each kind and place in its source.
struct Finding {
  std::string key, text;
  int launches = 0;
  properties::Case smallest;  // of the cases that showed it; text is what it said there
};

struct Traffic {
  std::int64_t rows = 0, cols = 0;
  Profile profile;
};

struct Speed {
  std::int64_t rows = 0, cols = 0;
  double us_per_token = 0, percent_copy = 0, max_ulp = 0;
};

struct Report {
  std::string machine, id;
  std::string limits;      // empty, or what shapes the kernel says it takes
  std::string hint;        // empty, or what shapes it might say it takes
  std::string not_judged;  // empty, or why this machine could not judge it
  std::vector<Ruling> rulings;
  std::vector<Finding> findings;
  std::optional<Traffic> traffic;
  std::optional<Speed> speed;

  int broken() const;  // laws
  bool wrong() const;  // an answer is, or may be; not if runs differ in their last bits alone
};

struct Observer {
  std::function<void(const std::string&)> doing;  // before each case: what a launch that never ends was asked
  std::function<void(const Ruling&)> ruled;
};

Report judge(const Kernel&, const Options&, const Observer&);

// For people, in a few columns; without the rulings, which an observer shows as they come.
std::string to_string(const Ruling&);
std::string to_string(const Report&);
std::string to_string(const properties::Case&);  // without what is as usual
// "RIGHT - ...", "WRONG - ..." or "NOT JUDGED - ...", of all machines together.
std::string verdict(const std::vector<Report>&);
// The same for programs.
std::string to_json(const std::string& file, const std::string& verdict, const std::vector<Report>&);

// "kind and places" of one line that a machine reports: what makes two of them the same finding.
std::string finding_key(const std::string& line);
// The shapes at which a kernel may be right, as an expression in C, out of the widths at which it was right and wrong;
// empty if none describes them.
std::string describe_widths(const std::vector<std::int64_t>& right, const std::vector<std::int64_t>& wrong);

}  // namespace softmax::judge
