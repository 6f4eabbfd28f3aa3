#pragma once
// What all cases of one process share: the machine, the current shape's memory, the reference rows, the roofs.

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/measure.hpp"
#include "benchmarks/trace.hpp"
#include "benchmarks/verify.hpp"
#include "benchmarks/workspace.hpp"

namespace softmax::bench {

class Progress;

// The most that this process got out of the machine, in bytes/s of reads and writes together, with a cold cache; and the
// seconds of an empty launch.
struct Roof {
  double copy = 0, read = 0, write = 0, floor = 0;
  std::string copy_way;  // which of the copies was the fastest
};

// Raw samples beside a result file: float32, little-endian, microseconds, in the order taken.
class SampleFile {
 public:
  explicit SampleFile(const std::string& path);        // throws std::runtime_error
  static std::string beside(const std::string& json);  // x.json -> x.samples.f32
  std::int64_t append(const Measured&);                // where its samples begin, the work's before the copy's
  bool good() const { return file_.good(); }

 private:
  std::ofstream file_;
  std::int64_t size_ = 0;
};

class Session {
 public:
  Session(Machine&, Input);  // the machine watches nothing from here on, but for trace()

  Machine& machine() const { return machine_; }
  const Input& input() const { return input_; }
  std::string_view mode(Mode mode) const { return machine_.simulated() ? "sim" : name(mode); }
  // Buffer sets that a point's launches rotate over: three times the cache, and never one alone.
  int sets(const Point&) const;

  // The shape's buffers, filled. Frees those of the shape before, so memory holds one shape at a time. Throws
  // OutOfMemory.
  Workspace& workspace(Shape, int sets = 1);
  Expected& expected(const Workspace&);

  // The next case gets memory of its own: what this one left in it is not what others expect.
  void drop_workspace() { workspace_.reset(); }

  // Times one piece of work, and the machine's fastest copy of the workspace's bytes in turn with it, unless told not to.
  Measured time(Workspace&, const Work&, Mode, std::int64_t at_least, bool beside_copy = true);
  // The same of that copy itself: it is held against itself.
  Measured time_copy(Workspace&, Mode, std::int64_t at_least);
  // Empty if every set holds what set 0 holds after a launch on each, else which does not.
  static std::string differing_set(const Workspace&);

  // Measured once, on buffers of 1 GiB or of what memory leaves; nothing where times are simulated. Pays for the
  // process-wide warm-up.
  const Roof& roof();

  // What a kernel asks of memory, traced once for all repetitions. Throws what it did wrong.
  const Trace& trace(Workspace&, const Kernel&, const How&);
  const std::vector<Trace>& traces() const { return traces_; }  // in the order of the run

  Flush flush = Flush::memset;
  bool metrics = false;             // hardware counters too
  std::size_t counters_missed = 0;  // that the user was told of
  Policy policy;
  std::unique_ptr<SampleFile> samples;  // or none
  Progress* progress = nullptr;         // told of each case, if any
  bool profile = false;                 // each case is launched once, for a profiler, and not timed

  // A case ended in an error. Its kernel may have written anywhere, so the next case gets fresh memory.
  void fail();
  int failures() const { return failures_; }

 private:
  int best_copy(Workspace&, Mode);
  void warm(const Work&);

  Machine& machine_;
  Input input_;
  std::unique_ptr<Workspace> workspace_;
  std::optional<std::pair<Shape, Expected>> expected_;            // of the last shape: long double rows fill memory
  std::map<std::tuple<std::int64_t, int, Mode>, int> best_copy_;  // by bytes, sets, mode
  std::vector<Trace> traces_;
  Roof roof_;
  bool warm_ = false;
  int failures_ = 0;
};

}  // namespace softmax::bench
