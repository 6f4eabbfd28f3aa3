// tune: measures which kernel and plan Auto should pick on this machine, and writes its table. --help says how.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/measure.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/reporter.hpp"
#include "benchmarks/tuning.hpp"
#include "benchmarks/workspace.hpp"
#include "softmax_build.hpp"  // generated at build time: git revision

namespace softmax::bench {
namespace {

constexpr const char* kUsage =
    R"(Measures which of V8 to V13, with which plan, is the fastest on this machine for how many rows and columns, and
writes the table that Auto, and with it softmax::forward, obeys.

usage: tune [flags]
  --out=FILE          where the table goes; default: table.csv
  --device=gpu|cpu    where to run; default: the GPU if there is one. Times of the CPU device are its simulator's
  --grid=full|small   full: 1 to 256 rows and many, to 8M columns | small: a few, for the CPU device
  --types=A,B         fp32, bf16, bf16-fp32; default: all. What is left out goes by Auto's own order. Rules are by the
                      size of elements: those of bf16 are fp16's too

Few rows are timed in graphs, by plain and by overlapping launches; many with a cold cache. A line for each pick on
standard error: its time at the most columns, and how far behind the next one is at its worst.
Use the table by SOFTMAX_TABLE=FILE, by softmax::load_table(FILE), or as kernels/library/table.csv of the next build.
Exit status: 0; 1: a kernel was wrong, or the machine failed; 2: cannot be obeyed.
)";

// How far behind a candidate may be to stay; samples; launches of a graph at least, and sets of buffers at most.
constexpr double kCoarse = 1.6, kNear = 1.3, kClose = 1.06;
constexpr int kFirst = 2, kSecond = 5, kRounds = 5, kRound = 3;
constexpr int kLeastLaunches = 4, kMostSets = 128, kCoarseSets = 32;

void note(const std::string& line) { std::cerr << "tune: " << line << std::endl; }

struct Asked {
  std::string out = "table.csv", device;
  bool small = false, help = false;
  std::vector<Types> types = {{}, {DataType::bf16, DataType::bf16}, {DataType::bf16, DataType::fp32}};
};
Asked parse(const std::vector<std::string>& arguments) {
  Asked asked;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals),
                      value = equals == argument.npos ? "" : argument.substr(equals + 1);
    const auto refuse = [&](const std::string& why) { throw UsageError(argument + ": " + why); };
    if (flag == "--help" || flag == "-h") {
      asked.help = true;
    } else if (flag == "--out") {
      if (value.empty()) refuse("--out=FILE names a file");
      asked.out = value;
    } else if (flag == "--device") {
      if (value != "gpu" && value != "cpu") refuse("there are gpu and cpu");
      asked.device = value;
    } else if (flag == "--grid") {
      if (value != "full" && value != "small") refuse("there are full and small");
      asked.small = value == "small";
    } else if (flag == "--types") {
      std::vector<Types> chosen;
      std::istringstream names(value);
      for (std::string one; std::getline(names, one, ',');) {
        const std::vector<Types> all = Asked().types;
        const auto found = std::ranges::find(all, one, [](Types t) { return name(t); });
        if (found == all.end()) refuse("there are fp32, bf16 and bf16-fp32");
        if (std::ranges::count(chosen, *found) == 0) chosen.push_back(*found);
      }
      if (chosen.empty()) refuse("names no types");
      asked.types = chosen;
    } else {
      refuse("unknown; see --help");
    }
  }
  return asked;
}

Machine& choose(const std::string& id) {
  std::string why = "this program was built without it";
  for (Machine* machine : machines()) {
    if (!id.empty() && machine->id() != id) continue;
    if (machine->unavailable().empty()) return *machine;
    why = machine->unavailable();
  }
  throw UsageError((id.empty() ? "no device" : "--device=" + id) + ": " + why);
}

double median(std::vector<double> seconds) { return summarize(std::move(seconds)).median; }

// One end of a cell: its buffers, and how its candidates are timed there.
class End {
 public:
  End(Machine& machine, const std::map<int, const Kernel*>& kernels, Shape shape, Mode mode)
      : kernels_(kernels), mode_(mode), memory_(machine, shape, Input{}, sets(machine, shape, mode)) {}

  // Empty if it can be launched, else why not.
  std::string refused(const Pick& pick) {
    try {
      start(pick, problem(pick, 0));
      machine().synchronize();
      return {};
    } catch (const std::runtime_error& e) {
      if (machine().simulated()) throw;  // that is a rule broken
      return e.what();
    }
  }

  // A coarse time rotates over fewer sets where that changes nothing: all of them stay in the cache.
  double coarse_time(const Pick& pick) { return median(sample(pick, kFirst, false, true)); }
  std::vector<double> sample(const Pick& pick, int samples, bool overlap, bool coarse = false) {
    const bool cached = std::size_t(memory_.sets() * memory_.shape().bytes()) <= machine().cache_bytes();
    const int sets = coarse && cached ? std::min(memory_.sets(), kCoarseSets) : memory_.sets();
    std::vector<Problem> problems;
    for (int set = 0; set < sets; ++set) problems.push_back(problem(pick, set)), problems.back().overlap = overlap;
    Timing timing{.mode = mode_, .sets = sets};
    if (mode_ == Mode::graph) timing.launches = sets * ((kLeastLaunches + sets - 1) / sets);
    if (machine().simulated()) timing.launches = samples = 1;
    return machine().time([&](int set) { start(pick, problems[std::size_t(set)]); }, samples, timing).seconds;
  }

  // Throws std::runtime_error, which names the pick, if a row does not add up to 1.
  void verify(const Pick& pick) {
    memory_.out().poison();
    start(pick, problem(pick, 0));
    const Shape shape = memory_.shape();
    const double tolerance = shape.out_type == DataType::fp32 ? 1e-4 : 1e-2;
    const std::vector<double> sums = machine().row_sums(memory_.out(0), shape.out().rows, shape.out_type);
    for (std::size_t row = 0; row < sums.size(); ++row)
      if (!(std::abs(sums[row] - 1) <= tolerance))
        throw std::runtime_error("INCORRECT: " + to_string(pick) + " at " + name(shape.types()) + " " +
                                 std::to_string(shape.rows) + " x " + std::to_string(shape.cols) + ": row " +
                                 std::to_string(row) + " adds up to " + std::to_string(sums[row]));
    if (const std::string damage = memory_.damage(); !damage.empty())
      throw std::runtime_error("INCORRECT: " + to_string(pick) + ": " + damage);
  }

  Choice choice(const Pick& pick) { return {&kernel(pick), kernel(pick).plan(problem(pick, 0))}; }

 private:
  // Together twice what the cache holds.
  static int sets(const Machine& machine, Shape shape, Mode mode) {
    if (mode != Mode::graph || machine.simulated()) return 1;
    const auto bytes = std::size_t(shape.bytes());
    return int(std::clamp<std::size_t>((2 * machine.cache_bytes() + bytes - 1) / bytes, 1, kMostSets));
  }
  Machine& machine() { return memory_.machine(); }
  const Kernel& kernel(const Pick& pick) const { return *kernels_.at(pick.version); }

  // Each kernel has scratch memory of its own: V11 keeps what is in it.
  Problem problem(const Pick& pick, int set) {
    Problem p = problem_of(memory_.shape(), {0, pick.plan});
    p.in = memory_.in(set);
    p.out = memory_.out(set);
    p.stream = machine().stream();
    if (const auto bytes = std::size_t(kernel(pick).workspace(p)); bytes > 0) {
      auto found = scratch_.find(pick.version);
      if (found == scratch_.end() || found->second.bytes() < bytes) {
        if (found != scratch_.end()) scratch_.erase(found);
        found = scratch_.emplace(pick.version, Buffer(machine(), bytes)).first;
        machine().fill(found->second.data(), 0, bytes);
      }
      p.workspace = found->second.data();
    }
    return p;
  }
  // Asked once, in candidates(), whether it takes the problem; a graph of 128 launches need not ask again.
  void start(const Pick& pick, const Problem& p) {
    machine().simulated() ? kernel(pick).launch(p) : kernel(pick).start(p);
  }

  const std::map<int, const Kernel*>& kernels_;
  Mode mode_;
  Workspace memory_;
  std::map<int, Buffer> scratch_;  // by version
};

class Tuner {
 public:
  explicit Tuner(Machine& machine) : machine_(machine) {
    for (const Kernel* kernel : kernels())
      if (&kernel->machine() == &machine && kernel->version() >= 8 && kernel->version() <= 13) {
        all_.push_back(kernel);
        by_version_[kernel->version()] = kernel;
      }
    for (const auto& [key, value] : machine.properties())
      if (key == "sm_count") multiprocessors_ = std::stoi(value);
    machine.watch(Watch::off);
    if (!machine.simulated())
      warm_up(
          machine, [&](int) { machine.nothing(); }, policy(machine));
  }

  Pick pick(const Cell& cell, const std::optional<Pick>& neighbour) {
    const Mode mode = cell.rows > 0 ? Mode::graph : Mode::cold;
    End high(machine_, by_version_, cell.high(), mode);
    std::optional<End> low;
    if (cell.low() != cell.high()) low.emplace(machine_, by_version_, cell.low(), mode);
    std::vector<End*> ends = {&high};
    if (low) ends.push_back(&*low);
    // Few rows are for both kinds of launch.
    std::vector<std::pair<End*, bool>> ways;
    for (const bool overlap : {false, true})
      if (!overlap || (mode == Mode::graph && !machine_.simulated()))
        for (End* end : ends) ways.emplace_back(end, overlap);

    std::vector<Timed> left;
    for (const Pick& pick : candidates(cell, all_, multiprocessors_))
      if (const std::string why = high.refused(pick); why.empty())
        left.push_back({pick, {high.coarse_time(pick)}});
      else
        note("left out: " + to_string(pick) + " at " + to_string(cell) + ": " + why);
    // What is far behind at one end cannot win, whatever it does at the other.
    left = within(ranked(std::move(left)), kCoarse);
    if (low)
      for (Timed& one : left) one.seconds.push_back(low->coarse_time(one.pick));
    left = within(ranked(std::move(left)), kNear);
    for (const Timed& one : left)
      for (End* end : ends) end->verify(one.pick);

    for (Timed& one : left) {
      one.seconds.clear();
      for (const auto& [end, overlap] : ways) one.seconds.push_back(median(end->sample(one.pick, kSecond, overlap)));
    }
    left = within(ranked(std::move(left)), kClose);
    // In turn, so that a drift of the machine meets all.
    std::vector<std::vector<double>> samples(ways.size() * left.size());
    for (int round = 0; round < kRounds && left.size() > 1; ++round)
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto& [end, overlap] = ways[i % ways.size()];
        const std::vector<double> more = end->sample(left[i / ways.size()].pick, kRound, overlap);
        samples[i].insert(samples[i].end(), more.begin(), more.end());
      }
    for (std::size_t i = 0; i < samples.size() && left.size() > 1; ++i)
      left[i / ways.size()].seconds[i % ways.size()] = median(samples[i]);
    left = ranked(std::move(left));
    const Pick winner = decide(left, neighbour);
    report(cell, high, left, winner);
    return winner;
  }

 private:
  static void report(const Cell& cell, End& high, const std::vector<Timed>& left, const Pick& winner) {
    const auto won = std::ranges::find(left, winner, &Timed::pick);
    std::string line = to_string(cell) + ": " + to_string(high.choice(winner)) + ", " +
                       four_digits(won->seconds.front() * 1e6) + " us";
    const auto next = std::ranges::find_if(left, [&](const Timed& t) { return t.pick != winner; });
    if (next != left.end()) {
      char behind[32];
      std::snprintf(behind, sizeof behind, " %+.1f %%", 100 * (next->ratio / won->ratio - 1));
      line += "; next " + to_string(high.choice(next->pick)) + behind;
    }
    note(line);
  }

  Machine& machine_;
  std::vector<const Kernel*> all_;
  std::map<int, const Kernel*> by_version_;
  int multiprocessors_ = 1;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

int run_program(const std::vector<std::string>& arguments) {
  const Asked asked = parse(arguments);
  if (asked.help) {
    std::cout << kUsage;
    return 0;
  }
  Machine& machine = choose(asked.device);
  refuse_unwritable(asked.out);
  if (machine.simulated()) note("on the CPU device, whose times say nothing about a GPU");
  const auto start = std::time(nullptr);
  Tuner tuner(machine);
  std::vector<Decision> decisions;
  for (const Types types : asked.types) {
    const std::vector<Cell> cells = grid(types, asked.small);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool goes_on = i > 0 && cells[i - 1].rows == cells[i].rows;
      decisions.push_back(
          {cells[i], tuner.pick(cells[i], goes_on ? std::optional(decisions.back().pick) : std::nullopt)});
    }
  }
  const std::string sha = SOFTMAX_GIT_SHA, dirty = SOFTMAX_GIT_DIRTY;
  const Table table = merge(decisions);
  std::ofstream file(asked.out);
  file << "# " << machine.name() << ", revision " << sha << (dirty == "true" ? " with changes" : "") << ", " << today()
       << "\n"
       << to_text(table);
  file.close();
  if (!file) throw std::runtime_error(asked.out + " could not be written");
  note(std::to_string(decisions.size()) + " picks, " + std::to_string(table.size()) + " rules in " + asked.out + ", " +
       std::to_string(std::int64_t(std::time(nullptr) - start)) + " s");
  return 0;
}

}  // namespace
}  // namespace softmax::bench

int main(int argc, char** argv) {
  try {
    return softmax::bench::run_program({argv + std::min(argc, 1), argv + argc});
  } catch (const softmax::bench::UsageError& e) {
    std::fprintf(stderr, "tune: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tune: %s\n", e.what());
    return 1;
  }
}
