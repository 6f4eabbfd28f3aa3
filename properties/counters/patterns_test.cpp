// What the CPU device counts, against the counts that patterns.cu derives by hand.

#include "properties/counters/patterns.hpp"

#include <gtest/gtest.h>

#include <string>

namespace softmax::counters {
namespace {

// Puts the watch and the schedule back at the end, also when a launch throws.
class Watched {
 public:
  Watched(Machine& machine, Watch watch, Schedule schedule = {}) : machine_(machine) {
    machine.watch(watch);
    machine.schedule(schedule);
  }
  ~Watched() {
    machine_.watch(Watch::check);
    machine_.schedule({});
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Machine& machine_;
};

// One line for each counter that is not as it should be.
std::string difference(const Counters& counted, const Counters& expected) {
  std::string text;
  for (const CounterName& c : counter_names())
    if (counted.*c.value != expected.*c.value)
      text += std::string(c.key) + " is " + std::to_string(counted.*c.value) + ", not " +
              std::to_string(expected.*c.value) + "\n";
  return text;
}

std::vector<const Pattern*> on_the_cpu_device() {
  std::vector<const Pattern*> all;
  for (const Pattern* p : patterns())
    if (p->machine().simulated()) all.push_back(p);
  return all;
}

class Textbook : public testing::TestWithParam<const Pattern*> {};

TEST_P(Textbook, counts) {
  const Pattern& pattern = *GetParam();
  Machine& machine = pattern.machine();
  using Order = Schedule::Order;
  for (const Watch watch : {Watch::count, Watch::check})
    for (const Schedule& schedule : {Schedule{}, Schedule{Order::reverse}, Schedule{Order::seeded, 1},
                                     Schedule{Order::seeded, 2}, Schedule{Order::seeded, 3}}) {
      SCOPED_TRACE((watch == Watch::count ? "count, " : "check, ") + to_string(schedule));
      const Watched watched(machine, watch, schedule);
      run(pattern);
      const Profile all = machine.profile();
      EXPECT_EQ(difference(all.total, expected(pattern)), "");
      Counters by_line;
      for (const Profile::Line& line : all.lines) by_line += line.counters;
      EXPECT_EQ(difference(by_line, all.total), "") << "summed over the lines";
    }
}

INSTANTIATE_TEST_SUITE_P(Patterns, Textbook, testing::ValuesIn(on_the_cpu_device()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(TextbookStudy, counts_only_while_it_watches) {
  const Pattern& any = *on_the_cpu_device().front();
  Machine& machine = any.machine();
  {
    const Watched off(machine, Watch::off);
    run(any);
    EXPECT_EQ(difference(machine.profile().total, {}), "");
    EXPECT_EQ(machine.profile().accesses, 0);
    EXPECT_TRUE(machine.profile().lines.empty());
  }
  const Watched counting(machine, Watch::count);
  run(any);
  run(any);
  Counters twice = expected(any);
  twice += expected(any);
  EXPECT_EQ(difference(machine.profile().total, twice), "") << "of two launches";
  EXPECT_EQ(machine.profile().accesses, 2 * 2 * any.blocks * any.threads);
  machine.watch(Watch::count);
  EXPECT_EQ(difference(machine.profile().total, {}), "") << "of none since the last watch()";
}

}  // namespace
}  // namespace softmax::counters
