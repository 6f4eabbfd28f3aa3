// What a report concludes from what was found.

#include "properties/judge/judge.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace softmax::judge {
namespace {

TEST(JudgeFindings, are_the_same_by_kind_and_places) {
  const std::string one =
      "race: thread 0 of block 0 loads word 0 of `s` at my.cu:21, and thread 1 stored to it at my.cu:27";
  const std::string mirrored =
      "race: thread 9 of block 2 stores to word 3 of `s` at my.cu:27, and thread 1 loaded it at my.cu:21";
  EXPECT_EQ(finding_key(one), finding_key(mirrored));
  EXPECT_NE(finding_key(one), finding_key("race: thread 0 loads word 0 of `s` at my.cu:22, and stored at my.cu:27"));
  EXPECT_NE(finding_key(one), finding_key("uninitialised: thread 0 loads word 0 of `s` at my.cu:21 my.cu:27"));
  EXPECT_EQ(finding_key("never written: row 0, column 3 of the output"),
            finding_key("never written: row 12, column 0 of the output"));
}

TEST(JudgeWidths, are_described_by_a_divisor_and_a_limit) {
  const std::vector<std::int64_t> all = {1, 2, 3, 4, 5, 8, 12, 16, 31, 32, 33, 64, 96, 100, 128, 1000, 1024, 4096};
  const auto describe = [&](auto right) {
    std::vector<std::int64_t> good, bad;
    for (const std::int64_t c : all) (right(c) ? good : bad).push_back(c);
    return describe_widths(good, bad);
  };
  EXPECT_EQ(describe([](std::int64_t) { return true; }), "");
  EXPECT_EQ(describe([](std::int64_t) { return false; }), "");
  EXPECT_EQ(describe([](std::int64_t c) { return c % 4 == 0; }), "C % 4 == 0");
  EXPECT_EQ(describe([](std::int64_t c) { return c <= 1024; }), "C <= 1024");
  EXPECT_EQ(describe([](std::int64_t c) { return c % 32 == 0 && c <= 1024; }), "C % 32 == 0 && C <= 1024");
  EXPECT_EQ(describe([](std::int64_t c) { return c == 1024 || c == 1; }), "") << "two widths are no rule";
}

Report fine(const std::string& machine) {
  Report r;
  r.machine = machine;
  r.rulings = {{"one", "", 5, 0, "", {}, false}, {"two", "", 5, 0, "", {}, false}};
  return r;
}

TEST(JudgeVerdict, is_right_only_if_a_machine_judged_and_found_nothing) {
  EXPECT_EQ(verdict({fine("CPU device")}), "RIGHT - every law holds on the CPU device");
  EXPECT_EQ(verdict({fine("CPU device"), fine("GPU")}), "RIGHT - every law holds on the CPU device and the GPU");

  Report absent;
  absent.not_judged = "no usable GPU";
  EXPECT_EQ(verdict({fine("CPU device"), absent}), "RIGHT - every law holds on the CPU device");
  EXPECT_EQ(verdict({absent}), "NOT JUDGED - no usable GPU");
  EXPECT_EQ(verdict({}), "NOT JUDGED - ");

  Report broken = fine("GPU");
  broken.rulings[1].why = "row 0: wrong";
  EXPECT_EQ(verdict({fine("CPU device"), broken}), "WRONG - 1 of 2 laws broken on the CPU device and the GPU");
  broken.findings.resize(2);
  EXPECT_EQ(verdict({broken}), "WRONG - 1 of 2 laws broken, 2 findings on the GPU");

  Report varies = fine("CPU device");
  varies.rulings[1] = {"repeats", "", 0, 0, "other bits", {}, false, properties::Law::Asks::order};
  EXPECT_EQ(verdict({varies}),
            "RIGHT - every answer within its bound on the CPU device, but the last bits vary from run to run");
  varies.findings.resize(1);
  EXPECT_EQ(verdict({varies}), "WRONG - 1 of 2 laws broken, 1 finding on the CPU device");

  Report some = fine("CPU device");
  some.limits = "takes C % 4 == 0";
  EXPECT_EQ(verdict({some}), "RIGHT - for some shapes only (takes C % 4 == 0): every law holds on the CPU device");

  Report unasked = fine("CPU device");
  unasked.rulings[1].held = 0;
  EXPECT_EQ(verdict({unasked}), "NOT JUDGED - no case for two on the CPU device");
}

TEST(JudgeJson, says_what_the_report_says) {
  Report r = fine("CPU device");
  r.rulings[0].why = "row 0: \"wrong\"";
  r.findings.push_back({"key", "race: \xff", 3, {}});
  const auto json = nlohmann::json::parse(to_json("my.cu", verdict({r}), {r}));
  EXPECT_EQ(json["verdict"], "WRONG");
  EXPECT_EQ(json["machines"][0]["laws"][0]["why"], "row 0: \"wrong\"");
  EXPECT_EQ(json["machines"][0]["laws"][1]["broken"], false);
  EXPECT_EQ(json["machines"][0]["findings"][0]["launches"], 3);
}

}  // namespace
}  // namespace softmax::judge
