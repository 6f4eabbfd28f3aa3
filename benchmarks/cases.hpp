#pragma once
// The benchmarks: one for each kernel, shape and block size, registered at run time.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/session.hpp"
#include "kernels/kernel.hpp"

namespace softmax::bench {

// One line of a result file: what all of them have in common.
class Line : public benchmark::Fixture {
 public:
  Line(Session& session, Mode mode, int sets) : session_(session), mode_(mode), sets_(sets) {}
  using benchmark::Fixture::SetUp;
  void SetUp(benchmark::State&) override;
  // What the library calls. Once interrupted() it does nothing but end in the error kInterrupted.
  void enter(benchmark::State&);

  std::string name;  // whole, as the library has it

 protected:
  void BenchmarkCase(benchmark::State&) override;
  // Looks memory up; what is made in the timed function would be made again and again. Its error becomes the line's.
  virtual void prepare() = 0;
  // Measures, and hands time and counters over. What it throws becomes the line's error.
  virtual void measure(benchmark::State&) = 0;

  // Time, counters that every row has, and the raw samples. `bytes` is what a launch moves, or 0.
  void hand_over(benchmark::State&, const Measured&, std::int64_t bytes);
  // Registers, shared memory and occupancy of the machine's last launch.
  static void hand_over(benchmark::State&, const LaunchInfo&);
  static void put(benchmark::State&, const std::string& key, double value);  // if it is finite, as JSON must be
  static std::int64_t at_least(const benchmark::State&);                     // samples that the user insists on
  // In place of measuring, if a session profiles: one launch, with a cold cache where the mode says so.
  void profile(benchmark::State&, const std::function<void()>& launch);

  Session& session_;
  Mode mode_;
  int sets_;

 private:
  void fail(benchmark::State&, const std::string& why);
  bool prepared_ = false;
};

// A line about one shape.
class Case : public Line {
 public:
  Case(Session& session, Shape shape, Mode mode, int sets) : Line(session, mode, sets), shape_(shape) {}

 protected:
  void prepare() override { workspace_ = &session_.workspace(shape_, sets_); }
  void measure(benchmark::State& st) override { measure(st, *workspace_); }
  virtual void measure(benchmark::State&, Workspace&) = 0;

  std::string on_file() const;  // " @ FILE" behind a label, if the shape's data are a file's
  void hand_over(benchmark::State&, const Measured&);

  Shape shape_;

 private:
  Workspace* workspace_ = nullptr;
};

// Traces a kernel where its machine can, verifies it, times it, verifies it again.
class KernelCase final : public Case {
 public:
  KernelCase(Session& session, const Kernel& kernel, const Point& point, const How& how)
      : Case(session, point.shape, point.mode, session.sets(point)), kernel_(kernel), how_(how) {}

 private:
  void measure(benchmark::State&, Workspace&) override;
  void count(benchmark::State&, const std::function<void()>& launch);  // hardware counters, a token's share
  double verify(Workspace&);  // the largest ulp error of the output as it stands; throws where it is wrong

  const Kernel& kernel_;
  How how_;
};

// The roof: the machine's fastest copy of the same bytes, held against itself.
class CopyCase final : public Case {
 public:
  using Case::Case;

 private:
  void measure(benchmark::State&, Workspace&) override;
};

// Of a case that was not measured because the run was interrupted: its row is no result.
inline constexpr const char* kInterrupted = "interrupted";

// "softmax/V6/fp32/ieee/cold": operation, version (or "copy"), data type, math, mode, and of rows that are not dense
// "/at:1.2/gap:3.0", elements of input and output. Google Benchmark adds the arguments, which are whole numbers.
std::string case_name(const Session&, std::string_view version, Mode, std::string_view operation = "softmax",
                      const Shape& = {});

struct Registered {
  std::vector<std::unique_ptr<Line>> cases;  // must outlive the run
  std::vector<std::string> left_out;         // for each shape or kernel that was not registered: which, and why
};
void add(Registered&, std::unique_ptr<Line>, const std::string& name, std::vector<std::string> arg_names,
         std::vector<std::int64_t> args);
// Registers by shape, version, block: what a kernel does not support is left out, and so is a shape that does not fit,
// or that would not be honest in its mode.
Registered register_cases(Session&, const std::vector<Point>&, std::span<const Kernel* const>);

}  // namespace softmax::bench
