// The gate of the counters: what the kernels ask of memory on the CPU device may shrink, and grows only when somebody
// says so. properties/golden/<kernel>.csv holds the counts; ./check --update-counters writes them anew.
//
// On a GPU the same launches, and the textbook patterns, run once each for a profiler: analysis/validate_counters.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "properties/counters/patterns.hpp"
#include "properties/harness.hpp"

namespace softmax::counters {
namespace {

namespace fs = std::filesystem;
using properties::test_name;

const fs::path kProperties = fs::path(SOFTMAX_SOURCE_DIR) / "properties", kGolden = kProperties / "golden";
const std::string kUpdate = "./check --update-counters";
// The counts are those of the code that a compiler makes of a kernel.
const std::string kCompiler = "g++ " + std::to_string(__GNUC__);

bool updating() {
  const char* value = std::getenv("SOFTMAX_UPDATE_COUNTERS");
  return value && std::string_view(value) == "1";
}

struct Launch {
  std::int64_t rows, cols;
  int block;
  auto operator<=>(const Launch&) const = default;
};
std::string to_string(const Launch& l) {
  return std::to_string(l.rows) + " x " + std::to_string(l.cols) + ", block " + std::to_string(l.block);
}
using Table = std::map<Launch, Counters>;
struct Golden {
  std::string compiler;
  Table table;
};

// Whole lines of sectors, rows that begin anywhere in one, and rows longer than any block has threads.
constexpr std::int64_t kShapes[][2] = {{64, 1024}, {64, 1571}, {16, 4008}};

// At the smallest block, 128, and the largest, of those that the kernel takes.
std::vector<Launch> launches(const Kernel& kernel) {
  const List<int>& blocks = kernel.traits().blocks;
  std::vector<Launch> all;
  for (const auto& [rows, cols] : kShapes)
    for (const int block : blocks)
      if ((block == 128 || block == *std::min_element(blocks.begin(), blocks.end()) ||
           block == *std::max_element(blocks.begin(), blocks.end())) &&
          kernel.unsupported({.rows = rows, .cols = cols, .in_stride = cols, .out_stride = cols, .block = block})
              .empty())
        all.push_back({rows, cols, block});
  return all;
}

void launch(const Kernel& kernel, const Launch& l) {
  Machine& machine = kernel.machine();
  const std::size_t elements = std::size_t(l.rows * l.cols);
  Buffer in(machine, elements * sizeof(float)), out(machine, elements * sizeof(float));
  machine.fill_noise(in.floats(), elements, 1);
  Problem p{.rows = l.rows,
            .cols = l.cols,
            .in_stride = l.cols,
            .out_stride = l.cols,
            .in = in.data(),
            .out = out.data(),
            .block = l.block};
  Buffer workspace(machine, std::size_t(std::max<std::int64_t>(kernel.workspace(p), 1)));
  p.workspace = workspace.data();
  kernel.launch(p);
  machine.synchronize();
}

Table count(const Kernel& kernel) {
  Machine& machine = kernel.machine();
  Table counted;
  for (const Launch& l : launches(kernel)) {
    machine.watch(Watch::count);
    launch(kernel, l);
    const Profile profile = machine.profile();
    EXPECT_GT(profile.accesses, 0) << kernel << " is not watched";
    counted[l] = profile.total;
  }
  machine.watch(Watch::check);
  return counted;
}

// The files.

fs::path file_of(const Kernel& kernel) { return kGolden / (std::string(kernel.name()) + ".csv"); }

std::string header(std::string text) {
  for (const CounterName& c : counter_names()) text += "," + std::string(c.key);
  return text;
}

std::string row(const Counters& counters) {
  std::string text;
  for (const CounterName& c : counter_names()) text += "," + std::to_string(counters.*c.value);
  return text + "\n";
}

std::string print(const Golden& golden) {
  std::string text = "# " + golden.compiler + "\n" + header("rows,cols,block") + "\n";
  for (const auto& [l, counters] : golden.table)
    text += std::to_string(l.rows) + "," + std::to_string(l.cols) + "," + std::to_string(l.block) + row(counters);
  return text;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  if (read(path) == text) return;
  std::ofstream(path) << text;
  std::printf("%s: written\n", path.string().c_str());
}

// What print() made. Throws std::runtime_error for anything else.
Golden parse(const std::string& text, const std::string& what) {
  std::istringstream lines(text);
  std::string line;
  Golden golden;
  if (!std::getline(lines, line) || !line.starts_with("# "))
    throw std::runtime_error(what + ": no \"# compiler\" line");
  golden.compiler = line.substr(2);
  if (!std::getline(lines, line) || line != header("rows,cols,block"))
    throw std::runtime_error(what + ": its columns are not the counters of machine.hpp; run " + kUpdate);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    Launch l{};
    Counters counters;
    char comma = ',';
    cells >> l.rows >> comma >> l.cols >> comma >> l.block;
    for (const CounterName& c : counter_names()) cells >> comma >> counters.*c.value;
    if (!cells || comma != ',' || !golden.table.emplace(l, counters).second)
      throw std::runtime_error(what + ": '" + line + "' is no row of it");
  }
  return golden;
}

Golden read_golden(const Kernel& kernel) {
  const fs::path file = file_of(kernel);
  return fs::exists(file) ? parse(read(file), file.filename().string()) : Golden{kCompiler, {}};
}

// The verdict, a line for each thing to say.
struct Verdict {
  std::vector<std::string> grew, shrank, fresh, stale;
};

Verdict compare(std::string_view kernel, const Table& golden, const Table& counted) {
  Verdict verdict;
  for (const auto& [l, now] : counted) {
    const std::string at = std::string(kernel) + " at " + to_string(l);
    const auto known = golden.find(l);
    if (known == golden.end()) verdict.fresh.push_back(at);
    if (known == golden.end()) continue;
    for (const CounterName& c : counter_names()) {
      const std::int64_t was = known->second.*c.value, is = now.*c.value;
      if (was == is) continue;
      (is > was ? verdict.grew : verdict.shrank)
          .push_back(at + ": " + std::string(c.key) + ", golden " + std::to_string(was) + ", now " +
                     std::to_string(is));
    }
  }
  for (const auto& [l, counters] : golden)
    if (!counted.contains(l)) verdict.stale.push_back(std::string(kernel) + " at " + to_string(l));
  return verdict;
}

std::string list(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

std::vector<const Kernel*> kernels_on(bool simulated) {
  std::vector<const Kernel*> all;
  for (const Kernel* k : kernels())
    if (k->machine().simulated() == simulated) all.push_back(k);
  return all;
}

class Counts : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam()); }
};

TEST_P(Counts, did_not_grow) {
  const Kernel& kernel = *GetParam();
  const Table counted = count(kernel);
  if (HasFailure()) return;
  if (updating()) return write(file_of(kernel), print({kCompiler, counted}));
  const Golden golden = read_golden(kernel);
  const Verdict v = compare(kernel.name(), golden.table, counted);
  if (!v.stale.empty()) ADD_FAILURE() << "nothing counts this any more; " << kUpdate << " drops it:" << list(v.stale);
  if (!v.shrank.empty()) std::printf("improved; %s keeps it:%s\n", kUpdate.c_str(), list(v.shrank).c_str());
  if (!v.grew.empty() && golden.compiler != kCompiler)
    GTEST_SKIP() << "counts are of " << golden.compiler << ", this program of " << kCompiler << ":" << list(v.grew);
  if (!v.grew.empty()) ADD_FAILURE() << "grew; if it must, " << kUpdate << " takes it:" << list(v.grew);
  if (!v.fresh.empty()) GTEST_SKIP() << "new; " << kUpdate << " adds it:" << list(v.fresh);
}

INSTANTIATE_TEST_SUITE_P(CounterGate, Counts, testing::ValuesIn(kernels_on(true)),
                         [](const auto& info) { return test_name(*info.param); });

TEST(CounterGateFiles, have_a_kernel_each) {
  if (updating()) fs::create_directories(kGolden);
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    const std::vector<const Kernel*> all = kernels_on(true);
    const bool known = std::any_of(all.begin(), all.end(), [&](auto* k) { return file_of(*k) == entry.path(); });
    if (!known && updating())
      fs::remove(entry.path());
    else
      EXPECT_TRUE(known) << entry.path() << " is of no kernel; " << kUpdate << " removes it";
  }
}

// For readers without this program: the counts of the patterns as derived, not as counted; patterns_test.cpp compares.
TEST(CounterGateFiles, hold_the_patterns) {
  std::string text = header("pattern,blocks,block") + "\n";
  for (const Pattern* p : patterns())
    if (p->machine().simulated())
      text +=
          std::string(p->name) + "," + std::to_string(p->blocks) + "," + std::to_string(p->threads) + row(expected(*p));
  const fs::path file = kProperties / "counters/patterns.csv";
  if (updating()) return write(file, text);
  EXPECT_EQ(read(file), text) << file << " is out of date; " << kUpdate << " writes it";
}

// Can the gate fail?

const Kernel& v3() {
  for (const Kernel* k : kernels_on(true))
    if (k->version() == 3) return *k;
  throw std::runtime_error("no V3");
}

TEST(CounterGateStudy, one_more_of_anything_is_seen) {
  const Table counted = count(v3());
  for (const CounterName& c : counter_names()) {
    Table golden = counted;
    golden.begin()->second.*c.value -= 1;
    const Verdict worse = compare("v3_warp", golden, counted), better = compare("v3_warp", counted, golden);
    ASSERT_EQ(worse.grew.size(), 1u) << c.key;
    ASSERT_EQ(better.shrank.size(), 1u) << c.key;
    const std::int64_t now = counted.begin()->second.*c.value;
    EXPECT_EQ(worse.grew[0], "v3_warp at 16 x 4008, block 32: " + std::string(c.key) + ", golden " +
                                 std::to_string(now - 1) + ", now " + std::to_string(now));
    EXPECT_TRUE(worse.shrank.empty() && better.grew.empty()) << c.key;
  }
}

TEST(CounterGateStudy, new_and_stale_launches_are_seen) {
  const Table one = {{{64, 1024, 32}, {}}}, other = {{{64, 1024, 64}, {}}};
  const Verdict v = compare("k", one, other);
  EXPECT_EQ(v.fresh, std::vector<std::string>{"k at 64 x 1024, block 64"});
  EXPECT_EQ(v.stale, std::vector<std::string>{"k at 64 x 1024, block 32"});
  EXPECT_TRUE(v.grew.empty() && v.shrank.empty());
}

TEST(CounterGateStudy, an_uncoalesced_kernel_is_seen) {
  const Golden golden = read_golden(v3());
  if (golden.table.empty()) GTEST_SKIP() << "no counts of V3 to compare with";
  const Verdict v = compare("v3_warp", golden.table, count(uncoalesced()));
  for (const char* key : {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld", "l1tex__t_sectors_pipe_lsu_mem_global_op_st"})
    EXPECT_EQ(std::count_if(v.grew.begin(), v.grew.end(),
                            [key](const std::string& line) { return line.find(key) != std::string::npos; }),
              std::ssize(golden.table))
        << key << ":" << list(v.grew);
}

TEST(CounterGateStudy, a_file_reads_as_it_was_written) {
  const Golden golden{"g++ 99", {{{1, 2, 32}, {.global_load_requests = 3, .partial_requests = 4}}, {{1, 2, 64}, {}}}};
  const Golden again = parse(print(golden), "text");
  EXPECT_EQ(again.compiler, golden.compiler);
  EXPECT_EQ(again.table, golden.table);
  EXPECT_THROW(parse("", "text"), std::runtime_error);
  EXPECT_THROW(parse("# g++ 99\nrows,cols\n", "text"), std::runtime_error);
  EXPECT_THROW(parse(print(golden) + "1,2,128\n", "text"), std::runtime_error);
  EXPECT_THROW(parse(print(golden) + "1,2,64" + row({}), "text"), std::runtime_error);
}

// For a profiler on a GPU. Each launch is announced, so that a reader of the profile knows which is which.

void announce(const std::string& kernel, const std::string& version, const Launch& l) {
  std::printf("@launch,%s,%s,%lld,%lld,%d\n", kernel.c_str(), version.c_str(), (long long)(l.rows), (long long)(l.cols),
              l.block);
  std::fflush(stdout);
}

class Gpu : public testing::TestWithParam<const Kernel*> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam()); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Gpu);

TEST_P(Gpu, launches) {
  for (const Launch& l : launches(*GetParam())) {
    announce(std::string(GetParam()->name()), GetParam()->label(), l);
    EXPECT_NO_THROW(launch(*GetParam(), l));
  }
}

INSTANTIATE_TEST_SUITE_P(CounterGate, Gpu, testing::ValuesIn(kernels_on(false)),
                         [](const auto& info) { return test_name(*info.param); });

TEST(CounterGateGpu, runs_the_patterns) {
  int run_on_gpu = 0;
  for (const Pattern* p : patterns()) {
    if (p->machine().simulated()) continue;
    if (const std::string why = p->machine().unavailable(); !why.empty()) {
      ASSERT_FALSE(properties::gpu_required()) << "SOFTMAX_REQUIRE_GPU=1, but " << why;
      GTEST_SKIP() << why;
    }
    announce("pattern_" + std::string(p->name), "pattern", {p->blocks, 0, p->threads});
    EXPECT_NO_THROW(run(*p));
    ++run_on_gpu;
  }
  if (run_on_gpu == 0) GTEST_SKIP() << "built without CUDA";
}

}  // namespace
}  // namespace softmax::counters
