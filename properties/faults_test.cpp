// Do the checks of the CPU device find what they should, and nothing else? Kernels with one fault each, whose line
// bears a mark, and near misses. On a GPU the same kernels run for analysis/sanitize.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "properties/harness.hpp"
#include "properties/laws.hpp"
#include "properties/runner.hpp"

namespace softmax::properties {
namespace {

// What a report of each kind may say.
const std::map<std::string, std::vector<std::string>> kKinds = {
    {"out of bounds", {"out of bounds: "}},
    {"misaligned", {"misaligned: "}},
    {"race", {"race: "}},
    {"uninitialised", {"uninitialised: "}},
    {"never written", {"never written"}},
    {"barrier", {"not every thread reaches __syncthreads", "threads meet at different calls", "which has ended"}},
    {"warp",
     {"has returned", "is not named in its own mask", "which the mask does not name", "which does not exist",
      "not a power of two", "wait for their warp"}},
};

// Shapes of those faults that do not show at 3 rows of 101 columns, two elements apart.
Case case_of(const Kernel& kernel) {
  Case c{.rows = 3, .cols = 101, .in_padding = 2, .out_padding = 2, .block = kernel.traits().blocks[0]};
  if (kernel.name() == "stores_before_the_start") c.rows = 1;  // further rows have an earlier one before them
  if (kernel.name() == "lanes_have_returned") c.cols = 20;
  return c;
}

constexpr Schedule kSchedules[] = {{Schedule::Order::forward},   {Schedule::Order::reverse},
                                   {Schedule::Order::seeded, 1}, {Schedule::Order::seeded, 2},
                                   {Schedule::Order::seeded, 3}, {Schedule::Order::seeded, 4}};

// A fault's marks: comments at the end of lines of its kernel function, `// fault: race` and perhaps `// other side`.
struct Marks {
  std::string kind;
  int faults = 0;
  std::vector<std::string> places;  // "races.cu:12"
};
Marks marks(const Kernel& kernel) {
  const std::string file(kernel.file()), path = SOFTMAX_SOURCE_DIR "/properties/faults/" + file;
  std::ifstream in(path);
  Marks found;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("__global__")) inside = line.find(" " + std::string(kernel.name()) + "(") != line.npos;
    if (!inside) continue;
    const std::size_t fault = line.find("// fault: ");
    if (fault != line.npos) found.kind = line.substr(fault + 10), ++found.faults;
    if (fault != line.npos || line.ends_with("// other side"))
      found.places.push_back(file + ":" + std::to_string(number));
  }
  EXPECT_GT(number, 0) << path;
  return found;
}

std::vector<std::string> names(bool clean) {
  std::vector<std::string> all;
  for (const Kernel* k : kernels())
    if (k->machine().simulated() && (k->file() == "clean.cu") == clean) all.emplace_back(k->name());
  return all;
}

const Kernel* find(std::string_view name, bool simulated) {
  for (const Kernel* k : kernels())
    if (k->name() == name && k->machine().simulated() == simulated) return k;
  return nullptr;
}

// The line of the report that says what it should, or an empty string.
std::string finding(const std::string& report, const Marks& m) {
  std::istringstream lines(report);
  const auto names = [](const std::string& line, const std::string& place) {
    const std::size_t at = line.find(place);
    return at != line.npos && (at + place.size() == line.size() || !std::isdigit(line[at + place.size()]));
  };
  for (std::string line; std::getline(lines, line);) {
    const auto& says = kKinds.at(m.kind);
    if (std::none_of(says.begin(), says.end(), [&](auto& text) { return line.find(text) != line.npos; })) continue;
    // An element that nobody wrote has no line.
    if (m.kind == "never written" ||
        std::all_of(m.places.begin(), m.places.end(), [&](auto& place) { return names(line, place); }))
      return line;
  }
  return {};
}

class Cpu : public testing::TestWithParam<std::string> {};

TEST_P(Cpu, is_reported) {
  const Kernel& kernel = *find(GetParam(), true);
  const Marks m = marks(kernel);
  ASSERT_TRUE(kKinds.contains(m.kind)) << m.kind;
  for (const Schedule& s : kSchedules) {
    Case c = case_of(kernel);
    c.schedule = s;
    ASSERT_EQ(kernel.unsupported(problem_of(c)), "");
    const std::string report = message_of([&] { run(kernel, c); });
    const std::string line = finding(report, m);
    std::string wanted = m.kind;
    for (const std::string& place : m.places) wanted += " " + place;
    EXPECT_NE(line, "") << to_string(s) << ": wanted " << wanted << ", not: " << report;
    if (s.order == Schedule::Order::forward && !line.empty()) std::printf("reported: %s\n", line.c_str());
  }
}
INSTANTIATE_TEST_SUITE_P(Fault, Cpu, testing::ValuesIn(names(false)), [](const auto& info) { return info.param; });

class CpuClean : public testing::TestWithParam<std::string> {};

TEST_P(CpuClean, is_clean_and_right) {
  const Kernel& kernel = *find(GetParam(), true);
  for (const auto& [rows, cols, padding] : {std::tuple{3, 101, 2}, {1, 64, 0}, {2, 7, 1}})
    for (std::uint64_t seed = 0; seed < 102; ++seed) {
      Case c{.rows = rows, .cols = cols, .in_padding = padding, .out_padding = padding};
      c.block = kernel.traits().blocks[0];
      c.schedule = seed < 2 ? kSchedules[seed] : Schedule{Schedule::Order::seeded, seed};
      std::string wrong;
      ASSERT_EQ(message_of([&] { wrong = law("matches_reference").refute(kernel, c); }), "") << c;
      ASSERT_EQ(wrong, "") << c;
    }
}
INSTANTIATE_TEST_SUITE_P(NearMiss, CpuClean, testing::ValuesIn(names(true)),
                         [](const auto& info) { return info.param; });

// Memory of exactly the bytes that a kernel may touch, written nowhere but in the input's rows: what a sanitizer can
// know of a program.
struct Exact {
  Exact(Machine& m, std::int64_t bytes) : machine(m), size(std::size_t(bytes)), data(machine.allocate(size)) {}
  ~Exact() { machine.release(data, size); }
  Exact(const Exact&) = delete;
  float* floats() const { return static_cast<float*>(data); }
  Machine& machine;
  std::size_t size;
  void* data;
};

void run_exactly(const Kernel& kernel, const Case& c) {
  Machine& machine = kernel.machine();
  Problem p = problem_of(c);
  const std::vector<float> x = values(c);
  const std::size_t row = std::size_t(c.cols) * sizeof(float);
  const auto bytes = [&](std::int64_t stride) { return ((c.rows - 1) * stride + c.cols) * 4; };
  const Exact in(machine, bytes(p.in_stride)), out(machine, bytes(p.out_stride)), work(machine, kernel.workspace(p));
  for (std::int64_t r = 0; r < c.rows; ++r)
    machine.upload(in.floats() + r * p.in_stride, &x[std::size_t(r * c.cols)], row);
  p.in = in.data, p.out = out.data, p.workspace = work.data;
  kernel.launch(p);
  machine.synchronize();
  std::vector<float> y(std::size_t(c.cols));
  for (std::int64_t r = 0; r < c.rows; ++r) machine.download(y.data(), out.floats() + r * p.out_stride, row);
}

class Gpu : public testing::TestWithParam<std::string> {};

TEST_P(Gpu, runs) {
  const Kernel* kernel = find(GetParam(), false);
  if (!kernel && gpu_required()) FAIL() << "SOFTMAX_REQUIRE_GPU=1, but this program was built without CUDA";
  if (!kernel) GTEST_SKIP() << "this program was built without CUDA";
  SKIP_IF_UNAVAILABLE(*kernel);
  if (kernel->file() == "clean.cu") {
    const Case c = case_of(*kernel);
    EXPECT_EQ(message_of([&] { run_exactly(*kernel, c); }), "");
    EXPECT_EQ(law("matches_reference").refute(*kernel, c), "");
    return;
  }
  // A fault may hang the GPU or end this process's use of it.
  if (!std::getenv("SOFTMAX_RUN_FAULTS")) GTEST_SKIP() << "SOFTMAX_RUN_FAULTS is not set; analysis/sanitize.py sets it";
  std::printf("%s\n", message_of([&] { run_exactly(*kernel, case_of(*kernel)); }).c_str());
}
INSTANTIATE_TEST_SUITE_P(Fault, Gpu, testing::ValuesIn(names(false)), [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(NearMiss, Gpu, testing::ValuesIn(names(true)), [](const auto& info) { return info.param; });

TEST(FaultStudy, has_one_mark_a_fault_and_every_kind) {
  std::set<std::string> kinds, wanted;
  for (const auto& [kind, says] : kKinds) wanted.insert(kind);
  for (const std::string& name : names(false)) {
    const Marks m = marks(*find(name, true));
    EXPECT_EQ(m.faults, 1) << name;
    kinds.insert(m.kind);
  }
  for (const std::string& name : names(true)) EXPECT_TRUE(marks(*find(name, true)).places.empty()) << name;
  EXPECT_EQ(kinds, wanted);
  EXPECT_GE(names(false).size(), 40u);
  EXPECT_GE(names(true).size(), 12u);
}

}  // namespace
}  // namespace softmax::properties
