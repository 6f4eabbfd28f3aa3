// Gappa proves the constants of reference/error.hpp, for one step of a kernel's arithmetic each: reference/proofs/. The
// scripts get them from here, so a constant that is changed must be proven again.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "properties/harness.hpp"
#include "reference/certified.hpp"
#include "reference/error.hpp"

namespace softmax::reference {
namespace {

namespace fs = std::filesystem;

using properties::read;

// As the kernels have it.
double constant(const std::string& name) {
  const std::string text = read(fs::path(SOFTMAX_SOURCE_DIR) / "kernels/collective/online.hpp");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(text, found, std::regex("\\b" + name + " = ([0-9.e-]+f)")));
  return std::strtof(found.str(1).c_str(), nullptr);
}

// Relative: n roundings, each a factor 1 + delta.
double roundings(double n) { return n * kUnit / (1 - n * kUnit); }

struct Proof {
  std::string script;
  std::map<std::string, double> bounds;  // what is proven
  std::map<std::string, double> given = {};
};
void PrintTo(const Proof& p, std::ostream* out) { *out << p.script; }
std::vector<Proof> proofs() {
  const double u = kUnit;
  return {
      {"difference", {{"a", ErrorModel{}.a * u}}},
      {"scaled",
       {{"kappa", kFastExp.kappa * u}, {"kappa_T", (kFastExp.kappa + kQuotientScale) * u}},
       {{"log2e", constant("kLog2E")}}},
      {"folded", {{"unit", u}, {"rest", (kExp2Folded.kappa - 1) * u}}, {{"log2e", constant("kLog2E")}}},
      {"fine",
       {{"left", kFineLeft}},
       {{"log2e", constant("kLog2E")}, {"log2e_rest", constant("kLog2ERest")}, {"ln2", constant("kLn2")}}},
      {"scaled_row", {{"unit", u}, {"both", roundings(kScaledRow)}}},
      {"documented", {{"documented", kExpf.eps0 * u}}},
      {"documented", {{"documented", kFastExp.eps0 * u}}},
      {"documented", {{"documented", kExp2Folded.eps0 * u}}},
      {"documented", {{"documented", kDivideFast * u}}},
      {"certified", {{"printed", kPrinted}}},
      {"sum", {{"unit", u}, {"two", roundings(2)}, {"double", kDoubleRounding * u}}},
      {"divide",
       {{"ieee", kDivideIeee * u},
        {"reciprocal", roundings(kDivideReciprocal)},
        {"fast", roundings(kDivideFastReciprocal)}}},
      {"underflow", {{"gradual", kEtaGradual}, {"flushed", kEtaFlushed}}},
      {"output",
       {{"fp16", kFp16Output.relative * u},
        {"fp16_absolute", kFp16Output.absolute},
        {"bf16", kBf16Output.relative * u},
        {"bf16_absolute", kBf16Output.absolute}}},
  };
}

// Gappa's complaint; empty if it proves all.
std::string unproven(const Proof& proof, const std::map<std::string, double>& bounds) {
  std::string text = read(fs::path(SOFTMAX_SOURCE_DIR) / "reference/proofs" / (proof.script + ".g"));
  for (const auto& constants : {bounds, proof.given})
    for (const auto& [name, value] : constants) {
      char exactly[64];
      std::snprintf(exactly, sizeof exactly, "%a", value);
      const std::regex token("@" + name + "@");
      EXPECT_TRUE(std::regex_search(text, token)) << proof.script << " has no " << name;
      text = std::regex_replace(text, token, exactly);
    }
  const fs::path file = fs::temp_directory_path() / ("softmax_" + std::to_string(::getpid()) + ".g");
  std::ofstream(file) << text;
  std::FILE* const gappa = popen(("gappa " + file.string() + " 2>&1").c_str(), "r");
  std::string said;
  for (int c; gappa && (c = std::fgetc(gappa)) != EOF;) said += char(c);
  const int status = gappa ? pclose(gappa) : -1;
  fs::remove(file);
  return status == 0 ? "" : "gappa: " + said;
}
bool no_gappa() { return std::system("gappa --version >/dev/null 2>&1") != 0; }

class Gappa : public testing::TestWithParam<Proof> {};

TEST_P(Gappa, proves_the_constants) {
  if (no_gappa()) GTEST_SKIP() << "no gappa here (Debian: gappa)";
  EXPECT_EQ(unproven(GetParam(), GetParam().bounds), "");
}
// No constant is larger than it must be, and no script proves just anything.
TEST_P(Gappa, proves_none_that_is_a_hundredth_less) {
  if (no_gappa()) GTEST_SKIP() << "no gappa here (Debian: gappa)";
  for (const auto& [name, value] : GetParam().bounds) {
    auto less = GetParam().bounds;
    less[name] = 0.99 * value;
    EXPECT_NE(unproven(GetParam(), less), "") << name;
  }
}
INSTANTIATE_TEST_SUITE_P(Steps, Gappa, testing::ValuesIn(proofs()),
                         [](const auto& info) { return std::to_string(info.index) + "_" + info.param.script; });

TEST(Proofs, every_script_is_run) {
  std::set<std::string> run, there;
  for (const Proof& p : proofs()) run.insert(p.script);
  for (const auto& file : fs::directory_iterator(fs::path(SOFTMAX_SOURCE_DIR) / "reference/proofs"))
    there.insert(file.path().stem().string());
  EXPECT_EQ(run, there);
}

// What is left over of the exp of 32-bit outputs: its constant covers that at any distance that matters, and not twice.
TEST(Proofs, what_is_given_back_leaves_next_to_nothing) {
  const double most = (kFastExp.kappa + kQuotientScale) * kUnit, left = kFineLeft * std::log(2),
               kappa = left + 110 * most * most / 2 + 4 * kUnit * most;
  EXPECT_LE(kappa, kFineExp.kappa * kUnit);
  EXPECT_GT(2 * kappa, kFineExp.kappa * kUnit);
  EXPECT_EQ(kFineExp.eps0, kFastExp.eps0 + 1);
}

// Lemma 3 of PROOFS.md in numbers: its sigma, and the 2^40 terms with d >= 110 that it leaves out, are what the constant
// covers, and not a third of it.
TEST(Proofs, the_second_order_is_that_of_lemma_3) {
  constexpr long double kColumns = 0x1p40, kMost = 4.3L;
  const double a = ErrorModel{}.a + kScaledRow;
  EXPECT_LE(ErrorModel{}.a + kFastExp.kappa + kQuotientScale, kMost);
  EXPECT_LE(a + std::max({kFastExp.kappa, kExp2Folded.kappa, kExpf.kappa}), kMost);
  const long double g = kMost * kUnit, spread = std::log(kColumns + std::exp(1.0L));
  const long double sigma = std::exp(110 * g) * g * g / 2 * spread * spread, left_out = kColumns * std::exp(-110.0L);
  EXPECT_LE(sigma + left_out, kSecondOrder * (long double)kUnit);
  EXPECT_GT(3 * sigma, kSecondOrder * (long double)kUnit);
  // What is documented of expf, 2 ulp, holds at any distance.
  EXPECT_EQ(kExpf.kappa, 0);
}

}  // namespace
}  // namespace softmax::reference
