#include "properties/classes.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace softmax::properties {
namespace {

bool takes(const Kernel& k, std::int64_t rows, std::int64_t cols) {
  return k.unsupported(problem_of({.rows = rows, .cols = cols, .block = k.traits().blocks[0]})).empty();
}

struct Quota {
  const char* name;
  double percent;
  bool (*is)(const Kernel&, const Case&);
  bool (*known)(const Kernel&);
};
bool always(const Kernel&) { return true; }
template <std::int64_t cols>
bool wide(const Kernel& k) {
  return takes(k, 1, cols);
}
template <std::int64_t step>
bool beside(const Kernel&, const Case& c) {
  const std::int64_t rest = c.cols % step;
  return c.cols > 1 && (rest == 0 || rest == 1 || rest == step - 1);
}
// One column more, or less, and another kernel or plan would do it.
bool at_a_step(const Kernel& k, const Case& c) {
  const auto chosen = [&](std::int64_t cols) {
    Case other = c;
    other.cols = cols;
    const Problem p = problem_of(other);
    if (!k.unsupported(p).empty()) return std::string("none");
    return to_string(k.choice(p));
  };
  const std::string own = chosen(c.cols);
  return own != chosen(c.cols + 1) || (c.cols > 1 && own != chosen(c.cols - 1));
}
// Some exp is 0.
bool saturated(const Kernel&, const Case& c) {
  if (c.rows * c.cols > 4096) return false;
  const auto x = values(c);
  float least = INFINITY, most = -INFINITY;
  for (std::size_t i = 0; i < std::size_t(c.cols); ++i) least = std::fmin(least, x[i]), most = std::fmax(most, x[i]);
  return most - least > 104;
}

const Quota kQuotas[] = {
    {"one column", 0.3, [](const Kernel&, const Case& c) { return c.cols == 1; }, always},
    {"two to 32 columns", 3, [](const Kernel&, const Case& c) { return c.cols > 1 && c.cols <= 32; }, always},
    {"columns that a warp just holds", 3, beside<32>, wide<65>},
    {"columns that a block just holds", 1, beside<256>, wide<1025>},
    {"columns that no vector divides", 20, [](const Kernel&, const Case& c) { return c.cols % 4 != 0; }, wide<7>},
    {"more than 1024 columns", 5, [](const Kernel&, const Case& c) { return c.cols > 1024; }, wide<9000>},
    {"more than 8192 columns", 1, [](const Kernel&, const Case& c) { return c.cols > 8192; }, wide<40000>},
    {"more than 32768 columns", 0.3, [](const Kernel&, const Case& c) { return c.cols > 32768; }, wide<70000>},
    {"a step of the choice", 1, at_a_step, [](const Kernel& k) { return k.traits().choice != nullptr; }},
    {"one row", 5, [](const Kernel&, const Case& c) { return c.rows == 1; }, always},
    {"some rows", 5, [](const Kernel&, const Case& c) { return c.rows > 1 && c.rows < 33; }, always},
    {"many rows", 0.1, [](const Kernel&, const Case& c) { return c.rows >= 33; }, always},
    {"an input that begins astray", 10, [](const Kernel&, const Case& c) { return c.in_shift != 0; }, always},
    {"an output astray by another", 10, [](const Kernel&, const Case& c) { return c.out_shift != c.in_shift; }, always},
    {"padded rows", 5, [](const Kernel&, const Case& c) { return c.in_padding != 0 || c.out_padding != 0; },
     takes_gaps},
    {"rows padded in two ways", 3, [](const Kernel&, const Case& c) { return c.in_padding != c.out_padding; },
     takes_gaps},
    {"in place", 2, [](const Kernel&, const Case& c) { return c.in_place; },
     [](const Kernel& k) { return k.traits().in_place; }},
    {"a temperature", 2, [](const Kernel&, const Case& c) { return c.temperature != 1; },
     [](const Kernel& k) { return k.traits().temperature; }},
    {"a temperature for each row", 1, [](const Kernel&, const Case& c) { return c.each_row; },
     [](const Kernel& k) { return k.traits().temperature; }},
    {"a plan", 10, [](const Kernel&, const Case& c) { return c.plan != Plan(); },
     [](const Kernel& k) { return k.traits().plans.size() > 0; }},
    {"far from 0", 5, [](const Kernel&, const Case& c) { return std::fabs(c.offset) >= 1e4f; }, always},
    {"an exp that is 0", 2, saturated, always},
    {"masks", 10, [](const Kernel&, const Case& c) { return masked(c.kind); }, always},
    {"another order of threads", 20,
     [](const Kernel&, const Case& c) { return c.schedule.order != Schedule::Order::forward; }, always},
};

template <class T>
bool has(const List<T>& list, const T& one) {
  return std::ranges::find(list, one) != list.end();
}
// The cases of what a kernel lists are to be `percent` of its cases, in equal parts.
template <class T>
std::function<double(const Kernel&)> part(List<T> Traits::*list, const T& one, double percent) {
  return [=](const Kernel& k) { return has(k.traits().*list, one) ? percent / (k.traits().*list).size() : 0; };
}

std::vector<Class> all_classes() {
  std::vector<Class> all;
  for (const Quota& q : kQuotas)
    all.push_back({q.name, [&q](const Kernel& k) { return q.known(k) ? q.percent : 0; }, q.is});
  for (const Kind kind : all_kinds())
    all.push_back({"kind " + std::string(name(kind)), [](const Kernel&) { return 1; },
                   [kind](const Kernel&, const Case& c) { return c.kind == kind; }});
  std::map<std::string, Class> listed;
  for (const Kernel* k : kernels()) {
    for (const int block : k->traits().blocks) {
      const std::string name = "block " + std::to_string(block);
      listed[name] = {name, part(&Traits::blocks, block, 30),
                      [block](const Kernel&, const Case& c) { return c.block == block; }};
    }
    for (const Types types : k->traits().types) {
      const std::string its = "types " + name(types);
      listed[its] = {its, part(&Traits::types, types, 30),
                     [types](const Kernel&, const Case& c) { return c.types == types; }};
    }
    for (const Plan& plan : k->traits().plans) {
      const std::string name = "plan " + to_string(plan);
      listed[name] = {name, part(&Traits::plans, plan, 5), [plan](const Kernel&, const Case& c) {
                        return c.plan.threads == plan.threads && c.plan.vectors == plan.vectors;
                      }};
    }
  }
  for (auto& [name, one] : listed) all.push_back(std::move(one));
  return all;
}

}  // namespace

const std::vector<Class>& classes() {
  static const std::vector<Class> all = all_classes();
  return all;
}

}  // namespace softmax::properties
