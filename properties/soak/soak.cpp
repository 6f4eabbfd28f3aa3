#include "properties/soak/soak.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "kernels/input.hpp"
#include "properties/classes.hpp"
#include "properties/harness.hpp"
#include "properties/laws.hpp"
#include "properties/merge_laws.hpp"
#include "properties/shrink.hpp"

namespace softmax::soak {
namespace {

using properties::Case;

std::string in_one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (std::size_t at; (at = text.find('\n')) != text.npos;) text.replace(at, 1, "; ");
  return text;
}
std::string line(const Case& c) {
  std::ostringstream out;
  out << c;
  return out.str();
}

// A kernel under a law, or the merge of a machine under one of its own.
struct Question {
  std::string kernel, name;
  const Kernel* of = nullptr;
  const properties::Law* law = nullptr;
  const merge::Merger* merger = nullptr;
  const merge::MergeLaw* merge_law = nullptr;
  std::uint64_t stream = 0;
  std::int64_t asked = 0;
};

// The questions to one machine.
struct Turn {
  Machine* machine;
  std::vector<Question> questions;
  std::size_t next = 0;
  double seconds = 0;
};

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options) { report_.seed = options.seed; }

  Report run() {
    list();
    const double begin = properties::now();
    double minute = begin + 60;
    for (double now = begin; now < begin + options_.seconds && !turns_.empty(); now = properties::now()) {
      if (report_.total() >= options_.cases) break;
      if ((report_.stopped = options_.stop())) break;
      const auto turn = std::ranges::min_element(turns_, {}, &Turn::seconds);
      const bool alive = ask(turn->questions[turn->next++ % turn->questions.size()], *turn->machine);
      turn->seconds += properties::now() - now;
      if (!alive) {
        say(turn->machine->name() + " answers no more");
        turns_.erase(turn);
      }
      if (properties::now() < minute) continue;
      say(std::to_string(std::int64_t((minute - begin) / 60)) + " min: " + std::to_string(report_.total()) +
          " cases, " + std::to_string(report_.failures.size()) + " failures");
      minute += 60;
    }
    report_.seconds = properties::now() - begin;
    count_classes();
    return std::move(report_);
  }

 private:
  void say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }

  Turn& turn_of(Machine& machine) {
    for (Turn& turn : turns_)
      if (turn.machine == &machine) return turn;
    report_.devices.push_back(machine.name());
    report_.math.emplace_back(machine.math());
    report_.simulated &= machine.simulated();
    turns_.push_back({&machine, {}});
    return turns_.back();
  }
  void add(Machine& machine, Question question) {
    question.stream = mix(options_.seed);
    for (const char c : question.kernel + " " + question.name)
      question.stream = mix(question.stream ^ std::uint64_t(static_cast<unsigned char>(c)));
    turn_of(machine).questions.push_back(std::move(question));
  }
  bool wanted(const Machine& machine) const { return options_.device.empty() || machine.id() == options_.device; }
  void list() {
    for (const Kernel* k : options_.kernels)
      if (wanted(k->machine()) && properties::why_not(*k).empty())
        for (const properties::Law* law : properties::laws(*k))
          add(k->machine(), {.kernel = properties::test_name(*k), .name = std::string(law->name), .of = k, .law = law});
    if (options_.merge)
      for (const merge::Merger& merger : merge::mergers())
        if (Machine& machine = merger.machine(); wanted(machine) && machine.unavailable().empty())
          for (const merge::MergeLaw& law : merge::merge_laws())
            add(machine, {.kernel = "merge_" + std::string(machine.id()),
                          .name = std::string(law.name),
                          .merger = &merger,
                          .merge_law = &law});
    if (turns_.empty()) throw std::runtime_error("no kernel runs here");
    std::set<std::string> kernels;
    std::size_t pairs = 0;
    for (const Turn& turn : turns_) {
      pairs += turn.questions.size();
      for (const Question& q : turn.questions) kernels.insert(q.kernel);
    }
    std::string on;
    for (const std::string& device : report_.devices) on += (on.empty() ? "" : " and ") + device;
    say("seed " + std::to_string(options_.seed) + ": " + std::to_string(pairs) + " pairs of a kernel and a law on " +
        on);
  }

  // Gives whether the machine can be asked more.
  bool ask(Question& q, Machine& machine) {
    const std::uint64_t bits = random_bits(q.stream, std::uint64_t(q.asked));
    const int size = int(q.asked++ % 100);
    ++report_.cases[q.kernel][q.name];
    if (q.merger) {
      const std::string why = told([&] { return q.merge_law->refute(*q.merger, bits); });
      const std::string seed = "seed " + std::to_string(bits);
      if (!why.empty()) fail(q, seed, [&] { return std::pair(seed, why); });
      return why.empty() || alive(machine);
    }
    std::optional<rc::Shrinkable<Case>> drawn;
    const std::string undrawn = told([&]() -> std::string {
      drawn = q.law->cases(*q.of)(rc::Random(bits), size);
      drawn->value();
      return {};
    });
    if (!undrawn.empty()) {
      fail(q, "", [&] { return std::pair(std::string(), "no case could be drawn: " + undrawn); });
      return true;
    }
    const Case c = drawn->value();
    ++drawn_[q.of].cases;
    for (std::size_t i = 0; i < properties::classes().size(); ++i)
      drawn_[q.of].of_class[i] += properties::classes()[i].is(*q.of, c);
    const auto refute = [&](const Case& at) {
      if (options_.doing) options_.doing(to_string(Failure{q.kernel, q.name, 1, "", line(at), "ended the program"}));
      return told([&] { return q.law->refute(*q.of, at); });
    };
    const std::string why = refute(c);
    if (why.empty()) return true;
    bool lives = alive(machine);
    fail(q, line(c), [&] {
      const auto still = [&](const Case& at) {
        if (!lives || options_.stop()) return false;
        const bool broken = !refute(at).empty();
        if (broken) lives = alive(machine);
        return broken;
      };
      const Case smallest = properties::shrink(*drawn, still).value();
      const std::string again = lives ? refute(smallest) : "";
      return std::pair(line(smallest), again.empty() ? "not every time: " + why : again);
    });
    return lives;
  }

  // What it says or throws.
  template <class Refute>
  static std::string told(Refute refute) {
    try {
      return refute();
    } catch (const rc::GenerationFailure& e) {
      return e.what();
    } catch (const std::exception& e) {
      return *e.what() ? e.what() : "an exception without a word";
    }
  }
  // What has killed the context of a GPU stays.
  static bool alive(Machine& machine) {
    return machine.simulated() || told([&] { return machine.synchronize(), std::string(); }).empty();
  }

  // `smallest` gives a smaller case, and why that fails.
  template <class Smallest>
  void fail(const Question& q, const std::string& drawn, Smallest smallest) {
    for (Failure& f : report_.failures)
      if (f.kernel == q.kernel && f.law == q.name) {
        ++f.times;
        return;
      }
    const auto [least, why] = smallest();
    report_.failures.push_back({q.kernel, q.name, 1, drawn, least, in_one_line(why)});
    say(to_string(report_.failures.back()));
  }

  void count_classes() {
    const auto& classes = properties::classes();
    for (std::size_t i = 0; i < classes.size(); ++i) {
      Drawn all{classes[i].name};
      for (const auto& [kernel, its] : drawn_) {
        all.cases += its.of_class[i];
        all.least += classes[i].least(*kernel) / 100 * double(its.cases);
      }
      if (all.least > 0) report_.classes.push_back(all);
    }
  }

  struct OfKernel {
    std::int64_t cases = 0;
    std::vector<std::int64_t> of_class = std::vector<std::int64_t>(properties::classes().size());
  };
  const Options& options_;
  std::vector<Turn> turns_;
  std::map<const Kernel*, OfKernel> drawn_;
  Report report_;
};

}  // namespace

std::string to_string(const Failure& f) {
  const bool merge = f.kernel.starts_with("merge_");
  const std::string test =
      merge ? "merge_test --gtest_filter='*" + f.kernel.substr(6) : "laws_test --gtest_filter='*/" + f.kernel;
  return "FAILED " + f.kernel + " " + f.law + ": " + f.why + "; again: SOFTMAX_CASE='" + f.smallest + "' " + test +
         "_" + f.law + "'";
}

std::int64_t Report::total() const {
  std::int64_t all = 0;
  for (const auto& [kernel, laws] : cases)
    for (const auto& [law, count] : laws) all += count;
  return all;
}

std::ostream& operator<<(std::ostream& out, const Report& r) {
  char text[160];
  const auto row = [&](const std::string& name, std::int64_t cases, const std::string& more) {
    std::snprintf(text, sizeof text, "  %-36s %10lld  %s\n", name.c_str(), static_cast<long long>(cases), more.c_str());
    out << text;
  };
  out << "cases by kernel\n";
  for (const auto& [kernel, laws] : r.cases) {
    std::int64_t cases = 0;
    for (const auto& [law, count] : laws) cases += count;
    row(kernel, cases, "under " + std::to_string(laws.size()) + " laws");
  }
  out << "cases by class, and the least that the quotas want\n";
  for (const Drawn& one : r.classes)
    row(one.name, one.cases,
        std::to_string(std::int64_t(std::ceil(one.least))) + (double(one.cases) < one.least ? "  RARE" : ""));
  for (const Failure& f : r.failures)
    out << to_string(f) << (f.times > 1 ? " (" + std::to_string(f.times) + " times)" : "") << "\n";
  std::snprintf(text, sizeof text, "%lld cases in %.1f minutes, %zu failures; seed %llu%s\n",
                static_cast<long long>(r.total()), r.seconds / 60, r.failures.size(),
                static_cast<unsigned long long>(r.seed), r.stopped ? "; stopped before its time" : "");
  return out << text;
}

Report soak(const Options& options) { return Soak(options).run(); }

}  // namespace softmax::soak
