// The soak finds what is wrong, says it in a line, and can be stopped.

#include "properties/soak/soak.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "properties/classes.hpp"
#include "properties/harness.hpp"
#include "properties/laws.hpp"
#include "properties/merge_laws.hpp"

namespace softmax::soak {
namespace {

std::vector<const Kernel*> named(const std::set<std::string_view>& names) {
  std::vector<const Kernel*> all;
  for (const Kernel* k : kernels())
    if (k->machine().simulated() && names.count(k->name())) all.push_back(k);
  return all;
}

// Each of them is caught by another law.
class Soak : public testing::TestWithParam<const char*> {};

TEST_P(Soak, finds_a_wrong_kernel_in_seconds) {
  const auto kernels = named({GetParam(), "right"});
  ASSERT_EQ(kernels.size(), 2u);
  std::vector<std::string> lines;
  Options options{.seconds = 60, .seed = 7, .device = "cpu", .kernels = kernels, .merge = false};
  options.say = [&](const std::string& text) {
    if (text.starts_with("FAILED")) lines.push_back(text);
  };
  options.stop = [&] { return !lines.empty(); };
  const Report report = soak(options);
  EXPECT_LT(report.seconds, 30);
  ASSERT_EQ(report.failures.size(), 1u);
  const Failure& found = report.failures[0];
  EXPECT_NE(found.kernel, properties::test_name(*named({"right"})[0]));
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  EXPECT_NE(lines[0].find("SOFTMAX_CASE='" + found.smallest + "' laws_test --gtest_filter='*/" + found.kernel + "_" +
                          found.law + "'"),
            std::string::npos)
      << lines[0];
  std::string again;
  try {
    again = properties::law(found.law).refute(*named({GetParam()})[0], properties::parse_case(found.smallest));
  } catch (const std::exception& e) {
    again = e.what();
  }
  EXPECT_NE(again, "") << lines[0];
}

INSTANTIATE_TEST_SUITE_P(All, Soak,
                         testing::Values("no_maximum", "drops_last", "no_barrier", "stale_sum", "past_the_end",
                                         "drops_nan", "forgetful", "remembers", "narrow_sum", "hasty"),
                         [](const auto& info) { return info.param; });

// One that forgets to rescale, beside those that are registered.
void careless(const merge::Pair* a, const merge::Pair* b, merge::Pair* out, int count, float) {
  for (int i = 0; i < count; ++i) out[i] = {std::max(a[i].max, b[i].max), a[i].sum + b[i].sum};
}
void careless_warps(const merge::Pair* in, merge::Pair* out, int warps, float) { std::copy(in, in + 32 * warps, out); }

// As many cases as it is asked for.
Report some(std::uint64_t seed, int count, bool merge, const std::vector<const Kernel*>& kernels) {
  return soak({.seconds = 600, .cases = count, .seed = seed, .device = "cpu", .kernels = kernels, .merge = merge});
}

TEST(SoakMerge, finds_a_wrong_merge) {
  merge::register_merger({[]() -> Machine& { return named({"right"})[0]->machine(); }, careless, careless_warps});
  const Report report = some(3, 5, true, {});
  std::set<std::string> laws;
  for (const Failure& f : report.failures) {
    laws.insert(f.law);
    EXPECT_EQ(f.kernel, "merge_cpu");
    EXPECT_TRUE(f.smallest.starts_with("seed ")) << f.smallest;
  }
  EXPECT_EQ(laws, (std::set<std::string>{"any_grouping_is_the_same", "a_warp_agrees_and_is_right",
                                         "what_is_undefined_stays_so"}));
}

TEST(SoakSeed, decides_the_cases) {
  const auto kernels = named({"right", "typed"});
  const auto lines = [&](std::uint64_t seed) {
    std::string all;
    Options options{.seconds = 600, .cases = 60, .seed = seed, .device = "cpu", .kernels = kernels, .merge = false};
    options.doing = [&](const std::string& line) { all += line + "\n"; };
    EXPECT_EQ(soak(options).total(), 60);
    EXPECT_EQ(std::ranges::count(all, '\n'), 60);
    return all;
  };
  const std::string once = lines(1);
  EXPECT_EQ(once, lines(1));
  EXPECT_NE(once, lines(2));
}

TEST(SoakClasses, are_all_drawn_by_a_right_kernel) {
  const auto kernels = named({"typed"});
  const Report report = some(11, 300, false, kernels);
  EXPECT_TRUE(report.failures.empty());
  std::size_t known = 0;
  for (const auto& one : properties::classes()) known += one.least(*kernels[0]) > 0;
  EXPECT_EQ(report.classes.size(), known);
  for (const Drawn& one : report.classes)  // of 300 cases, what is wanted less than once may be missing
    EXPECT_GE(double(one.cases), std::floor(one.least)) << one.name;
}

// The program itself, in a process of its own.
class Program : public testing::Test {
 protected:
  pid_t start(std::vector<std::string> arguments) {
    std::remove(kJson.c_str());
    std::remove(kLog.c_str());
    arguments.insert(arguments.begin(), SOFTMAX_SOAK);
    std::vector<char*> argv;
    for (std::string& one : arguments) argv.push_back(one.data());
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::signal(SIGINT, SIG_DFL);  // a shell's background job ignores it
    if (std::freopen(kLog.c_str(), "w", stdout)) execv(argv[0], argv.data());
    _exit(127);
  }
  static int status_of(pid_t pid) {
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string log() {
    std::ifstream in(kLog);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  inline static const std::string kJson = testing::TempDir() + "soak_test.json";
  inline static const std::string kLog = testing::TempDir() + "soak_test.log";
};

TEST_F(Program, is_stopped_by_a_signal_and_reports) {
  const pid_t pid = start({"--minutes=60", "--seed=9", "--device=cpu", "--json=" + kJson});
  while (log().empty()) usleep(10000);
  EXPECT_TRUE(log().starts_with("seed 9: ")) << "the seed comes first: " << log();
  usleep(500000);
  kill(pid, SIGINT);
  EXPECT_EQ(status_of(pid), 0) << log();
  EXPECT_NE(log().find(" 0 failures; seed 9; stopped before its time\n"), std::string::npos) << log();
  std::ifstream file(kJson);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["context"]["seed"], "9");
  EXPECT_EQ(json["context"]["stopped"], true);
  EXPECT_LT(json["context"]["minutes"], 2);
  EXPECT_GT(json["cases"].size(), 0u);
  EXPECT_EQ(json["failures"].size(), 0u);
}

TEST_F(Program, tells_the_case_of_a_crash) {
  const pid_t pid = start({"--minutes=60", "--device=cpu"});
  while (log().empty()) usleep(10000);
  usleep(500000);
  kill(pid, SIGSEGV);
  EXPECT_EQ(status_of(pid), -1) << "ended by the signal";
  EXPECT_NE(log().find("ended the program; again: SOFTMAX_CASE='"), std::string::npos) << log();
}

TEST_F(Program, ends_by_itself_and_refuses_what_it_does_not_know) {
  EXPECT_EQ(status_of(start({"--minutes=0.01", "--device=cpu", "--json=" + kJson})), 0) << log();
  std::ifstream file(kJson);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["context"]["stopped"], false);
  EXPECT_EQ(json["context"]["device"], "CPU device");
  for (const char* wrong : {"--minutes=", "--minutes=0", "--minutes=-1", "--minutes=1x", "--minutes=nan",
                            "--minutes=0x1", "--seed=18446744073709551616", "--seed=", "--seed=-1", "--seed=1x",
                            "--device=tpu", "--json=", "--json=/no/such/file", "more"})
    EXPECT_EQ(status_of(start({wrong})), 2) << wrong;
}

}  // namespace
}  // namespace softmax::soak
