#include "properties/judge/judge.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "benchmarks/session.hpp"
#include "kernels/input.hpp"
#include "properties/laws.hpp"
#include "properties/runner.hpp"
#include "properties/shrink.hpp"

namespace softmax::judge {
namespace {

using properties::Case;
using properties::Law;
using properties::now;
using properties::shrink;

constexpr std::string_view kRefusal = "the CPU device has no ";  // plain.hpp says so
constexpr int kCasesAtLeast = 5;
constexpr std::size_t kFindingsShrunk = 8;

std::int64_t size(const Case& c) { return c.rows * c.cols; }

// What a machine says of a launch, a finding a line, without the kernel's name in front.
std::vector<std::string> lines_of(std::string text, const Kernel& kernel) {
  const std::string prefix = kernel.label() + " (" + std::string(kernel.file()) + "): ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

// ", the row being -inf, 1", if it is short.
std::string list(const std::vector<float>& x) {
  if (x.size() > 8) return {};
  std::ostringstream out;
  out << ", the row being";
  for (std::size_t i = 0; i < x.size(); ++i) out << (i ? ", " : " ") << x[i];
  return out.str();
}

class Judge {
 public:
  Judge(const Kernel& kernel, const Options& options, const Observer& observer)
      : kernel_(kernel), machine_(kernel.machine()), options_(options), observer_(observer) {}

  Report run() {
    report_.machine = machine_.name();
    report_.id = machine_.id();
    for (const std::int64_t cols : properties::column_list())
      if (report_.limits.empty()) report_.limits = kernel_.unsupported(properties::problem_of(dense(8, cols)));
    listed_widths();
    special_rows();
    many_rows();
    for (const Law* law : properties::laws(kernel_))
      if (!given_up()) rule(this->law(*law));
    hint();
    if (given_up()) return std::move(report_);
    traffic();
    if (!machine_.simulated() && !report_.wrong()) speed();
    return std::move(report_);
  }

 private:
  struct Outcome {
    std::string why;                    // empty, or how the law is broken
    bool stopped = false;               // the law could not be asked
    bool found = false;                 // there are findings
    std::vector<std::string> findings;  // keys of those never seen before
  };
  using Refute = std::function<std::string()>;

  Case dense(std::int64_t rows, std::int64_t cols) const {
    return {.rows = rows, .cols = cols, .block = kernel_.traits().blocks[0], .seed = options_.seed};
  }
  bool takes(const Case& c) const { return kernel_.unsupported(properties::problem_of(c)).empty(); }
  bool given_up() const { return dead_ || !report_.not_judged.empty(); }

  static Ruling begin(std::string_view name, std::string_view statement, bool example = false) {
    Ruling ruling;
    ruling.name = name;
    ruling.statement = statement;
    ruling.example = example;
    return ruling;
  }
  void rule(Ruling ruling) {
    if (!report_.not_judged.empty()) return;
    observer_.ruled(ruling);
    report_.rulings.push_back(std::move(ruling));
  }

  // What `refute` says, or throws, about c. A machine that checks ends a launch with what it found; what the kernel
  // computes is then asked again without the checks, unless it leaves its memory.
  Outcome attempt(const std::string& what, const Case& c, const Refute& refute) {
    observer_.doing(what + ", " + to_string(c));
    Outcome outcome;
    try {
      outcome.why = refute();
      return outcome;
    } catch (const OutOfMemory& e) {
      outcome.stopped = true;
      return outcome;
    } catch (const std::exception& e) {
      outcome.stopped = outcome.found = true;
      outcome.findings = note(e.what(), c);
    }
    if (given_up()) return outcome;
    if (!machine_.simulated()) {
      try {
        machine_.synchronize();
      } catch (const std::exception&) {
        dead_ = true;  // what has killed a context stays
      }
      return outcome;
    }
    if (strays_) return outcome;
    observer_.doing(what + ", unwatched, " + to_string(c));
    machine_.watch(Watch::off);
    try {
      outcome.why = refute();
      outcome.stopped = false;
    } catch (const std::exception&) {
    }
    machine_.watch(Watch::check);
    return outcome;
  }

  // Keeps what a launch was stopped for; returns the keys that are new.
  std::vector<std::string> note(const std::string& text, const Case& c) {
    std::vector<std::string> fresh;
    for (const std::string& line : lines_of(text, kernel_)) {
      if (line.starts_with(kRefusal)) {
        report_.not_judged = "the file wants " + line.substr(kRefusal.size()) + ", which the CPU device does not have";
        return {};
      }
      strays_ |= line.find("out of bounds") != std::string::npos;
      const std::string key = finding_key(line);
      auto& all = report_.findings;
      auto found = std::find_if(all.begin(), all.end(), [&](const Finding& f) { return f.key == key; });
      if (found == all.end()) {
        fresh.push_back(key);
        found = all.insert(all.end(), {key, line, 0, c});
      }
      ++found->launches;
      if (size(c) >= size(found->smallest)) continue;
      found->smallest = c;
      found->text = line;
    }
    return fresh;
  }

  Ruling law(const Law& law) {
    Ruling ruling = begin(law.name, law.statement);
    ruling.asks = law.asks;
    const rc::Gen<Case> gen = law.cases(kernel_);
    const double end = now() + options_.law_seconds;
    for (int i = 0; i < options_.cases && (i < kCasesAtLeast || now() < end) && !given_up(); ++i) {
      auto drawn = gen(rc::Random(mix(options_.seed + std::uint64_t(i))), i % 100);
      Case c;
      try {
        c = drawn.value();
      } catch (const rc::GenerationFailure&) {
        continue;
      }
      const auto ask = [&](const Case& at) {
        return attempt(ruling.name, at, [&] { return law.refute(kernel_, at); });
      };
      const Outcome outcome = ask(c);
      for (const std::string& key : outcome.findings) {
        if (report_.findings.size() > kFindingsShrunk) break;
        shrink(drawn, [&](const Case& at) {
          const auto before = launches(key);
          ask(at);
          return launches(key) > before;
        });
      }
      if (!outcome.why.empty()) {
        ruling.smallest = shrink(drawn, [&](const Case& at) { return !ask(at).why.empty(); }).value();
        const std::string why = ask(ruling.smallest).why;
        ruling.why = why.empty() ? "not every time: " + outcome.why : why;
        break;
      }
      ++(outcome.stopped ? ruling.stopped : ruling.held);
      if (ruling.held == 0 && ruling.stopped == kCasesAtLeast) break;
    }
    return ruling;
  }

  int launches(const std::string& key) const {
    for (const Finding& f : report_.findings)
      if (f.key == key) return f.launches;
    return 0;
  }

  // Asks for the softmax of x, and counts.
  Outcome example(Ruling& ruling, const Case& c, const std::vector<float>& x) {
    const Outcome outcome = attempt(ruling.name, c, [&] {
      const properties::Output out = properties::run(kernel_, c, x);
      return out.trespass.empty() ? properties::wrong_row(kernel_, c, x, out.y) : out.trespass;
    });
    last_rows_ = c.rows;
    if (!outcome.why.empty() && (ruling.why.empty() || size(c) < size(ruling.smallest))) {
      ruling.why = outcome.why;
      ruling.smallest = c;
    }
    if (outcome.why.empty()) ++(outcome.stopped ? ruling.stopped : ruling.held);
    return outcome;
  }

  void listed_widths() {
    Ruling ruling = begin("listed_widths", "two rows of every width that a warp, a block or a vector might stumble on",
                          /*example=*/true);
    const double end = now() + 2 * options_.law_seconds;
    for (const std::int64_t cols : properties::column_list()) {
      Case c = dense(2, cols);
      for (const std::int64_t rows : {4, 8, 32, 256})
        if (!takes(c)) c.rows = rows;
      if (!takes(c) || given_up() || now() > end) continue;
      const Outcome outcome = example(ruling, c, properties::values(c));
      const bool bad = !outcome.why.empty() || outcome.stopped || outcome.found;
      (bad ? wrong_ : right_).push_back(cols);
    }
    rule(std::move(ruling));
  }

  // At which widths the kernel may be right, if that is what parts right from wrong.
  void hint() {
    if (!report_.limits.empty() || wrong_.empty()) return;
    for (const Ruling& r : report_.rulings) {
      if (!r.broken()) continue;
      if (r.asks == properties::Law::Asks::order) return;
      wrong_.push_back(r.smallest.cols);
      std::erase(right_, r.smallest.cols);
    }
    report_.hint = describe_widths(right_, wrong_);
  }

  void special_rows() {
    Ruling ruling = begin("special_rows", "one row each: the ends of float's range, NaN and infinities in every mix",
                          /*example=*/true);
    for (const std::vector<float>& x : properties::special_rows())
      if (const Case c = dense(1, std::int64_t(x.size())); takes(c) && !given_up()) {
        const bool fine = ruling.why.empty();
        example(ruling, c, x);
        if (fine && !ruling.why.empty()) ruling.why += list(x);
        if (!ruling.why.empty()) break;
      }
    rule(std::move(ruling));
  }

  // Beyond the 65535 blocks that a grid takes in y and z, where the CPU device does not take minutes for it.
  void many_rows() {
    Ruling ruling = begin("many_rows", "thousands of rows", /*example=*/true);
    std::int64_t rows = 65536 + 64;
    if (const LaunchInfo last = machine_.last_launch(); machine_.simulated() && last_rows_ > 0)
      if (const std::int64_t threads = last.blocks * last.threads / last_rows_; threads > 32)
        rows = std::max<std::int64_t>(1024 + 64, (1 << 20) / threads);
    for (const std::int64_t cols : {2, 4, 32, 128, 1024})
      if (const Case c = dense(rows, cols); takes(c) && !given_up()) {
        example(ruling, c, properties::values(c));
        break;
      }
    rule(std::move(ruling));
  }

  // A shape of full rows that shows what a pattern of access costs.
  void traffic() {
    for (const Case& c : {dense(64, 1571), dense(64, 1572), dense(64, 1568), dense(64, 1536), dense(64, 1024),
                          dense(64, 512), dense(64, 256), dense(64, 128)}) {
      if (!takes(c)) continue;
      observer_.doing("the counters, " + to_string(c));
      machine_.watch(Watch::count);
      try {
        properties::run(kernel_, c);
        if (const Profile profile = machine_.profile(); profile.accesses > 0)
          report_.traffic = {c.rows, c.cols, profile};
      } catch (const std::exception&) {  // a finding, by now
      }
      machine_.watch(Watch::check);
      return;
    }
  }

  void speed() {
    for (const bench::Shape shape : {bench::Shape{8192, 50257},
                                     {8192, 50256},
                                     {8192, 32768},
                                     {8192, 16384},
                                     {8192, 8192},
                                     {8192, 4096},
                                     {8192, 2048},
                                     {8192, 1024},
                                     {8192, 512},
                                     {8192, 128}}) {
      const Case c = dense(shape.rows, shape.cols);
      if (!takes(c) || !bench::Workspace::no_room(machine_, shape).empty()) continue;
      observer_.doing("the time, " + to_string(c));
      Ruling ruling = begin("measured_shape", "the shape that is timed, before and after", /*example=*/true);
      const Outcome outcome = attempt(ruling.name, c, [&]() -> std::string {
        bench::Session session(machine_, {.seed = options_.seed, .file = {}, .file_name = {}});
        bench::Workspace& memory = session.workspace(shape);
        const Problem problem = memory.problem(kernel_, c.block);
        const auto work = [&](int) { kernel_.launch(problem); };
        bench::Verdict verdict;
        const auto check = [&] {
          memory.out().poison();
          work(0);
          machine_.synchronize();
          verdict = bench::verify(memory, session.expected(memory), kernel_.traits(), c.block);
          return verdict.wrong;
        };
        if (const std::string wrong = check(); !wrong.empty()) return wrong;
        const bench::Measured time = session.time(memory, work, Mode::cold, 0);
        if (const std::string wrong = check(); !wrong.empty()) return "after it was timed: " + wrong;
        const double seconds = time.work.median;
        report_.speed = {shape.rows, shape.cols, 1e6 * seconds / double(shape.rows), 100 * time.copy.median / seconds,
                         verdict.max_ulp};
        return {};
      });
      ruling.why = outcome.why;
      ruling.smallest = c;
      ++(outcome.stopped ? ruling.stopped : ruling.held);
      rule(std::move(ruling));
      return;
    }
  }

  const Kernel& kernel_;
  Machine& machine_;
  const Options& options_;
  const Observer& observer_;
  Report report_;
  std::int64_t last_rows_ = 0;               // of the last example
  std::vector<std::int64_t> right_, wrong_;  // widths
  bool strays_ = false, dead_ = false;
};

}  // namespace

int Report::broken() const {
  return int(std::count_if(rulings.begin(), rulings.end(), [](const Ruling& r) { return r.broken(); }));
}
bool Report::wrong() const {
  using Asks = properties::Law::Asks;
  const auto breaks = [this](Asks asks) {
    return std::any_of(rulings.begin(), rulings.end(), [=](const Ruling& r) { return r.broken() && r.asks == asks; });
  };
  return !findings.empty() || breaks(Asks::values) || (breaks(Asks::bits) && !breaks(Asks::order));
}

Report judge(const Kernel& kernel, const Options& options, const Observer& observer) {
  return Judge(kernel, options, observer).run();
}

std::string finding_key(const std::string& line) {
  static const std::regex place(R"([\w.+-]+\.\w+:\d+)"), digits(R"(\d+)");
  std::set<std::string> places;  // whichever of two accesses came first
  for (std::sregex_iterator i(line.begin(), line.end(), place), end; i != end; ++i) places.insert(i->str());
  if (places.empty()) return std::regex_replace(line, digits, "#");
  std::string key = line.substr(0, line.find(':'));
  for (const std::string& p : places) key += " " + p;
  return key;
}

std::string describe_widths(const std::vector<std::int64_t>& right, const std::vector<std::int64_t>& wrong) {
  if (wrong.empty()) return {};
  std::string best;
  std::size_t most = 2;  // three widths make a rule
  for (std::int64_t m = 1; m <= 1024; m *= 2) {
    std::int64_t first_wrong = 0;
    for (const std::int64_t c : wrong)
      if (c % m == 0 && (first_wrong == 0 || c < first_wrong)) first_wrong = c;
    std::int64_t last = 0;
    std::size_t count = 0;
    for (const std::int64_t c : right)
      if (c % m == 0 && (first_wrong == 0 || c < first_wrong)) {
        last = std::max(last, c);
        ++count;
      }
    if (count <= most) continue;
    most = count;
    best = m > 1 ? "C % " + std::to_string(m) + " == 0" : "";
    if (first_wrong != 0) best += (best.empty() ? "C <= " : " && C <= ") + std::to_string(last);
  }
  return best;
}

}  // namespace softmax::judge
