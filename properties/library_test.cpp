// The library: what it promises beyond the kernels, which the laws judge.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <new>
#include <thread>

#include "kernels/host_machine.hpp"
#include "kernels/library/softmax.hpp"
#include "kernels/library/table.hpp"
#include "properties/bench_run.hpp"
#include "properties/harness.hpp"

namespace {
thread_local std::int64_t allocations = 0;
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// AddressSanitizer's would not call the one above.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace softmax::properties {
namespace {

constexpr Device kCpu = Device::cpu;

// A table in force until the end of a test.
class Ruled {
 public:
  explicit Ruled(Table t) { set_table(std::move(t)); }
  explicit Ruled(const std::string& rules)
      : Ruled(parse_table("in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks\n" + rules, "a test")) {}
  ~Ruled() { set_table(before_); }

 private:
  Table before_ = table();
};

const Kernel& cpu_kernel(std::string_view label) {
  return **std::find_if(kernels().begin(), kernels().end(),
                        [&](auto* k) { return k->label() == label && k->machine().simulated(); });
}

Problem dense(std::int64_t rows, std::int64_t cols, Types t = {}) {
  return {.rows = rows, .cols = cols, .in_stride = cols, .out_stride = cols, .in_type = t.in, .out_type = t.out};
}

// A problem with memory of its own, in which `row` stands `rows` times, each at a multiple of 256 bytes.
struct Batch {
  Batch(std::int64_t rows, const std::vector<float>& row, bool batch_invariant) {
    const auto cols = std::int64_t(row.size()), stride = (cols + 63) / 64 * 64;
    x.resize(std::size_t(rows * stride + 64));
    y.resize(x.size());
    p = dense(rows, cols);
    p.in_stride = p.out_stride = stride;
    p.batch_invariant = batch_invariant;
    float* const in = aligned(x);
    for (std::int64_t r = 0; r < rows; ++r) std::copy(row.begin(), row.end(), in + r * stride);
    p.in = in;
    p.out = aligned(y);
    if (const std::int64_t bytes = workspace_bytes(p, kCpu)) workspace.resize(std::size_t(bytes) / 4 + 64);
    if (!workspace.empty()) p.workspace = aligned(workspace);
  }
  static float* aligned(std::vector<float>& v) {
    return reinterpret_cast<float*>((std::uintptr_t(v.data()) + 255) / 256 * 256);
  }
  std::vector<float> result(std::int64_t r) const {
    const float* const from = static_cast<const float*>(p.out) + r * p.out_stride;
    return {from, from + p.cols};
  }

  Problem p;
  std::vector<float> x, y, workspace;
};
std::vector<float> some_row(std::int64_t cols) {
  std::vector<float> row;
  for (std::int64_t i = 0; i < cols; ++i) row.push_back(normal(random_bits(1, std::uint64_t(i))));
  return row;
}

template <class Error, class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "of another type: " << e.what();
    return "";
  }
  return "nothing was thrown";
}
void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\ndoes not say\n" << part;
}

TEST(Library, errors_have_types_and_say_what_is_wrong) {
  const Ruled needs_workspace("4,4,,,12,,,\n");
  Batch b(2, some_row(140000), false);
  const auto refused = [&](auto change) {
    Problem p = b.p;
    change(p);
    return refusal<InvalidProblem>([&] { forward(p, kCpu); });
  };
  expect_says(refused([](Problem& p) { p.rows = -1; }), "at least 0, not -1");
  expect_says(refused([](Problem& p) { p.in_stride = 7; }), "at least cols = 140000, not 7");
  expect_says(refused([](Problem& p) { p.in = nullptr; }), "null pointer");
  expect_says(refused([](Problem& p) { p.temperature = 0; }), "temperature must be above 0");
  expect_says(refused([](Problem& p) { p.out_type = DataType::bf16; }), "not fp32-bf16");
  expect_says(refused([](Problem& p) { p.in = static_cast<const char*>(p.in) + 2; }), "multiple of 4");
  expect_says(refused([](Problem& p) {
                p.temperatures = reinterpret_cast<const float*>(static_cast<const char*>(p.workspace) + 2);
              }),
              "temperatures must begin at a multiple of 4");
  expect_says(refused([](Problem& p) { p.plan = {256, 8, 0, 2}; }), "picks the plan itself");
  expect_says(refused([](Problem& p) { p.workspace = static_cast<char*>(p.workspace) + 8; }), "multiple of 16");
  expect_says(refused([](Problem& p) { p.workspace = p.out; }), "inside the input or the output");
  expect_says(refused([](Problem& p) { p.workspace = static_cast<char*>(const_cast<void*>(p.in)) + 4 * 140000; }),
              "inside the input or the output");
  expect_says(refusal<InvalidProblem>([&] { forward(b.p, Device(7)); }), "no softmax::Device 7");
  EXPECT_EQ(refusal<InvalidProblem>([&] { picked(dense(1, -1), kCpu); }).substr(0, 13), "rows and cols");
  EXPECT_EQ(refusal<InvalidProblem>([&] { workspace_bytes(dense(1, -1), kCpu); }).substr(0, 13), "rows and cols");
  expect_says(refused([](Problem& p) { p.workspace = nullptr; }),
              "null, and must be " + std::to_string(workspace_bytes(b.p, kCpu)) + " bytes");
  forward(b.p, kCpu);
}

// What the CPU device finds has begun to run: that is no InvalidProblem.
TEST(Library, what_a_launch_does_wrong_is_a_device_error) {
  const Ruled grid("4,4,,,11,256,8,4\n");
  Batch b(1, some_row(5000), false);
  Problem p = b.p;
  p.temperatures = static_cast<const float*>(p.out);  // which is being written meanwhile, and holds no temperature yet
  expect_says(refusal<DeviceError>([&] { forward(p, kCpu); }), "Auto (auto.cpp): ");
}

TEST(Library, a_gpu_that_is_not_there_is_a_device_error) {
  const std::vector<Machine*> all = machines();
  const auto gpu = std::find_if(all.begin(), all.end(), [](Machine* m) { return !m->simulated(); });
  if (gpu == all.end()) {
    expect_says(refusal<DeviceError>([] { picked(dense(1, 8), Device::gpu); }), "built without CUDA");
    EXPECT_EQ(picked(dense(1, 8)), picked(dense(1, 8), kCpu)) << "the best device of this program is the CPU device";
  } else if (!(*gpu)->unavailable().empty()) {
    expect_says(refusal<DeviceError>([] { picked(dense(1, 8), Device::gpu); }), (*gpu)->unavailable());
    EXPECT_EQ(refusal<DeviceError>([] { picked(dense(1, 8)); }), (*gpu)->unavailable());
  } else {
    EXPECT_EQ(picked(dense(1, 8)), picked(dense(1, 8), Device::gpu));
  }
}

TEST(Library, nothing_to_do_is_a_success) {
  for (const Problem& p : {dense(0, 5), dense(5, 0)}) {
    forward(p, kCpu);
    EXPECT_EQ(picked(p, kCpu), "");
    EXPECT_EQ(workspace_bytes(p, kCpu), 0);
  }
}

// As evenly as it can be, whatever RapidCheck's size.
int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
bool either() { return below(2) == 1; }
// A number whose logarithm is spread evenly.
std::int64_t size(int most_bits) {
  const std::int64_t power = std::int64_t{1} << below(most_bits);
  return power + below(int(power));
}
Types draw_types() { return kTypes[below(kTypes.size())]; }
// Rules for these types, most of them of kernels that need a workspace.
Table draw_table(Types t) {
  Table table = parse_table("in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks\n", "no rule");
  for (int n = 1 + below(6); n > 0; --n) {
    const Kernel& kernel = cpu_kernel("V" + std::to_string(*rc::gen::element(8, 9, 10, 11, 11, 12, 12)));
    Plan plan;
    if (kernel.traits().plans.size() > 0 && either()) plan = kernel.traits().plans[below(kernel.traits().plans.size())];
    plan.blocks = *rc::gen::element(0, 0, 2, 4, 16);
    const auto limit = [](int bits) { return either() ? size(bits) : INT64_MAX; };
    table.push_back(
        {int(bytes_per_element(t.in)), int(bytes_per_element(t.out)), limit(16), limit(20), kernel.version(), plan});
  }
  return table;
}
Problem draw_problem() {
  Problem p = dense(size(17), size(21), draw_types());
  p.spin = either();
  p.batch_invariant = either();
  p.max_blocks = *rc::gen::element(0, 0, 1, 3, 8);
  return p;
}
// What the launch itself will touch.
std::int64_t touched(const Problem& p) {
  const auto [kernel, plan] = cpu_kernel("Auto").choice(p);
  if (!kernel->traits().workspace) return 0;
  Problem by = p;
  by.plan = plan;
  return kernel->workspace(by) + (kernel->traits().keeps_workspace ? 0 : cpu_kernel("V11").workspace(p));
}

RC_GTEST_PROP(Library, a_workspace_serves_fewer_rows, ()) {
  for (int times = 0; times < 20; ++times) {  // a drawing costs microseconds
    const Problem p = draw_problem();
    const Ruled ruled(draw_table(p.types()));
    const std::int64_t enough = workspace_bytes(p, kCpu);
    Problem fewer = p;
    for (int i = 0; i < 8; ++i, fewer.rows = 1 + below(int(p.rows))) {
      RC_ASSERT(workspace_bytes(fewer, kCpu) <= enough);
      RC_ASSERT(touched(fewer) <= enough);
    }
  }
}

// Each thread remembers its last choice: a new thread must come to the same one, whatever this one was asked before.
RC_GTEST_PROP(Library, what_a_thread_remembers_changes_nothing, ()) {
  for (int times = 0; times < 20; ++times) {
    Problem p = draw_problem(), q = p;
    const Problem other = draw_problem();
    const Ruled ruled(draw_table(p.types()));
    switch (below(6)) {
      case 0: q.rows = other.rows; break;
      case 1: q.cols = q.in_stride = q.out_stride = other.cols; break;
      case 2: q.spin = !q.spin; break;
      case 3: q.batch_invariant = !q.batch_invariant; break;
      case 4: q.max_blocks = other.max_blocks; break;
      default: q.in_type = other.in_type, q.out_type = other.out_type;
    }
    picked(p, kCpu);
    const std::string remembered = picked(q, kCpu);
    std::string fresh;
    std::thread([&] { fresh = picked(q, kCpu); }).join();
    RC_ASSERT(remembered == fresh);
    // The plan that is handed on is whole: the kernel makes no other of it.
    const auto [kernel, plan] = cpu_kernel("Auto").choice(q);
    q.plan = plan;
    RC_ASSERT(kernel->unsupported(q) == "");
    RC_ASSERT(kernel->plan(q) == plan);
  }
}

TEST(Library, another_table_is_noticed) {
  EXPECT_NE(picked(dense(4, 100), kCpu), "V9 512x4");
  const Ruled ruled("4,4,,,9,512,4,\n");
  EXPECT_EQ(picked(dense(4, 100), kCpu), "V9 512x4");
}

TEST(Library, a_rule_that_nobody_can_follow_passes_to_the_next) {
  // A row too long for a warp, a cluster too large; V11 may not spin.
  const Ruled ruled("4,4,,,8,,,\n4,4,,,10,256,8,32\n4,4,1,,11,,,\n4,4,,,9,512,4,\n");
  EXPECT_EQ(picked(dense(2, 5000), kCpu), "V9 512x4");
  EXPECT_EQ(picked(dense(1, 5000), kCpu).substr(0, 3), "V11");
  Problem no_spin = dense(1, 5000);
  no_spin.spin = false;
  EXPECT_EQ(picked(no_spin, kCpu), "V9 512x4");
  EXPECT_EQ(picked(dense(2, 5000, {DataType::bf16, DataType::bf16}), kCpu).substr(0, 2), "V9") << "no rule at all";
}

TEST(Library, without_clusters_others_take_the_row) {
  struct Ampere {
    Ampere() { cpu_kernel("Auto").machine().compute_capability(80); }
    ~Ampere() { cpu_kernel("Auto").machine().compute_capability(90); }
  };
  const auto pick = [](const Problem& p) {
    const Ruled clusters("4,4,,,10,512,8,4\n");  // another table, or the thread would remember
    return picked(p, kCpu).substr(0, 3);
  };
  Problem p = dense(2, 140000);
  EXPECT_EQ(pick(p), "V10");
  const Ampere ampere;
  EXPECT_EQ(pick(dense(2, 5000)), "V9 ");
  EXPECT_EQ(pick(p), "V11");
  p.spin = false;
  EXPECT_EQ(pick(p), "V12");
  forward(Batch(2, some_row(140000), true).p, kCpu);
}

TEST(Library, picks_what_a_result_names) {
  Machine& machine = cpu_kernel("Auto").machine();
  const Kernel* const automatic[] = {&cpu_kernel("Auto")};
  for (const auto& [rows, cols] : {std::pair{3, 100}, {2, 5000}, {1, 60000}}) {
    benchmark::ClearRegisteredBenchmarks();
    std::string program = "test", time = "--benchmark_min_time=0", repetitions = "--benchmark_repetitions=1";
    char* argv[] = {program.data(), time.data(), repetitions.data(), nullptr};
    int argc = 3;
    benchmark::Initialize(&argc, argv);
    bench::Session session(machine, {});
    const bench::Registered lines = bench::register_cases(session, {{.shape = {rows, cols}}}, automatic);
    bench::Capture capture;
    benchmark::RunSpecifiedBenchmarks(&capture, "Auto");
    ASSERT_EQ(capture.runs.size(), 1u);
    expect_says(capture.runs[0].report_label, "[" + picked(dense(rows, cols), kCpu) + "]");
    benchmark::ClearRegisteredBenchmarks();
    machine.watch(Watch::check);
  }
}

void expect_same_bits(std::int64_t cols) {
  const std::vector<float> row = some_row(cols);
  std::vector<float> alone;
  for (const std::int64_t rows : {1, 2, 7, 300}) {
    Batch b(rows, row, true);
    forward(b.p, kCpu);
    if (alone.empty()) alone = b.result(0);
    for (std::int64_t r = 0; r < rows; ++r)
      ASSERT_EQ(b.result(r), alone) << "row " << r << " of " << rows << ", " << cols << " columns, "
                                    << picked(b.p, kCpu);
  }
}
// Of the built-in table the limits of columns; rows at a multiple of 128 bytes, or each would begin differently.
TEST(Library, batch_invariant_rows_keep_their_bits) {
  for (const std::int64_t cols : {1, 100, 2047, 2048, 2049, 4096, 4097}) expect_same_bits(cols);
}
TEST(Library, batch_invariant_rows_keep_their_bits_whatever_the_table) {
  const std::pair<const char*, std::int64_t> tables[] = {
      {"4,4,1,,9,512,2,\n4,4,2,,10,128,8,4\n4,4,8,,11,256,8,3\n4,4,,,12,,,\n", 3001},
      {"4,4,,,11,,,\n", 9001},  // which share of the card a row gets
      {"4,4,,,12,,,\n", 9001}};
  for (const auto& [rules, cols] : tables) {
    const Ruled by_rows(rules);
    std::map<std::string, int> with, without;
    for (const std::int64_t rows : {1, 2, 7, 300}) {
      Problem p = dense(rows, cols);
      ++without[picked(p, kCpu)];
      p.batch_invariant = true;
      ++with[picked(p, kCpu)];
    }
    EXPECT_EQ(with.size(), 1u);
    EXPECT_GE(without.size(), 2u) << "this table proves nothing";
    expect_same_bits(cols);
  }
}

// The host's side of a call: everything but the runtime's launch.
TEST(Library, a_call_allocates_nothing) {
  // A machine that does not check, as a GPU; it launches into nothing.
  struct Unchecked final : HostMachine {
    std::string_view id() const override { return "none"; }
    std::string name() const override { return "none"; }
    std::string unavailable() const override { return {}; }
    bool simulated() const override { return false; }
    std::string_view math() const override { return "ieee"; }
    std::vector<std::pair<std::string, std::string>> properties() const override { return {}; }
    std::size_t free_memory() const override { return 0; }
    std::size_t cache_bytes() const override { return 0; }
    void* allocate(std::size_t, bool) override { return nullptr; }
    void release(void*, std::size_t, bool) noexcept override {}
    int copies() const override { return 0; }
    void copy(int, void*, const void*, std::size_t) override {}
    softmax::Batch time(const Work&, int, const Timing&) override { return {}; }
    LaunchInfo last_launch() const override { return {}; }
  };
  static Unchecked unchecked;
  static int launches = 0;
  Traits traits = cpu_kernel("Auto").traits();
  const Kernel kernel(
      0, "Auto", "", "", []() -> Machine& { return unchecked; }, [](const Problem&) { ++launches; }, traits);
  const Ruled too_long_for_the_first("4,4,,,8,,,\n4,4,,,10,256,8,32\n");
  const Batch b(2, some_row(140000), false);
  kernel.launch(b.p);  // the first call of a thread looks for its kernel
  const std::int64_t before = allocations;
  for (int i = 0; i < 10; ++i) {
    kernel.launch(b.p);
    EXPECT_NE(kernel.choice(b.p).kernel, nullptr);
  }
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(launches, 11);
}

TEST(Library, threads_may_call_at_the_same_time) {
  // A thread of a block is a fiber, and a process has no stacks for two grids of a whole card.
  const Ruled ruled("4,4,,2000,8,,,\n4,4,,5000,9,,,\n4,4,,10000,12,,,\n4,4,,,11,128,8,16\n");
  const std::vector<std::int64_t> widths = {100, 3000, 9000, 140000};
  std::vector<std::vector<float>> alone, together(widths.size());
  for (const std::int64_t cols : widths) {
    Batch b(3, some_row(cols), false);
    forward(b.p, kCpu);
    alone.push_back(b.result(2));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < widths.size(); ++i)
    threads.emplace_back([&, i] {
      for (int times = 0; times < 3; ++times) {
        Batch b(3, some_row(widths[i]), false);
        forward(b.p, kCpu);
        together[i] = b.result(2);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(alone, together);
}

const std::string kHead = "in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks\n";

TEST(LibraryTable, refuses_what_is_no_rule_and_names_the_line) {
  for (const char* line : {"4,4,,2048,8,,",
                           "4,4,,2048,8,,,,",
                           "3,4,,,8,,,",
                           "4,,,,8,,,",
                           ",4,,,8,,,",
                           "8,8,,,8,,,",
                           "4,4,0,,8,,,",
                           "4,4,-1,,8,,,",
                           "4,4,1e3,,8,,,",
                           "4,4,,x,8,,,",
                           "4,4, 1,,8,,,",
                           "4,4,,,,,,",
                           "4,4,,,0,,,",
                           "4,4,,,V8,,,",
                           "4,4,,,8,0,,",
                           "4,4,,,8,1025,,",
                           "4,4,,,8,,-2,",
                           "4,4,,,8,,,1.5",
                           "4,4,99999999999999999999,,8,,,",
                           "4;4",
                           "4,4,,,7,,,",
                           "4,4,,,14,,,",
                           " ",
                           "in_bytes,out_bytes,rows,cols,version,threads,vectors,blocks"}) {
    const std::string text = "# a comment\n" + kHead + "4,4,,,9,,,\n\n" + line + "\n4,4,,,10,,,\n";
    expect_says(refusal<std::runtime_error>([&] { parse_table(text, "some.csv"); }), "some.csv, line 5: ");
  }
  expect_says(refusal<std::runtime_error>([] { parse_table("4,4,,,9,,,\n", "x"); }), "x, line 1: the first line must");
  EXPECT_EQ(parse_table(kHead.substr(0, kHead.size() - 1) + "\r\n4,4,,,8,,,\r\n", "x").size(), 1u);
  expect_says(refusal<std::runtime_error>([] { parse_table("# no more\n", "x"); }), "x: no line in_bytes");
}

RC_GTEST_PROP(LibraryTable, reads_what_it_writes, ()) {
  const Table any = draw_table(draw_types());
  RC_ASSERT(parse_table(to_text(any), "itself") == any);
}

TEST(LibraryTable, is_read_from_a_file_or_stays) {
  const Ruled restore(table());
  const std::string path = testing::TempDir() + "softmax_table.csv";
  std::ofstream(path) << kHead << "4,4,,,12,512,4,1\n";
  load_table(path);
  EXPECT_EQ(picked(dense(2, 100), kCpu), "V12 512x4");
  std::ofstream(path) << kHead << "4,4,,,9,,,\nhello\n";
  expect_says(refusal<std::runtime_error>([&] { load_table(path); }), path + ", line 3: ");
  std::ofstream(path) << kHead << "4,4,,,9,512,4,\n4,4,,,10,300,4,2\n";
  expect_says(refusal<std::runtime_error>([&] { load_table(path); }), path + ": V10 has no plan 300x4");
  expect_says(refusal<std::runtime_error>([&] { load_table(path + "x"); }), path + "x");
  EXPECT_EQ(picked(dense(2, 100), kCpu), "V12 512x4");
}

}  // namespace
}  // namespace softmax::properties
