#pragma once
// --sweep: a text of axes and their values, as points to measure.

#include <string>
#include <vector>

#include "benchmarks/suites.hpp"

namespace softmax::bench {

struct Sweep {
  std::vector<Point> points;  // no point twice; rows vary slowest, then columns, types, layouts, modes, plans
  Flush flush = Flush::memset;
};

// What a sweep is read for.
struct SweepOn {
  bool simulated = false;
  Shape shape;              // where no axis says otherwise; no axis may change a file's
  std::vector<int> blocks;  // that any kernel takes
};

// "C=1024:65536:x2,block=32|128": axes N, C, MiB (of input; excludes N), at, gap, block, mode, flush, dtype, plan, overlap,
// each at most once.
// Alternatives stand between |; numbers also as a:b, a:b:+step, a:b:xfactor (b included where it is met), each with K or
// M (1024, 1024^2); of at and gap a number or IN.OUT. Throws UsageError, which names axis, value and what is possible.
Sweep parse_sweep(const std::string& text, const SweepOn&);

}  // namespace softmax::bench
