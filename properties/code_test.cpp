// The built code of the GPU's kernels calculates as they state: Traits::exp, Traits::divide, and the build's math flags.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "properties/built_code.hpp"
#include "properties/harness.hpp"

namespace softmax::properties {
namespace {

// Of softmax_v1, say, and not of softmax_v10; V12 has two.
std::vector<Entry> of_version(const std::vector<Entry>& all, int version) {
  const std::string name = "softmax_v" + std::to_string(version);
  std::vector<Entry> some;
  for (const Entry& entry : all) {
    const std::size_t at = entry.name.find(name);
    if (at != std::string::npos && !std::isdigit(static_cast<unsigned char>(entry.name[at + name.size()])))
      some.push_back(entry);
  }
  return some;
}

bool on_gpu(const Kernel* k) { return !k->machine().simulated(); }

TEST(BuiltCode, calculates_as_the_kernels_state) {
  if (std::none_of(kernels().begin(), kernels().end(), on_gpu)) GTEST_SKIP() << "built without nvcc";
  const std::vector<Entry> all = entries(read("/proc/self/exe"));
  int judged = 0;
  for (const Kernel* k : kernels()) {
    if (!on_gpu(k) || k->version() == 0) continue;
    const BuiltCode code = read_code(of_version(all, k->version()), k->traits(), k->machine().math() == "fast");
    EXPECT_EQ(code.wrong, "") << *k;
    EXPECT_GT(code.entries, 0) << *k << ": no softmax_v" << k->version()
                               << " in this program's PTX, which -lineinfo puts there";
    std::printf("%s: %d functions, %d exps, %d quotients, %d reciprocals\n", k->label().c_str(), code.entries,
                code.exps, code.quotients, code.reciprocals);
    ++judged;
  }
  EXPECT_GE(judged, 12);
}

// Each function of V8 and later whose outputs have 32 bits has an exp that is given back what its power lost, and none of the
// others; V13 has no other, since what it adds up is what it outputs.
TEST(BuiltCode, exps_are_fine_where_outputs_are) {
  if (std::none_of(kernels().begin(), kernels().end(), on_gpu)) GTEST_SKIP() << "built without nvcc";
  const std::vector<Entry> all = entries(read("/proc/self/exe"));
  const std::regex of_floats("softmax_v[0-9]+(_write)?I(f|6__half|13__nv_bfloat16)f");
  int fine = 0, coarse = 0;
  for (const Kernel* k : kernels()) {
    if (!on_gpu(k) || k->version() < 8) continue;
    for (const Entry& entry : of_version(all, k->version())) {
      const BuiltCode code = read_code({entry}, k->traits(), k->machine().math() == "fast");
      const bool is = std::regex_search(entry.name, of_floats);
      EXPECT_EQ(code.fine > 0, is) << entry.name;
      if (k->version() == 13 && is) {
        EXPECT_EQ(code.fine, code.exps) << entry.name;
      }
      ++(is ? fine : coarse);
    }
  }
  EXPECT_GT(fine, 100);
  EXPECT_GT(coarse, 100);
}

// Auto states what all have in common to whom it may leave the work.
TEST(BuiltCode, of_auto_is_that_of_others) {
  for (const Kernel* k : kernels()) {
    if (!k->traits().choice) continue;
    for (const Kernel* other : kernels()) {
      if (other->version() < 8 || &other->machine() != &k->machine()) continue;
      EXPECT_TRUE(other->traits().exp == k->traits().exp && other->traits().divide == k->traits().divide) << *other;
    }
  }
}

// V1 in the ways that a build could go wrong, each compiled to PTX by CMake.
struct Mutant {
  const char* name;
  const char* sees;   // part of what is said of it; empty: nothing is
  bool fast = false;  // told that the build is for fast math
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }
class CodeMutants : public testing::TestWithParam<Mutant> {};

TEST_P(CodeMutants, is_seen) {
#ifdef SOFTMAX_CODE_MUTANTS
  const auto all = entries(read(std::string(SOFTMAX_CODE_MUTANTS) + "/code_" + GetParam().name + ".ptx"));
  Traits traits;
  const BuiltCode code = read_code(of_version(all, 1), traits, GetParam().fast);
  ASSERT_EQ(code.entries, 1);
  if (*GetParam().sees == 0) {
    EXPECT_EQ(code.wrong, "");
  } else {
    EXPECT_NE(code.wrong.find(GetParam().sees), std::string::npos) << "'" << code.wrong << "'";
  }
#else
  GTEST_SKIP() << "built without nvcc";
#endif
}

INSTANTIATE_TEST_SUITE_P(V1, CodeMutants,
                         testing::Values(Mutant{"as_it_is", ""}, Mutant{"as_it_is", "does not flush", true},
                                         Mutant{"fast_math", "built for fast math"}, Mutant{"fast_math", "", true},
                                         Mutant{"fast_exp", "not expf's"}, Mutant{"fast_divide", "approximate"},
                                         Mutant{"reciprocal", "not the division that is stated"},
                                         Mutant{"scaled", "contracted"}, Mutant{"scaled_by_itself", ""}),
                         [](const auto& info) {
                           return std::string(info.param.name) + (info.param.fast ? "_told_fast_math" : "");
                         });

}  // namespace
}  // namespace softmax::properties
