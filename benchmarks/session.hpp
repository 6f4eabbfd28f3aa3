#pragma once
// What all cases of one process share: the machine, the current shape's memory, the reference rows, the copy roof.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/measure.hpp"
#include "benchmarks/trace.hpp"
#include "benchmarks/verify.hpp"
#include "benchmarks/workspace.hpp"

namespace softmax::bench {

class Session {
 public:
  Session(Machine&, Input);  // the machine watches nothing from here on, but for trace()

  Machine& machine() const { return machine_; }
  const Input& input() const { return input_; }
  std::string_view mode() const { return machine_.simulated() ? "sim" : "cold"; }

  // The shape's buffers, filled. Frees those of the shape before, so memory holds one shape at a time. Throws
  // OutOfMemory.
  Workspace& workspace(Shape);
  Expected& expected(const Workspace&);

  // Statistics of one piece of work, after the process-wide warm-up that the first call pays for.
  Summary time(Workspace&, const Work&, std::int64_t at_least);
  // The fastest of the machine's ways to copy the workspace's input to its output: same bytes, same mode.
  Summary time_copy(Workspace&, std::int64_t at_least);
  // Median seconds of time_copy, measured once for each number of bytes.
  double copy_seconds(Workspace&);

  // What a kernel asks of memory, traced once for all repetitions. Throws what it did wrong.
  const Trace& trace(Workspace&, const Kernel&, int block);
  const std::vector<Trace>& traces() const { return traces_; }  // in the order of the run

  double warm_up_seconds = 1;  // of the first time(); the clocks of an idle GPU take about that long to settle

  // A case ended in an error. Its kernel may have written anywhere, so the next case gets fresh memory.
  void fail();
  int failures() const { return failures_; }

 private:
  Machine& machine_;
  Input input_;
  std::unique_ptr<Workspace> workspace_;
  std::map<Shape, Expected> expected_;
  std::map<std::int64_t, double> copy_seconds_;
  std::vector<Trace> traces_;
  bool warm_ = false;
  int failures_ = 0;
};

}  // namespace softmax::bench
