// Every kernel under every replay of a public bug, and the table of them itself.

#include "properties/replays.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "properties/harness.hpp"
#include "properties/laws.hpp"

namespace softmax::properties {
namespace {

struct Article {
  const Replay* replay;
  const Kernel* kernel;
};
void PrintTo(const Article& a, std::ostream* out) { *out << *a.kernel << ": " << a.replay->fault; }

std::vector<Article> articles() {
  std::vector<Article> all;
  for (const Replay& r : replays())
    for (const Kernel* k : kernels())
      if (r.refute && (!r.applies || r.applies(*k))) all.push_back({&r, k});
  return all;
}

class Replays : public testing::TestWithParam<Article> {
 protected:
  void SetUp() override { SKIP_IF_UNAVAILABLE(*GetParam().kernel); }
};

TEST_P(Replays, pass) {
  const auto& [replay, kernel] = GetParam();
  try {
    EXPECT_EQ(replay->refute(*kernel), "") << replay->issues << ": " << replay->fault;
  } catch (const OutOfMemory& e) {
    GTEST_SKIP() << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Replays, testing::ValuesIn(articles()), [](const auto& info) {
  return name(*info.param.replay) + "_" + test_name(*info.param.kernel);
});

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

// "Suite.name" of all tests that are written here, whether or not this build has them.
std::set<std::string> written_tests() {
  namespace fs = std::filesystem;
  static const std::regex head(R"(\n(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+))");
  std::set<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOFTMAX_SOURCE_DIR) / "properties")) {
    if (!std::regex_search(entry.path().string(), std::regex(R"(_test\.(cpp|cu)$)"))) continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::sregex_iterator i(text.begin(), text.end(), head), end; i != end; ++i)
      all.insert((*i)[1].str() + "." + (*i)[2].str());
  }
  return all;
}

TEST(ReplayTable, names_tests_that_exist) {
  const std::set<std::string> written = written_tests();
  ASSERT_GT(written.size(), 200u) << "the search is broken";
  for (const Replay& r : replays())
    for (const std::string& test : words(r.tests)) {
      if (test.starts_with("law:"))
        EXPECT_NO_THROW(law(test.substr(4))) << r.issues;
      else
        EXPECT_TRUE(written.count(test)) << r.issues << " names " << test;
    }
}

TEST(ReplayTable, has_each_issue_once_and_says_what_becomes_of_it) {
  static const std::regex issue(R"([\w.-]+/[\w.-]+#\d+)");
  std::set<std::string> seen;
  for (const Replay& r : replays()) {
    for (const std::string& one : words(r.issues)) {
      EXPECT_TRUE(std::regex_match(one, issue)) << one;
      EXPECT_TRUE(seen.insert(one).second) << one << " has two rows";
    }
    EXPECT_FALSE(r.fault.empty()) << r.issues;
    EXPECT_NE(r.refute || !r.tests.empty(), !r.beyond.empty())
        << r.issues << " is replayed, or there is a reason not to";
    EXPECT_TRUE(r.refute || !r.applies) << r.issues;
    EXPECT_EQ(&replay(name(r)), &r) << "two are called " << name(r);
  }
  EXPECT_THROW(replay("nobody_0"), std::out_of_range);
}

// No replay is of nothing: each judges some kernel of this program, but for those of a GPU.
TEST(ReplayTable, has_a_kernel_for_each_replay) {
  for (const Replay& r : replays()) {
    int judged = 0;
    for (const Kernel* k : kernels()) judged += !r.applies || r.applies(*k);
    EXPECT_TRUE(judged > 0 || name(r) == "pytorch_84144") << r.issues;
  }
}

}  // namespace
}  // namespace softmax::properties
