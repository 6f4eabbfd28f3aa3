#include "benchmarks/cases.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace softmax::bench {
namespace {

// A NaN or an infinity in JSON breaks its readers.
void put(benchmark::State& st, const std::string& key, double value) {
  if (std::isfinite(value)) st.counters[key] = value;
}

// One batch of all the iterations that the library asks for, 1 unless --benchmark_min_time is given: real_time is the
// median. Not the number of samples: 1.7.1 aborts when two repetitions differ in their iterations, and samples do.
void hand_over(benchmark::State& st, const Summary& s, Shape shape) {
  const auto iterations = st.max_iterations;
  while (st.KeepRunningBatch(iterations)) st.SetIterationTime(s.median * double(iterations));
  put(st, "us/token", s.median * 1e6 / double(shape.rows));
  put(st, "GB/s", double(shape.bytes()) / s.median / 1e9);
  put(st, "us", s.median * 1e6);
  put(st, "us_min", s.min * 1e6);
  put(st, "us_p25", s.p25 * 1e6);
  put(st, "us_p75", s.p75 * 1e6);
  put(st, "n", s.n);
  put(st, "ci%", s.ci_percent);
  put(st, "bytes", double(shape.bytes()));
  put(st, "N", double(shape.rows));
  put(st, "C", double(shape.cols));
}

// A user's larger --benchmark_min_time arrives as a number of iterations, above the first round's 1.
std::int64_t at_least(const benchmark::State& st) { return st.max_iterations > 1 ? st.max_iterations : 0; }

void add(Registered& all, std::unique_ptr<Case> made, const std::string& name, std::vector<std::string> arg_names,
         std::vector<std::int64_t> args) {
  Case* c = made.get();
  all.cases.push_back(std::move(made));
  benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& st) { c->Run(st); })
      ->ArgNames(std::move(arg_names))
      ->Args(std::move(args))
      ->Unit(benchmark::kMicrosecond)
      ->UseManualTime();
}

// An error is one line of the table; a machine's report may have several.
std::string one_line(const std::string& text) {
  std::string line;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part);) {
    part.erase(0, part.find_first_not_of(" \t"));
    if (!part.empty()) line += (line.empty() ? "" : line.ends_with(":") ? " " : "; ") + part;
  }
  return line;
}

std::string text(Shape shape) { return std::to_string(shape.rows) + " x " + std::to_string(shape.cols); }

}  // namespace

void Case::fail(benchmark::State& st, const std::string& why) {
  session_.fail();
  st.SkipWithError(one_line(why).c_str());
}

std::string Case::on_file() const { return shape_.file ? " @ " + session_.input().file_name : ""; }

void Case::SetUp(benchmark::State& st) {
  workspace_ = nullptr;
  try {
    workspace_ = &session_.workspace(shape_);
  } catch (const std::exception& e) {
    fail(st, e.what());
  }
}

void Case::BenchmarkCase(benchmark::State& st) {
  if (!workspace_) return;  // SetUp failed; 1.7.1 runs the body all the same
  try {
    measure(st, *workspace_);
  } catch (const std::exception& e) {
    fail(st, e.what());
  }
}

double KernelCase::verify(Workspace& ws) {
  const Verdict verdict = bench::verify(ws, session_.expected(ws), kernel_.traits(), block_);
  if (!verdict.wrong.empty()) throw std::runtime_error("INCORRECT: " + verdict.wrong);
  return verdict.max_ulp;
}

void KernelCase::measure(benchmark::State& st, Workspace& ws) {
  Machine& machine = session_.machine();
  const Problem problem = ws.problem(kernel_, block_);
  const auto launch = [&] { kernel_.launch(problem); };
  session_.expected(ws);  // first: it looks at the input
  // First of all: an access out of bounds is reported here, and only undefined when nobody watches.
  std::vector<std::pair<std::string, double>> traced;
  if (machine.simulated()) traced = traced_counters(session_.trace(ws, kernel_, block_));
  const auto launch_once = [&] {
    ws.out().poison();
    launch();
    machine.synchronize();
    return verify(ws);
  };
  double max_ulp = launch_once();
  ws.out().poison();
  const Summary s = session_.time(ws, launch, at_least(st));
  const LaunchInfo info = machine.last_launch();
  max_ulp = std::max(max_ulp, verify(ws));     // what the timed launches left
  max_ulp = std::max(max_ulp, launch_once());  // and that the last of them still did anything
  const double copy_seconds = machine.simulated() ? NAN : session_.copy_seconds(ws);

  hand_over(st, s, shape_);
  const Traffic traffic = kernel_.traffic(problem);
  put(st, "bytes_moved", double(traffic.read + traffic.written));
  put(st, "max_ulp", max_ulp);
  put(st, "smem", double(info.shared_bytes));
  if (info.registers) put(st, "regs", *info.registers);
  if (info.blocks_per_sm) put(st, "blocks/SM", *info.blocks_per_sm);
  put(st, "%copy", 100 * copy_seconds / s.median);  // none where times are simulated
  for (const auto& [key, value] : traced) put(st, key, value);
  put(st, "version", kernel_.version());
  put(st, "block", block_);
  st.SetLabel(std::string(kernel_.idea()) + on_file());
}

void CopyCase::measure(benchmark::State& st, Workspace& ws) {
  const Summary s = session_.time_copy(ws, at_least(st));
  hand_over(st, s, shape_);
  put(st, "bytes_moved", double(shape_.bytes()));
  put(st, "%copy", 100 * session_.copy_seconds(ws) / s.median);
  st.SetLabel("the fastest of " + std::to_string(session_.machine().copies()) + " ways to copy the same bytes" +
              on_file());
}

std::string case_name(const Session& session, std::string_view version) {
  return "softmax/" + std::string(version) + "/fp32/" + std::string(session.machine().math()) + "/" +
         std::string(session.mode());
}

Registered register_cases(Session& session, const std::vector<Shape>& shapes, std::span<const Kernel* const> kernels) {
  Registered all;
  Machine& machine = session.machine();
  for (const Shape shape : shapes) {
    const std::size_t needed = Workspace::needed(machine, shape), free = machine.free_memory();
    if (needed > free) {
      all.left_out.push_back(text(shape) + ": needs " + std::to_string(needed >> 20) + " MiB, " + machine.name() +
                             " has " + std::to_string(free >> 20) + " MiB free");
      continue;
    }
    if (!machine.simulated() && machine.copies() > 0)
      add(all, std::make_unique<CopyCase>(session, shape), case_name(session, "copy"), {"N", "C"},
          {shape.rows, shape.cols});
    for (const Kernel* kernel : kernels) {
      if (&kernel->machine() != &machine) continue;
      for (const int block : kernel->traits().blocks) {
        if (const std::string why = kernel->unsupported(problem_of(shape, block)); why.empty()) {
          add(all, std::make_unique<KernelCase>(session, *kernel, shape, block), case_name(session, kernel->label()),
              {"N", "C", "block"}, {shape.rows, shape.cols, block});
        } else if (all.left_out.empty() || !all.left_out.back().ends_with(why)) {  // once, not for every block
          all.left_out.push_back(kernel->label() + " at " + text(shape) + ": " + why);
        }
      }
    }
  }
  return all;
}

}  // namespace softmax::bench
