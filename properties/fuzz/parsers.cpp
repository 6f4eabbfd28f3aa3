// Whatever is in a file or on a command line: each parser takes it, or refuses it by the exception that it documents. The
// first byte chooses the parser, or SOFTMAX_FUZZ by name. Built by clang with -fsanitize=fuzzer this is a libFuzzer target;
// else main.cpp runs files. runs.csv says how much of each was tried.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "benchmarks/npy.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/suites.hpp"
#include "benchmarks/sweep.hpp"
#include "kernels/library/table.hpp"
#include "properties/case.hpp"
#include "properties/vectors.hpp"

namespace {

using namespace softmax;
using namespace softmax::bench;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// What it throws must be a T that says something.
template <class T>
void refuses_with(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const T& e) {
    require(*e.what() != 0, "refused without a word");
  }
}

// The text as a file, for those who want a path.
class File {
 public:
  explicit File(const std::string& text) : fd_(memfd_create("fuzz", 0)) {
    require(fd_ >= 0 && write(fd_, text.data(), text.size()) == ssize_t(text.size()), "no memory for a file");
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void npy(const std::string& text) {
  refuses_with<std::runtime_error>([&] {
    const Matrix m = read_npy(File(text).path());
    require(m.rows >= 0 && m.cols >= 0 && std::int64_t(m.data.size()) == m.rows * m.cols, "npy: shape and data differ");
    require(m.data.size() * sizeof(float) <= text.size(), "npy: more data than the file has");
  });
}
void sweep(const std::string& text) {
  refuses_with<UsageError>([&] {
    const Sweep s = parse_sweep(text, {.simulated = text.size() % 2 == 0, .shape = {32, 1000}, .blocks = {32, 1024}});
    require(std::set<Point>(s.points.begin(), s.points.end()).size() == s.points.size(), "sweep: a point twice");
    for (const Point& p : s.points) require(p.shape.rows > 0 && p.shape.cols > 0, "sweep: a shape of nothing");
  });
}
void table(const std::string& text) {
  refuses_with<std::runtime_error>([&] {
    const Table one = parse_table(text, "fuzz");
    require(parse_table(to_text(one), "again") == one, "table: another one when written and read again");
  });
}
void points(const std::string& text) {
  refuses_with<std::runtime_error>([&] {
    for (const Point& p : read_points(File(text).path()))
      require(p.shape.rows > 0 && p.shape.cols > 0, "points: a shape of nothing");
  });
}
// One argument a line.
void options(const std::string& text) {
  std::vector<std::string> arguments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);
  context_keys(arguments);
  flag_value(arguments, "--benchmark_filter");
  refuses_with<UsageError>([&] { take_options(arguments); });
}
// The standard library's expressions recurse.
void filter(const std::string& text) {
  if (text.size() <= 60)
    refuses_with<UsageError>([&] { name_filter(text)("softmax/V10/fp32/ieee/cold/N:8192/C:50257"); });
}

void case_line(const std::string& text) {
  refuses_with<std::invalid_argument>([&] {
    const auto line = [](const properties::Case& c) {
      std::ostringstream out;
      out << c;
      return out.str();
    };
    const properties::Case c = properties::parse_case(text);
    require(c.rows > 0 && c.cols > 0, "case: a shape of nothing");
    require(line(properties::parse_case(line(c))) == line(c), "case: another one when written and read again");
  });
}
void vectors(const std::string& text) {
  refuses_with<std::runtime_error>([&] {
    for (const properties::Vector& v : properties::load_vectors(File(text).path()))
      require(std::int64_t(v.input.size()) == v.rows * v.cols && v.expected.size() == v.input.size(),
              "vectors: shape and data differ");
  });
}

struct Parser {
  std::string_view name;
  void (*parse)(const std::string&);
};
constexpr Parser kParsers[] = {{"npy", npy},         {"sweep", sweep},   {"table", table},    {"points", points},
                               {"options", options}, {"filter", filter}, {"case", case_line}, {"vectors", vectors}};

// Null: the first byte says which.
const Parser* only() {
  const char* const name = std::getenv("SOFTMAX_FUZZ");
  if (!name) return nullptr;
  for (const Parser& one : kParsers)
    if (one.name == name) return &one;
  std::fprintf(stderr, "fuzz: SOFTMAX_FUZZ=%s: no such parser\n", name);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Parser* const chosen = only();
  if (size == 0) return 0;
  const Parser& parser = chosen ? *chosen : kParsers[data[0] % std::size(kParsers)];
  parser.parse(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
