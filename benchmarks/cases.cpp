#include "benchmarks/cases.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "benchmarks/interrupt.hpp"
#include "benchmarks/progress.hpp"

namespace softmax::bench {
namespace {

// 1.7.1 stops the program where two repetitions differ in their iterations: one that enters the loop counts as many as
// the others.
void end_in_error(benchmark::State& st, const std::string& why) {
  st.SkipWithError(why.c_str());
  while (st.KeepRunningBatch(st.max_iterations)) {
  }
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

// Why a mode would not measure what it says; empty if it does.
std::string dishonest(const Machine& machine, const Point& point) {
  constexpr std::int64_t kSmallest = 64 << 10;  // below, thousands of sets cost more to address than to move
  if (machine.simulated() || point.mode != Mode::graph || point.shape.bytes() >= kSmallest) return {};
  return "graph mode rotates over sets of at least " + std::to_string(kSmallest >> 10) +
         " KiB; only graph-hot is honest below";
}

// A graph holds dozens of launches, and one thread that walks along a row takes a tenth of a second.
std::string too_slow(const Kernel& kernel, const Point& point) {
  constexpr std::int64_t kLongest = 8192;
  const Summation s = kernel.traits().summation;
  if (!in_graph(point.mode) || point.shape.cols <= kLongest ||
      (s != Summation::sequential && s != Summation::sequential_double))
    return {};
  return "one thread a row is too slow for a graph above " + std::to_string(kLongest) + " columns";
}

// A kernel that has none of the blocks asked for is measured with all its own.
bool wanted(const Kernel& kernel, int block, const Point& point) {
  const auto has = [&](int b) { return std::ranges::count(point.blocks, b) > 0; };
  return point.blocks.empty() || has(block) || std::ranges::none_of(kernel.traits().blocks, has);
}

// What Kernel::launch would say of the pointers.
std::string misaligned(const Kernel& kernel, Shape shape) {
  for (const auto& [what, m] : {std::pair{"input", shape.in()}, {"output", shape.out()}})
    if (const int alignment = kernel.traits().alignment; m.begin(0) % std::size_t(alignment) != 0)
      return std::string(what) + " must begin at a multiple of " + std::to_string(alignment) + " bytes";
  return {};
}

}  // namespace

void add(Registered& all, std::unique_ptr<Line> made, const std::string& name, std::vector<std::string> arg_names,
         std::vector<std::int64_t> args) {
  Line* line = made.get();
  all.cases.push_back(std::move(made));
  line->name = name;
  for (std::size_t i = 0; i < args.size(); ++i) line->name += "/" + arg_names[i] + ":" + std::to_string(args[i]);
  line->name += "/manual_time";
  benchmark::RegisterBenchmark(name.c_str(), [line](benchmark::State& st) { line->enter(st); })
      ->ArgNames(std::move(arg_names))
      ->Args(std::move(args))
      ->Unit(benchmark::kMicrosecond)
      ->UseManualTime();
}

// A NaN or an infinity in JSON breaks its readers.
void Line::put(benchmark::State& st, const std::string& key, double value) {
  if (std::isfinite(value)) st.counters[key] = value;
}

// A user's larger --benchmark_min_time arrives as a number of iterations, above the first round's 1.
std::int64_t Line::at_least(const benchmark::State& st) { return st.max_iterations > 1 ? st.max_iterations : 0; }

// One batch of all the iterations that the library asks for, 1 unless --benchmark_min_time is given: real_time is the
// median. Not the number of samples: 1.7.1 aborts when two repetitions differ in their iterations, and samples do.
void Line::hand_over(benchmark::State& st, const Measured& m, std::int64_t bytes) {
  const Summary& s = m.work;
  const auto iterations = st.max_iterations;
  while (st.KeepRunningBatch(iterations)) st.SetIterationTime(s.median * double(iterations));
  if (bytes > 0) {
    put(st, "GB/s", double(bytes) / s.median / 1e9);
    put(st, "bytes", double(bytes));
  }
  put(st, "us", s.median * 1e6);
  put(st, "us_min", s.min * 1e6);
  put(st, "us_p25", s.p25 * 1e6);
  put(st, "us_p75", s.p75 * 1e6);
  put(st, "n", s.n);
  put(st, "ci%", s.ci_percent);
  if (session_.samples) put(st, "samples_at", double(session_.samples->append(m)));
  if (session_.machine().simulated()) return;  // what follows says something of a GPU
  put(st, "noisy", m.noisy);
  put(st, "throttled", m.throttled);
  put(st, "suspect", m.suspect);
  if (m.copy.n > 0) {
    put(st, "us_copy", m.copy.median * 1e6);
    put(st, "%copy", 100 * m.copy.median / s.median);
  }
  if (const double peak = session_.machine().peak_bandwidth(); peak > 0 && bytes > 0)
    put(st, "%peak", 100 * double(bytes) / s.median / peak);
  if (m.sm_hz > 0) put(st, "sm_mhz", m.sm_hz / 1e6);
  if (m.throttle_reasons) put(st, "throttle_reasons", double(*m.throttle_reasons));
  if (in_graph(mode_)) {
    put(st, "slots", sets_);
    put(st, "nodes", m.launches);
  }
}

void Line::hand_over(benchmark::State& st, const LaunchInfo& info) {
  put(st, "smem", double(info.shared_bytes));
  if (info.registers) put(st, "regs", *info.registers);
  if (info.blocks_per_sm) put(st, "blocks/SM", *info.blocks_per_sm);
}

void Line::fail(benchmark::State& st, const std::string& why) {
  session_.fail();
  end_in_error(st, one_line(why));
}

void Line::enter(benchmark::State& st) {
  Progress* const progress = session_.progress;
  try {
    stop_if_interrupted();
    if (progress) progress->begin(name, st.max_iterations);
    Run(st);
    if (progress) progress->end();
  } catch (const Interrupted&) {
    end_in_error(st, kInterrupted);
  }
}

void Line::profile(benchmark::State& st, const std::function<void()>& launch) {
  Machine& machine = session_.machine();
  if (mode_ == Mode::cold) machine.time([](int) {}, 1, {.mode = Mode::cold, .flush = session_.flush});
  machine.profiled(name, launch);
  while (st.KeepRunningBatch(st.max_iterations)) st.SetIterationTime(0);
  put(st, "profiled", 1);
}

void Line::SetUp(benchmark::State& st) {
  prepared_ = false;
  try {
    prepare();
    prepared_ = true;
  } catch (const std::exception& e) {
    fail(st, e.what());
  }
}

void Line::BenchmarkCase(benchmark::State& st) {
  if (!prepared_) return;  // SetUp failed; 1.7.1 runs the body all the same
  try {
    measure(st);
  } catch (const std::exception& e) {
    fail(st, e.what());
  }
}

void Case::hand_over(benchmark::State& st, const Measured& m) {
  Line::hand_over(st, m, shape_.bytes());
  put(st, "us/token", m.work.median * 1e6 / double(shape_.rows));
  put(st, "N", double(shape_.rows));
  put(st, "C", double(shape_.cols));
  if (shape_.dense()) return;
  put(st, "in_at", double(shape_.at.in));
  put(st, "out_at", double(shape_.at.out));
  put(st, "in_gap", double(shape_.gap.in));
  put(st, "out_gap", double(shape_.gap.out));
}

std::string Case::on_file() const { return shape_.file ? " @ " + session_.input().file_name : ""; }

double KernelCase::verify(Workspace& ws) {
  const Verdict verdict = bench::verify(ws, session_.expected(ws), kernel_.traits(), how_);
  if (!verdict.wrong.empty()) throw std::runtime_error("INCORRECT: " + verdict.wrong);
  if (const std::string differs = Session::differing_set(ws); !differs.empty())
    throw std::runtime_error("INCORRECT: " + differs);
  return verdict.max_ulp;
}

void KernelCase::count(benchmark::State& st, const std::function<void()>& launch) {
  if (!session_.metrics) return;
  try {
    for (const auto& [key, value] : session_.machine().hardware_counters(launch))
      put(st, std::string(key), key.ends_with('%') ? value : value / double(shape_.rows));
    const std::vector<std::string> missed = session_.machine().counters_left_out();
    if (missed.size() > session_.counters_missed && session_.progress) session_.progress->clear();
    for (; session_.counters_missed < missed.size(); ++session_.counters_missed)
      std::cerr << "bench: no counter " << missed[session_.counters_missed] << std::endl;
  } catch (const std::exception& e) {
    session_.metrics = false;  // timing goes on
    if (session_.progress) session_.progress->clear();
    std::cerr << "bench: no hardware counters: " << e.what() << std::endl;
  }
}

void KernelCase::measure(benchmark::State& st, Workspace& ws) {
  Machine& machine = session_.machine();
  std::vector<Problem> problems;
  for (int set = 0; set < ws.sets(); ++set) problems.push_back(ws.problem(kernel_, how_, set));
  const Choice choice = kernel_.choice(problems[0]);
  const std::string how = choice.kernel != &kernel_ ? to_string(choice)
                          : kernel_.traits().plan   ? to_string(choice.plan)
                                                    : "";
  const std::string by = how.empty() ? "" : " [" + how + (how_.overlap ? ", overlapping]" : "]");
  st.SetLabel(std::string(kernel_.idea()) + by + on_file());
  const auto launch = [&](int set) { kernel_.launch(problems[std::size_t(set)]); };
  session_.expected(ws);  // first: it looks at the input
  // First of all: an access out of bounds is reported here, and only undefined when nobody watches.
  std::vector<std::pair<std::string, double>> traced;
  if (machine.simulated()) traced = traced_counters(session_.trace(ws, kernel_, how_));
  const auto launch_once = [&] {
    ws.out().poison();
    for (int set = 0; set < ws.sets(); ++set) launch(set);
    machine.synchronize();
    return verify(ws);
  };
  double max_ulp = launch_once();
  ws.out().poison();
  if (session_.profile) return profile(st, [&] { launch(0); });
  const Measured m = session_.time(ws, launch, mode_, at_least(st));
  const LaunchInfo info = machine.last_launch();
  max_ulp = std::max(max_ulp, verify(ws));     // what the timed launches left
  max_ulp = std::max(max_ulp, launch_once());  // and that the last of them still did anything

  hand_over(st, m);
  const Traffic traffic = kernel_.traffic(problems[0]);
  put(st, "bytes_moved", double(traffic.read + traffic.written));
  put(st, "max_ulp", max_ulp);
  if (kernel_.version() > 0) put(st, "version", kernel_.version());
  if (choice.kernel != &kernel_) put(st, "picked_version", choice.kernel->version());
  if (choice.kernel->version() > 0) Line::hand_over(st, info);  // of another's launches the machine knows nothing
  for (const auto& [key, value] : traced) put(st, key, value);
  count(st, [&] { launch(0); });
  if (how_.block > 0) put(st, "block", how_.block);
  if (!kernel_.traits().plan) return;
  put(st, "threads", choice.plan.threads);
  put(st, "vectors", choice.plan.vectors);
  put(st, "shared_vectors", choice.plan.shared);
  put(st, "row_blocks", choice.plan.blocks);
  put(st, "overlap", how_.overlap);
}

void CopyCase::measure(benchmark::State& st, Workspace& ws) {
  st.SetLabel("the fastest of " + std::to_string(session_.machine().copies()) + " ways to copy the same bytes" +
              on_file());
  if (session_.profile) return profile(st, [&] { ws.copy(0); });
  hand_over(st, session_.time_copy(ws, mode_, at_least(st)));
  put(st, "bytes_moved", double(shape_.bytes()));
}

std::string case_name(const Session& session, std::string_view version, Mode mode, std::string_view operation,
                      const Shape& shape) {
  std::string name = std::string(operation) + "/" + std::string(version) + "/" + softmax::name(shape.types()) + "/" +
                     std::string(session.machine().math()) + "/" + std::string(session.mode(mode));
  for (const std::string& part : shape.layout()) name += "/" + part;
  return name;
}

Registered register_cases(Session& session, const std::vector<Point>& points, std::span<const Kernel* const> kernels) {
  Registered all;
  Machine& machine = session.machine();
  // One line for a kernel and reason, whatever the shapes and blocks.
  std::vector<std::tuple<std::string, std::string, std::vector<Shape>>> missing;
  const auto leave_out = [&](const std::string& what, const Point& point, const std::string& why) {
    auto found = std::ranges::find_if(
        missing, [&](const auto& line) { return std::get<0>(line) == what && std::get<1>(line) == why; });
    if (found == missing.end()) found = missing.insert(found, {what, why, {}});
    if (auto& shapes = std::get<2>(*found); shapes.empty() || shapes.back() != point.shape)
      shapes.push_back(point.shape);
  };
  for (const Point& point : points) {
    const Shape shape = point.shape;
    std::string why = dishonest(machine, point);
    if (why.empty()) why = Workspace::no_room(machine, shape, session.sets(point));
    if (!why.empty()) {
      leave_out("", point, why);
      continue;
    }
    if (!machine.simulated() && machine.copies() > 0)
      add(all, std::make_unique<CopyCase>(session, shape, point.mode, session.sets(point)),
          case_name(session, "copy", point.mode, "softmax", shape), {"N", "C"}, {shape.rows, shape.cols});
    for (const Kernel* kernel : kernels) {
      if (&kernel->machine() != &machine) continue;
      const bool plans = kernel->traits().plan != nullptr;
      const bool other = kernel->version() == 0 && !kernel->traits().choice;  // not ours: measured beside all
      if (!plans && ((point.only_plans && !other) || point.plan != Plan() || point.overlap)) continue;
      for (const int block : kernel->traits().blocks) {
        if (!wanted(*kernel, block, point)) continue;
        const How how(block, point.plan, point.overlap);
        const Problem problem = problem_of(shape, how);
        why = kernel->unsupported(problem);
        if (why.empty()) why = misaligned(*kernel, shape);
        if (why.empty() && plans && kernel->plan(problem).threads == 0) why = "it has no such plan";
        if (why.empty()) why = too_slow(*kernel, point);
        if (!why.empty()) {
          leave_out(kernel->label() + " at ", point, why);
          continue;
        }
        std::vector<std::string> names = {"N", "C"};
        std::vector<std::int64_t> values = {shape.rows, shape.cols};
        if (block > 0) {
          names.push_back("block");
          values.push_back(block);
        }
        const Plan& plan = point.plan;
        const bool planned = plan != Plan();
        for (const auto& [name, value, asked] : {std::tuple{"threads", plan.threads, planned},
                                                 {"vectors", plan.vectors, planned},
                                                 {"shared_vectors", plan.shared, planned},
                                                 {"row_blocks", plan.blocks, planned},
                                                 {"overlap", int(point.overlap), point.overlap}}) {
          if (!asked) continue;
          names.push_back(name);
          values.push_back(value);
        }
        add(all, std::make_unique<KernelCase>(session, *kernel, point, how),
            case_name(session, kernel->label(), point.mode, "softmax", shape), names, values);
      }
    }
  }
  for (const auto& [what, why, shapes] : missing)
    all.left_out.push_back(what + to_string(shapes[0]) +
                           (shapes.size() > 1 ? " and " + std::to_string(shapes.size() - 1) + " more" : "") + ": " +
                           why);
  return all;
}

}  // namespace softmax::bench
