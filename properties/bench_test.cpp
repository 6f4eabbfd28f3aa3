// The parts of the benchmark program that need no kernel and no clock: .npy files, flags, the tables.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/npy.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/reporter.hpp"
#include "properties/harness.hpp"

namespace softmax::bench {
namespace {

using properties::message_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class BenchNpy : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "bench_npy_" + std::to_string(::getpid()) + ".npy";
  ~BenchNpy() override { std::filesystem::remove(path_); }

  // What reading a file with these parts gives as an error, without the file's name, which must come first.
  std::string read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    const std::string what = message_of([&] { matrix_ = read_npy(path_); });
    if (what.empty()) return what;
    EXPECT_TRUE(what.starts_with(path_ + ": ")) << what;
    return what.substr(path_.size() + 2);
  }
  static std::string file(const std::string& header, std::size_t data_bytes, char major = 1) {
    std::string head = std::string("\x93NUMPY") + major + '\0' + char(header.size() & 255) + char(header.size() >> 8);
    if (major == 2) head += std::string(2, '\0');
    return head + header + std::string(data_bytes, '\0');
  }
  static std::string dict(const std::string& shape, const std::string& type = "<f4",
                          const std::string& fortran = "False") {
    return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
  }
  Matrix matrix_;
};

TEST_F(BenchNpy, ReadsBothFormats) {
  const float values[] = {1, -2, 3.5f, 4, INFINITY, -0.0f};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  for (const char major : {1, 2}) {
    ASSERT_EQ(read(file(dict("(2, 3)"), 0, major) + data), "");
    EXPECT_EQ(matrix_.rows, 2);
    EXPECT_EQ(matrix_.cols, 3);
    EXPECT_THAT(matrix_.data, testing::ElementsAreArray(values));
  }
  EXPECT_EQ(read(file("{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}", 0) + data), "");
}

TEST_F(BenchNpy, SaysWhatIsWrong) {
  EXPECT_THAT(message_of([] { read_npy("no/such/file.npy"); }),
              AllOf(HasSubstr("no/such/file.npy"), HasSubstr("No such file")));
  EXPECT_THAT(message_of([] { read_npy(testing::TempDir()); }), HasSubstr("directory"));
  EXPECT_THAT(read(""), HasSubstr("not a .npy"));
  EXPECT_THAT(read("PK\3\4 this is an npz archive"), HasSubstr("not a .npy"));
  EXPECT_THAT(read("\x93NUMPY\1"), HasSubstr("not a .npy"));
  EXPECT_THAT(read(file(dict("(2, 3)"), 24, 3)), HasSubstr("format 3.0"));
  EXPECT_THAT(read(file(dict("(2, 3)"), 0).substr(0, 40)), HasSubstr("truncated header"));
  EXPECT_THAT(read(file(dict("(2, 3)"), 0, 2).substr(0, 11)), HasSubstr("truncated header"));
  EXPECT_THAT(read(file(std::string(5000, ' '), 0)), HasSubstr("at most 4096"));
  EXPECT_THAT(read(file("{}", 0)), HasSubstr("without a valid descr"));
  EXPECT_THAT(read(file(dict("(2, 3)", "<f8"), 48)), AllOf(HasSubstr("'<f8'"), HasSubstr("'<f4'")));
  EXPECT_THAT(read(file(dict("(2, 3)", ">f4"), 24)), HasSubstr("'>f4'"));
  EXPECT_THAT(read(file(dict("(2, 3)", "<f4", "True"), 24)), HasSubstr("Fortran order"));
  EXPECT_THAT(read(file(dict("(2, 3)", "<f4", "Maybe"), 24)), HasSubstr("without a valid fortran_order"));
  for (const char* shape : {"(6,)", "()", "(1, 2, 3)", "(-2, 3)", "(2 3)"})
    EXPECT_THAT(read(file(dict(shape), 24)), HasSubstr("two dimensions")) << shape;
  EXPECT_THAT(read(file(dict("(2, 0)"), 0)), HasSubstr("no element"));
  EXPECT_THAT(read(file(dict("(0, 3)"), 0)), HasSubstr("no element"));
  EXPECT_THAT(read(file(dict("(2, 3)"), 23)), AllOf(HasSubstr("needs 24 bytes"), HasSubstr("has 23")));
  EXPECT_THAT(read(file(dict("(2, 3)"), 25)), HasSubstr("has 25"));
  EXPECT_THAT(read(file(dict("(9223372036854775807, 3)"), 24)), HasSubstr("64 bits"));
  EXPECT_THAT(read(file(dict("(4611686018427387904, 1)"), 24)), HasSubstr("64 bits"));
  EXPECT_THAT(read(file(dict("(99999999999999999999, 1)"), 24)), HasSubstr("64 bits"));
  EXPECT_THAT(read(file(dict("(1099511627776, 1024)"), 24)), HasSubstr("needs 4503599627370496 bytes"));
}

TEST(BenchOptions, BothSpellingsAndTheRestIsKept) {
  std::vector<std::string> arguments = {"--device=cpu", "--benchmark_filter=V6", "--suite", "shapes", "--other"};
  const Options options = take_options(arguments);
  EXPECT_EQ(options.device, "cpu");
  EXPECT_EQ(options.suite, Suite::shapes);
  EXPECT_THAT(arguments, ElementsAre("--benchmark_filter=V6", "--other"));
}

TEST(BenchOptions, SayWhatIsPossible) {
  const auto refused = [](std::vector<std::string> arguments) { return message_of([&] { take_options(arguments); }); };
  EXPECT_THAT(refused({"--device=tpu"}), AllOf(HasSubstr("tpu"), HasSubstr("gpu and cpu")));
  EXPECT_THAT(refused({"--suite", "all"}),
              AllOf(HasSubstr("all"), HasSubstr("ladder, shapes, atlas, few-rows, goals and studies")));
  EXPECT_THAT(refused({"--input"}), HasSubstr("--input needs a value"));
  EXPECT_THAT(refused({"--device", "--suite=ladder"}), HasSubstr("--device needs a value"));
  EXPECT_THAT(refused({"--input=x.npy", "--suite=shapes"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refused({"--sweep=C=3", "--suite=shapes"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refused({"--explain", "--device=gpu"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refused({"--profile", "--benchmark_repetitions=3"}),
              HasSubstr("--profile and --benchmark_repetitions exclude each other"));
  EXPECT_EQ(refused({"--profile", "--benchmark_filter=V6"}), "");
}

TEST(BenchOptions, TakesAllOfOurs) {
  std::vector<std::string> arguments = {"--metrics", "--sweep", "C=1:3,block=32", "--profile", "--input=x.npy"};
  const Options options = take_options(arguments);
  EXPECT_TRUE(options.metrics && options.profile && !options.explain && !options.help);
  EXPECT_EQ(options.sweep, "C=1:3,block=32");
  EXPECT_EQ(options.input, "x.npy");
  EXPECT_THAT(arguments, testing::IsEmpty());
}

TEST(BenchOptions, ExplainChoosesTheCpuDevice) {
  std::vector<std::string> arguments = {"--explain"};
  const Options options = take_options(arguments);
  EXPECT_TRUE(options.explain);
  EXPECT_EQ(options.device, "cpu");
}

TEST(BenchOptions, HelpIsAScreen) {
  std::istringstream help(kHelp);
  for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(BenchOptions, KeysOfTheContext) {
  EXPECT_THAT(context_keys({"--benchmark_context=a=1,b=2", "--other=c=3", "--benchmark_context=d=x=y"}),
              ElementsAre("a", "b", "d"));
  EXPECT_THAT(context_keys({}), testing::IsEmpty());
}

TEST(BenchTable, FourDigits) {
  EXPECT_EQ(four_digits(0.095123), "0.09512");
  EXPECT_EQ(four_digits(28.318), "28.32");
  EXPECT_EQ(four_digits(12345.6), "12346");
  EXPECT_EQ(four_digits(0), "0.000");
  EXPECT_EQ(four_digits(NAN), "-");
}

}  // namespace
}  // namespace softmax::bench
