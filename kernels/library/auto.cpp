// Auto: no kernel, but the one that table.csv says is the fastest for the problem.
#include <algorithm>
#include <map>

#include "kernels/kernel.hpp"
#include "kernels/library/table.hpp"

namespace softmax::device {
inline namespace SOFTMAX_BACKEND {
Machine& machine();
int current();
}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device

namespace softmax {
inline namespace SOFTMAX_BACKEND {
namespace {

// In the order of their cost where the table says nothing, or what it says is not for this machine.
constexpr List<int> kVersions = {8, 9, 10, 11, 12};

const Kernel* of(int version) {
  static const std::map<int, const Kernel*> known = [] {
    std::map<int, const Kernel*> all;
    for (const Kernel* k : kernels())
      if (&k->machine() == &device::machine()) all[k->version()] = k;
    return all;
  }();
  const auto found = known.find(version);
  return version < 1 || found == known.end() ? nullptr : found->second;
}
bool takes(const Kernel* kernel, const Problem& p) {
  return kernel && kernel->traits().plan && kernel->traits().supports(p).empty();
}
// The problem as it goes to the chosen kernel, or nobody.
const Kernel* search(Problem& p) {
  const std::int64_t rows = p.batch_invariant ? INT64_MAX : p.rows;
  for (const Rule& rule : table())
    if (rule.fits(p.types(), rows, p.cols)) {
      p.plan = rule.plan;
      if (const Kernel* kernel = of(rule.version); takes(kernel, p)) return kernel;
    }
  p.plan = {};
  for (const int version : kVersions)
    if (const Kernel* kernel = of(version); takes(kernel, p)) return kernel;
  return nullptr;
}

// All that a choice depends on.
struct Asked {
  Types types;
  std::int64_t rows, cols;
  int max_blocks;
  bool spin, batch_invariant;
  bool dense;  // V13 takes no others
  int device;
  std::uint64_t table;
  bool operator==(const Asked&) const = default;
};
// The same with the whole plan. Programs ask for the same again and again: each thread remembers its last one.
const Kernel* choose(Problem& p) {
  thread_local Asked last = {};
  thread_local Choice known;
  const bool dense = p.in_stride == p.cols && p.out_stride == p.cols;
  const Asked now = {
      p.types(), p.rows, p.cols, p.max_blocks, p.spin, p.batch_invariant, dense, device::current(), table_generation()};
  if (last != now) {
    Problem by = p;
    const Kernel* const kernel = search(by);
    known = {kernel, kernel ? kernel->plan(by) : Plan()};
    last = now;
  }
  p.plan = known.plan;
  return known.kernel;
}
Choice choice(const Problem& p) {
  Problem by = p;
  const Kernel* const kernel = choose(by);
  return {kernel, by.plan};
}
Plan plan(const Problem& p) { return choice(p).plan; }
std::string supports(const Problem& p) {
  if (p.plan != Plan()) return "Auto picks the plan itself";
  return choice(p).kernel ? "" : "no kernel takes it";
}
Rounding rounding(const Problem& p) {
  Problem by = p;
  return choose(by)->traits().rounding(by);
}

// What V11 keeps comes first, and no other kernel may touch it: the rest is V12's, of any content.
std::int64_t kept(const Problem& p) { return of(11)->workspace(p); }
// Fewer rows may get another kernel; between two limits of the table the most rows need the most.
std::int64_t workspace(const Problem& p) {
  std::int64_t most = 0;
  const auto ask = [&](std::int64_t rows) {
    Problem by = p;
    by.rows = rows;
    const Kernel* const kernel = search(by);
    if (!kernel || !kernel->traits().workspace) return;
    most = std::max(most, kept(by) + (kernel->traits().keeps_workspace ? 0 : kernel->workspace(by)));
  };
  for (const Rule& rule : table())
    if (rule.rows < p.rows && rule.fits(p.types(), rule.rows, p.cols)) ask(rule.rows);
  ask(p.rows);
  return most;
}

void launch(const Problem& p) {
  Problem by = p;
  const Kernel* const kernel = choose(by);
  if (p.workspace && kernel->traits().workspace && !kernel->traits().keeps_workspace)
    by.workspace = static_cast<char*>(p.workspace) + kept(p);
  kernel->start(by);
}

const Kernel kAuto(0, "Auto", "the fastest of V8 to V13 by the table", __FILE__, &device::machine, launch,
                   Traits{.blocks = {0},
                          .exp = Exp::shifted,
                          .divide = Divide::reciprocal,
                          .alignment = 2,
                          .types = kTypes,
                          .in_place = true,
                          .temperature = true,
                          .keeps_workspace = true,
                          .supports = supports,
                          .workspace = workspace,
                          .rounding = rounding,
                          .plan = plan,
                          .choice = choice});
[[maybe_unused]] const bool kRegistered = register_kernel(kAuto);

}  // namespace
}  // namespace SOFTMAX_BACKEND
}  // namespace softmax
