// Rules of the house that a reader relies on: who includes whom, how long a file may be, what a lesson looks like, and
// that the documents point at things that exist.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "properties/harness.hpp"

namespace softmax::properties {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = SOFTMAX_SOURCE_DIR;
constexpr const char* kFolders[] = {"kernels", "reference", "properties", "benchmarks", "analysis", "cmake"};

std::vector<std::string> lines(const fs::path& path) {
  std::vector<std::string> all;
  std::istringstream in(read(path));
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

// Relative paths of the source files below a folder.
std::vector<std::string> sources(const std::string& folder) {
  static const std::regex source(R"(.*\.(cu|cuh|hpp|cpp|h|py|sh|cmake)|.*CMakeLists\.txt)");
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
    if (const std::string name = fs::relative(entry.path(), kRoot).string();
        entry.is_regular_file() && std::regex_match(name, source))
      all.push_back(name);
  std::sort(all.begin(), all.end());
  return all;
}

// What a file includes of ours.
std::vector<std::string> includes(const std::string& file) {
  static const std::regex include(R"(^\s*#include "([^"]+)\")");
  std::vector<std::string> all;
  for (const std::string& line : lines(kRoot / file))
    if (std::smatch m; std::regex_search(line, m, include)) all.push_back(m[1]);
  return all;
}

bool starts(const std::string& text, const std::string& with) { return text.starts_with(with); }
bool is_kernel(const std::string& file) { return std::regex_match(file, std::regex(R"(kernels/v\d+_.*\.cu)")); }
bool is_study(const std::string& file) { return std::regex_match(file, std::regex(R"(benchmarks/studies/.*\.cu)")); }
int version(const std::string& file) { return std::stoi(file.substr(file.find("/v") + 2)); }

TEST(House, includes_follow_the_rules) {
  for (const char* folder : kFolders)
    for (const std::string& file : sources(folder))
      for (const std::string& header : includes(file)) {
        const std::string both = file + " includes " + header;
        if (is_kernel(file)) {
          EXPECT_TRUE(header == "kernels/prelude.hpp" || (version(file) >= 8 && starts(header, "kernels/collective/")))
              << both;
        } else if (starts(file, "properties/sabotage/")) {
          EXPECT_TRUE(header == "kernels/prelude.hpp" || header == "kernels/narrow.hpp" ||
                      starts(header, "properties/sabotage/"))
              << both;
        } else if (starts(file, "properties/faults/")) {
          EXPECT_TRUE(header == "kernels/prelude.hpp" || starts(header, "properties/faults/")) << both;
        } else if (is_study(file)) {
          EXPECT_TRUE(header == "kernels/prelude.hpp" || header == "benchmarks/studies/study.hpp") << both;
        } else if (starts(file, "reference/")) {
          EXPECT_TRUE(starts(header, "reference/")) << both;
        } else if (starts(file, "kernels/")) {
          // The two installed headers lie beside each other.
          EXPECT_TRUE(starts(header, "kernels/") || both == "kernels/library/softmax.hpp includes problem.hpp") << both;
        } else if (!starts(file, "properties/simt/") && !starts(file, "properties/gpu_driver")) {
          EXPECT_FALSE(starts(header, "kernels/device/")) << both;
          // The bounds of a kernel's traits are what tests and the benchmark program judge by, and live with the laws.
          if (starts(file, "benchmarks/") && starts(header, "properties/")) {
            EXPECT_EQ(header, "properties/bounds.hpp") << both;
          }
        }
        EXPECT_FALSE(is_kernel(header)) << both;
      }
  for (const char* host : {"kernels/kernel.hpp", "kernels/machine.hpp"})
    EXPECT_EQ(read(kRoot / host).find("cuda_"), read(kRoot / host).find("cuda_only")) << host << " speaks of CUDA";
}

TEST(House, stays_small) {
  constexpr std::size_t kLesson = 120, kFile = 500, kCpuDevice = 3400, kAll = 43200;
  std::size_t all = 0, cpu_device = 0;
  for (const char* folder : kFolders)
    for (const std::string& file : sources(folder)) {
      const std::size_t count = lines(kRoot / file).size();
      const bool lesson = is_study(file) || (is_kernel(file) && version(file) <= 7);
      EXPECT_LE(count, lesson ? kLesson : kFile) << file;
      all += count;
      if (starts(file, "kernels/device/simt/")) cpu_device += count;
    }
  EXPECT_LE(cpu_device, kCpuDevice);
  EXPECT_LE(all, kAll);
  EXPECT_GT(all, 2000u) << "the count is broken";
  std::printf("%zu lines, %zu of them the CPU device\n", all, cpu_device);
}

std::vector<std::string> lessons() {
  std::vector<std::string> files = sources("kernels");
  std::erase_if(files, [](const std::string& file) { return !is_kernel(file); });
  return files;
}

class Lesson : public testing::TestWithParam<std::string> {};

TEST_P(Lesson, has_a_head_and_registers_its_number) {
  const std::string& file = GetParam();
  const std::vector<std::string> text = lines(kRoot / file);
  const char* heads[] = {"// Idea: ", "// Against the previous: ", "// Cost: ", "// Limit: "};
  std::size_t at = 0;
  for (const char* head : heads) {
    ASSERT_LT(at, text.size()) << file;
    EXPECT_TRUE(starts(text[at], head)) << file << ":" << at + 1 << " begins '" << text[at] << "', not '" << head
                                        << "'";
    do ++at;
    while (at < text.size() && starts(text[at], "//   "));  // a long one goes on, indented
  }
  // No test can see a launch on the wrong stream, so every launch must name the caller's.
  const auto has = [](const std::filesystem::path& at, const char* part) {
    return read(kRoot / at).find(part) != std::string::npos;
  };
  const bool by_grid_of = has(file, "grid_of(p, ") && has("kernels/collective/launch.hpp", ".stream = p.stream");
  EXPECT_TRUE(by_grid_of || has(file, ".stream = p.stream")) << file << " ignores p.stream";
  int registered = 0;
  for (const Kernel* k : kernels())
    if ("kernels/" + std::string(k->file()) == file) {
      ++registered;
      EXPECT_EQ(k->version(), version(file)) << file << " registers another version than its name says";
      EXPECT_FALSE(k->idea().empty()) << file;
    }
  EXPECT_GE(registered, 1) << file << " registers nothing";
}

INSTANTIATE_TEST_SUITE_P(All, Lesson, testing::ValuesIn(lessons()),
                         [](const auto& info) { return "V" + std::to_string(version(info.param)); });

TEST(House, the_registry_is_sorted_and_has_the_ladder) {
  std::vector<int> versions;
  for (const Kernel* k : kernels())
    if (k->machine().simulated()) versions.push_back(k->version());
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
  for (int v = 1; v <= 7; ++v) EXPECT_TRUE(std::count(versions.begin(), versions.end(), v)) << "V" << v;
}

TEST(House, a_required_gpu_is_there) {
  if (!gpu_required()) GTEST_SKIP() << "SOFTMAX_REQUIRE_GPU is not 1";
  int usable = 0;
  for (const Machine* m : machines()) usable += !m->simulated() && m->unavailable().empty();
  EXPECT_GT(usable, 0) << "this program has no GPU, or was built without CUDA";
}

// Every relative link of every document leads somewhere.
TEST(House, links_lead_somewhere) {
  static const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  int found = 0;
  for (const char* document :
       {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "kernels/README.md", "kernels/NOTES.md", "kernels/GOALS.md",
        "kernels/COUNTERS.md", "kernels/python/README.md", "results/README.md", "benchmarks/README.md",
        "benchmarks/studies/README.md", "analysis/data/README.md", "properties/faults/README.md",
        "kernels/library/README.md", "reference/PROOFS.md", "properties/mutants/README.md"}) {
    const std::string text = read(kRoot / document);
    for (std::sregex_iterator i(text.begin(), text.end(), link), end; i != end; ++i) {
      ++found;
      EXPECT_TRUE(fs::exists((kRoot / document).parent_path() / (*i)[1].str())) << document << " links to " << (*i)[1];
    }
  }
  EXPECT_GT(found, 20);
}

// The article map names a file, a law, a plot and a finding for each section.
TEST(House, the_article_map_is_complete) {
  const std::string text = read(kRoot / "kernels/README.md");
  const std::size_t from = text.find("<!-- map -->"), to = text.find("<!-- /map -->");
  ASSERT_LT(from, to);
  std::istringstream map(text.substr(from, to - from));
  int rows = 0;
  for (std::string line; std::getline(map, line);) {
    if (!starts(line, "| ") || starts(line, "| section")) continue;
    ++rows;
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 6) << line;
    for (std::smatch m; std::regex_search(line, m, std::regex(R"(`(law|test):([a-z_]+)`)"));) {
      const std::string where = m[1] == "law" ? "properties/laws.cpp" : "properties/examples_test.cpp";
      EXPECT_NE(read(kRoot / where).find(m[2]), std::string::npos) << where << " has no " << m[2];
      line = m.suffix();
    }
  }
  EXPECT_GE(rows, 12);
}

}  // namespace
}  // namespace softmax::properties
