#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "benchmarks/studies/cases.hpp"
#include "kernels/input.hpp"
#include "reference/error.hpp"

namespace softmax::studies {
namespace {

constexpr std::uint64_t kSeed = 1;  // of the noise
// All outputs are checked that come of so many inputs, or where their accuracy is the result; else so many of them.
constexpr std::int64_t kInputs = 1 << 22, kSome = 512;

std::vector<const Experiment*>& registered() {
  static std::vector<const Experiment*> all;
  return all;
}

void wrong(std::int64_t index, double got, const Want& want) {
  char line[160];
  std::snprintf(line, sizeof line, "INCORRECT: element %lld: got %.9g, expected %.9g, tolerance %.3g",
                static_cast<long long>(index), std::isnan(got) ? double(NAN) : got, want.value, want.tolerance);
  throw std::runtime_error(line);
}

// 90 of "9.0"
int capability(const Machine& machine) {
  for (const auto& [key, value] : machine.properties())
    if (key == "cc") return int(std::lround(10 * std::atof(value.c_str())));
  return 0;
}

class StudyLine final : public bench::Line {
 public:
  StudyLine(bench::Session& session, const Row& row, Mode mode, int sets)
      : Line(session, mode, sets), row_(row), cost_(row.experiment->cost(row.problem)) {}

 private:
  void prepare() override { workspace_ = &session_.workspace({1, cost_.elements}, sets_); }

  void measure(benchmark::State& st) override {
    st.SetLabel(row_.variant->idea);
    bench::Workspace& ws = *workspace_;
    Machine& machine = session_.machine();
    studies::prepare(ws, row_);
    const auto launch_once = [&] {
      ws.out().poison();
      launch(ws, row_);
      return check(ws, row_);
    };
    double max_ulp = launch_once();
    ws.out().poison();
    std::vector<Problem> problems;
    for (int set = 0; set < sets_; ++set) problems.push_back(problem(ws, row_, set));
    // A copy is a roof for what reads and writes as much.
    const bool copies = cost_.bytes == 8 * cost_.elements;
    if (session_.profile) {
      profile(st, [&] { row_.variant->launch(problems[0]); });
      if (row_.experiment->word) session_.drop_workspace();
      return;
    }
    const bench::Measured m = session_.time(
        ws, [&](int set) { row_.variant->launch(problems[std::size_t(set)]); }, mode_, at_least(st), copies);
    const LaunchInfo info = machine.last_launch();
    max_ulp = std::max(max_ulp, check(ws, row_));  // what the timed launches left
    max_ulp = std::max(max_ulp, launch_once());    // and that the last of them still did anything
    if (row_.experiment->word) session_.drop_workspace();

    hand_over(st, m, cost_.bytes);
    Line::hand_over(st, info);
    if (info.local_bytes) put(st, "local_bytes", *info.local_bytes);
    if (const auto operations = double(cost_.operations); operations > 0) {
      put(st, "ns/op", m.work.median * 1e9 / operations);
      if (m.sm_hz > 0) put(st, "cycles/op", m.work.median * m.sm_hz / operations);
    }
    for (int i = 0; i < 2; ++i)
      if (const char* name = row_.experiment->axes[i].name) put(st, name, double(row_.problem.arg[i]));
    put(st, "block", row_.problem.block);
    if (row_.experiment->accuracy) put(st, "max_ulp", max_ulp);
  }

  Row row_;
  Cost cost_;
  bench::Workspace* workspace_ = nullptr;
};

}  // namespace

const std::vector<const Experiment*>& experiments() { return registered(); }

bool register_experiment(const Experiment& experiment) {
  registered().push_back(&experiment);
  return true;
}

float Input::operator()(std::int64_t index) const {
  return experiment.word ? std::bit_cast<float>(experiment.word(index, problem)) : noise(kSeed, std::uint64_t(index));
}

double Input::max(std::int64_t first, std::int64_t count) const {
  if (first != max_of_first) {
    max_of_first = first;
    last_max = (*this)(first);
    for (std::int64_t i = 1; i < count; ++i) last_max = std::fmax(last_max, (*this)(first + i));
  }
  return last_max;
}

std::vector<Row> rows(const Experiment& e) {
  Problem p;
  p.simulated = e.machine().simulated();
  p.fast = e.machine().math() == "fast";
  const auto values = [&](const Axis& axis) {
    const bool stand_ins = p.simulated && axis.stand_ins.begin() != axis.stand_ins.end();
    return stand_ins ? axis.stand_ins : axis.values;
  };
  std::vector<Row> all;
  for (const Variant& variant : e.variants) {
    if (variant.cuda_only && p.simulated) continue;
    for (const std::int64_t a : values(e.axes[0]))
      for (const std::int64_t b : values(e.axes[1]))
        for (const int block : e.blocks) {
          p.arg[0] = a;
          p.arg[1] = b;
          p.block = block;
          p.elements = e.cost(p).elements;
          all.push_back({&e, &variant, p});
        }
  }
  return all;
}

void prepare(bench::Workspace& ws, const Row& row) {
  if (!row.experiment->word) return;  // the workspace has noise
  std::vector<std::uint32_t> words(std::size_t(row.problem.elements));
  for (int set = 0; set < ws.sets(); ++set) {
    const Problem p = problem(ws, row, set);
    for (std::int64_t i = 0; i < p.elements; ++i) words[std::size_t(i)] = row.experiment->word(i, p);
    ws.machine().upload(ws.in(set), words.data(), words.size() * sizeof(std::uint32_t));
  }
}

Problem problem(const bench::Workspace& ws, const Row& row, int set) {
  Problem p = row.problem;
  p.in = static_cast<const float*>(ws.in(set));
  p.out = static_cast<float*>(ws.out(set));
  p.stream = ws.machine().stream();
  return p;
}

void launch(bench::Workspace& ws, const Row& row) {
  const std::int64_t outputs = row.experiment->cost(row.problem).outputs;
  Machine& machine = ws.machine();
  struct Off {
    Machine& machine;
    ~Off() { machine.watch(Watch::off); }
  } off{machine};
  machine.watch(Watch::check);
  for (int set = 0; set < ws.sets(); ++set) {
    const Problem p = problem(ws, row, set);
    machine.within({{"the input", p.in, 1, p.elements, p.elements, sizeof(float), Region::Use::input},
                    {"the output", p.out, 1, outputs, outputs, sizeof(float), Region::Use::output}},
                   [&] { row.variant->launch(p); });
  }
  machine.synchronize();
}

double check(const bench::Workspace& ws, const Row& row) {
  const Problem p = problem(ws, row);
  const std::int64_t outputs = row.experiment->cost(p).outputs;
  if (const std::string damage = ws.damage(); !damage.empty()) throw std::runtime_error("INCORRECT: " + damage);
  if (const std::string differs = bench::Session::differing_set(ws); !differs.empty())
    throw std::runtime_error("INCORRECT: " + differs);

  const Input in{*row.experiment, p};
  double max_ulp = 0;
  const auto compare = [&](std::int64_t index, float got) {
    const Want want = row.experiment->expected(in, index, p);
    if (!(std::fabs(got - want.value) <= want.tolerance)) wrong(index, got, want);
    max_ulp = std::max(max_ulp, reference::ulp_error(got, want.value));
  };
  if (p.elements <= kInputs || row.experiment->accuracy) {
    std::vector<float> got(static_cast<std::size_t>(outputs));
    ws.out().download(got.data(), got.size() * sizeof(float));
    for (std::int64_t i = 0; i < outputs; ++i) compare(i, got[std::size_t(i)]);
    return max_ulp;
  }
  // Fresh memory reads as NaN, so sums of all tell whether all was written.
  const auto finite = [&](std::int64_t first, Rows part) {
    const auto sums = ws.machine().row_sums(p.out + first, part);
    const auto bad = std::find_if_not(sums.begin(), sums.end(), [](double sum) { return std::isfinite(sum); });
    if (bad == sums.end()) return;
    const std::int64_t from = first + (bad - sums.begin()) * part.stride;
    throw std::runtime_error("INCORRECT: not all of the elements " + std::to_string(from) + " to " +
                             std::to_string(from + part.cols - 1) + " are finite");
  };
  constexpr std::int64_t kCols = 4096;
  finite(0, {outputs / kCols, kCols, kCols});
  finite(outputs / kCols * kCols, {1, outputs % kCols, kCols});
  std::set<std::int64_t> some = {0, outputs - 1};
  for (std::uint64_t i = 0; std::int64_t(some.size()) < std::min(kSome, outputs); ++i)
    some.insert(std::int64_t(random_bits(kSeed, i) % std::uint64_t(outputs)));
  for (const std::int64_t i : some) {
    float got;
    ws.out().download(&got, sizeof got, std::size_t(i) * sizeof got);
    compare(i, got);
  }
  return max_ulp;
}

void register_studies(bench::Session& session, bench::Registered& all, const std::vector<const Experiment*>& chosen) {
  Machine& machine = session.machine();
  for (const Experiment* e : chosen) {
    if (&e->machine() != &machine) continue;
    const auto too_old = [&](const Variant& v) { return !machine.simulated() && v.capability > capability(machine); };
    for (const Variant& variant : e->variants) {
      const std::string name = std::string(e->operation) + "/" + variant.name;
      if (variant.cuda_only && machine.simulated()) all.left_out.push_back(name + " runs on a GPU only");
      if (too_old(variant))
        all.left_out.push_back(name + " needs compute capability " + std::to_string(variant.capability / 10) + "." +
                               std::to_string(variant.capability % 10));
    }
    for (const Row& row : rows(*e)) {
      if (too_old(*row.variant)) continue;
      for (const Mode mode : e->modes) {
        const int sets = session.sets({{1, row.problem.elements}, mode});
        const std::string name = bench::case_name(session, row.variant->name, mode, e->operation);
        if (const auto why = bench::Workspace::no_room(machine, {1, row.problem.elements}, sets); !why.empty()) {
          all.left_out.push_back(name + ": " + why);
          continue;
        }
        std::vector<std::string> names;
        std::vector<std::int64_t> values;
        for (int i = 0; i < 2; ++i)
          if (e->axes[i].name) {
            names.push_back(e->axes[i].name);
            values.push_back(row.problem.arg[i]);
          }
        names.push_back("block");
        values.push_back(row.problem.block);
        add(all, std::make_unique<StudyLine>(session, row, mode, sets), name, names, values);
      }
    }
  }
}

}  // namespace softmax::studies
