// accuracy: how wrong each kernel is, and how much of its bound that is, over the kinds of rows that the laws draw. Other
// people's outputs for the same rows are judged by the same code.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/baselines/cudnn.hpp"
#include "benchmarks/npy.hpp"
#include "benchmarks/options.hpp"
#include "properties/bounds.hpp"
#include "properties/judging.hpp"
#include "reference/softmax.hpp"
#include "softmax_build.hpp"  // generated at build time: git revision

namespace softmax::properties {
namespace {

constexpr const char* kUsage =
    R"(Measures how wrong each kernel is, in units of the last place, of a row's sum, and of its proven bound.

usage: accuracy --out=FILE.json [--device=gpu|cpu] [--inputs=FOLDER | --outputs=FOLDER]
  --inputs=FOLDER   writes the rows there as KIND-COLS.npy and does nothing else
  --outputs=FOLDER  judges FOLDER/NAME/KIND-COLS.npy, what others made of those rows, along with the kernels;
                    FOLDER/context.json has their versions

A row of the file is one kernel, one kind of rows, one width, in fp32: max_ulp and p999_ulp, spacings of floats at the exact
output; sum_error, the largest |sum - 1|, the sum taken exactly; of_bound and of_sum_bound, the largest error over what is
proven; of absorbed rows of_reduction too, that of the sum over what additions, rescales and a division that rounds twice may
do: it says whether a bound is ever approached, and of fast divisions more is documented than any row need show.
Exit status: 0; 1: something failed, is beyond its bound, or a bound is never approached; 2: cannot be obeyed.
)";

struct Sample {
  std::string kind;
  Case c;
  std::vector<float> x;
  std::vector<reference::Row> exact;
  std::string file() const { return kind + "-" + std::to_string(c.cols) + ".npy"; }
};

// Rows that are as bad as can be for a sum. Each holds a 1, in the exps, and behind it only what is lost beside it, a bit less
// than half of its last place: where a thread of that stride, or the lane, warp or element of its vector that a tree adds to
// the first, has one of these and nothing else, each addition on the way of the 1 rounds by all that it can, and down.
float absorbed(std::int64_t r, std::int64_t i, std::int64_t) {
  const std::int64_t stride = std::int64_t{1} << r % 14;
  const bool alone = i % stride == 0 || std::has_single_bit(std::uint64_t(i)) || i == 3;
  return i == 0 ? 0 : alone ? -16.636f : -200;
}
// Each element is a new maximum, by a step that is the row's own: from where exp rounds to 1 up to where nothing underflows yet.
float rising(std::int64_t r, std::int64_t i, std::int64_t cols) {
  return float(i) * std::ldexp(1.25f, 6 - int(std::bit_width(std::uint64_t(cols)) + r % 20));
}

// A thread of the CPU device is a fiber: there a thousandth of what a GPU gets.
std::vector<Sample> samples(bool simulated) {
  const std::vector<std::int64_t> widths =
      simulated ? std::vector<std::int64_t>{33, 1000, 4096} : std::vector<std::int64_t>{33, 1000, 4096, 50257, 131072};
  std::vector<Sample> all;
  const auto add = [&](std::string_view kind, Case c, std::vector<float> x) {
    Sample sample{std::string(kind), c, std::move(x), {}};
    for (std::int64_t r = 0; r < c.rows; ++r) sample.exact.push_back(reference::analyse(row(sample.x, c.cols, r)));
    all.push_back(std::move(sample));
  };
  for (const std::int64_t cols : widths) {
    for (const Kind kind : finite_kinds()) {
      Case c{.kind = kind, .cols = cols, .seed = 2026};
      c.rows = std::clamp<std::int64_t>((simulated ? 1 << 13 : 1 << 18) / cols, 2, 256);
      add(name(kind), c, values(c));
    }
    for (const auto& [kind, x] : {std::pair("absorbed", &absorbed), std::pair("rising", &rising)}) {
      Case c{.rows = 28, .cols = cols};
      std::vector<float> all_of;
      for (std::int64_t i = 0; i < c.rows * cols; ++i) all_of.push_back(x(i / cols, i % cols, cols));
      add(kind, c, std::move(all_of));
    }
  }
  return all;
}

struct Errors {
  std::vector<double> ulps;
  long double sum = 0, of_bound = 0, of_sum_bound = 0, of_reduction = 0;
};
// With the bounds of a kernel, or of nobody.
Errors errors(const Sample& s, const std::vector<float>& y, const Kernel* kernel, const Case& c) {
  Errors found;
  for (std::int64_t r = 0; r < s.c.rows; ++r) {
    const auto x = row(s.x, s.c.cols, r), out = row(y, s.c.cols, r);
    const reference::Row& exact = s.exact[std::size_t(r)];
    const reference::ErrorModel m = kernel ? model(*kernel, c, x) : reference::ErrorModel();
    long double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += out[i];
      found.ulps.push_back(reference::ulp_error(out[i], exact.y[i]));
      if (kernel)
        found.of_bound =
            std::max(found.of_bound, std::fabs(out[i] - exact.y[i]) /
                                         reference::element_bound(m, exact.y[i], exact.below_max(x[i]), exact.spread));
    }
    found.sum = std::max(found.sum, std::fabs(sum - 1));
    if (!kernel) continue;
    const long double off = std::fabs(sum - 1);
    found.of_sum_bound = std::max(found.of_sum_bound, off / reference::row_sum_bound(m, s.c.cols, exact.spread));
    reference::ErrorModel reduction = m;
    reduction.a = 0, reduction.exp = {}, reduction.sum_exp = {};
    reduction.divide = std::min(reduction.divide, reference::kDivideReciprocal);
    found.of_reduction = std::max(found.of_reduction, off / reference::row_sum_bound(reduction, s.c.cols, 0));
  }
  return found;
}

nlohmann::ordered_json line(const std::string& impl, int block, const Sample& s, Errors e, bool bounded) {
  const auto at = e.ulps.begin() + std::ptrdiff_t(double(e.ulps.size() - 1) * 0.999);
  std::nth_element(e.ulps.begin(), at, e.ulps.end());
  nlohmann::ordered_json one = {{"impl", impl},     {"block", block},
                                {"kind", s.kind},   {"rows", s.c.rows},
                                {"cols", s.c.cols}, {"max_ulp", *std::max_element(at, e.ulps.end())},
                                {"p999_ulp", *at},  {"sum_error", double(e.sum)}};
  if (bounded) one["of_bound"] = double(e.of_bound), one["of_sum_bound"] = double(e.of_sum_bound);
  if (bounded && s.kind == "absorbed") one["of_reduction"] = double(e.of_reduction);
  return one;
}

// Bounds hold, and none is so loose that no row comes near what it gives to the reduction.
std::string verdict(const nlohmann::ordered_json& lines) {
  constexpr double kNear = 0.3;
  std::map<std::string, double> nearest;
  for (const auto& one : lines) {
    if (!one.contains("of_bound")) continue;
    if (!(one["of_bound"] <= 1 && one["of_sum_bound"] <= 1)) return "beyond its bound: " + one.dump();
    double& of = nearest[one["impl"]];
    of = std::max(of, one.value("of_reduction", 0.0));
  }
  for (const auto& [impl, of] : nearest)
    if (!(of >= kNear))
      return impl + ": no row comes near the bound of its reduction, the nearest " + std::to_string(of);
  return {};
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", std::gmtime(&time));
  return text;
}

void write_npy(const std::string& path, const Sample& s) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(s.c.rows) + ", " +
                     std::to_string(s.c.cols) + "), }";
  head.resize((10 + head.size() + 1 + 63) / 64 * 64 - 11, ' ');
  head += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY\x01" << '\0' << char(head.size() % 256) << char(head.size() / 256) << head;
  file.write(reinterpret_cast<const char*>(s.x.data()), std::streamsize(s.x.size() * sizeof(float)));
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

void add_others(const std::string& outputs, const std::vector<Sample>& all, nlohmann::ordered_json& report) {
  namespace fs = std::filesystem;
  if (std::ifstream file(outputs + "/context.json"); file)
    report["context"].update(nlohmann::ordered_json::parse(file));
  std::vector<fs::path> folders;
  for (const auto& one : fs::directory_iterator(outputs))
    if (one.is_directory()) folders.push_back(one.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders)
    for (const Sample& s : all) {
      const std::string file = (folder / s.file()).string();
      if (!fs::exists(file)) continue;
      const bench::Matrix y = bench::read_npy(file);
      if (y.rows != s.c.rows || y.cols != s.c.cols) throw std::runtime_error(file + ": of another shape");
      report["accuracy"].push_back(line(folder.filename().string(), 0, s, errors(s, y.data, nullptr, s.c), false));
    }
}

int run_program(const std::vector<std::string>& arguments) {
  std::string out, device, inputs, outputs;
  for (const std::string& flag : arguments) {
    const auto value = [&](const char* name, std::string& to) {
      const std::string start = std::string("--") + name + "=";
      return flag.starts_with(start) && !(to = flag.substr(start.size())).empty();
    };
    if (flag == "--help" || flag == "-h") return std::cout << kUsage, 0;
    if (!value("out", out) && !value("device", device) && !value("inputs", inputs) && !value("outputs", outputs))
      return std::cerr << "accuracy: " << flag << ": unknown; see --help\n", 2;
  }
  Machine* machine = nullptr;
  for (Machine* one : machines())
    if (one->unavailable().empty() && (device.empty() ? !machine || machine->simulated() : one->id() == device))
      machine = one;
  if (!machine) return std::cerr << "accuracy: no such device here\n", 2;
  const std::vector<Sample> all = samples(machine->simulated());
  if (!inputs.empty()) {
    std::filesystem::create_directories(inputs);
    for (const Sample& s : all) write_npy(inputs + "/" + s.file(), s);
    return 0;
  }
  if (out.empty()) return std::cerr << "accuracy: --out=FILE.json is missing\n", 2;
  bench::refuse_unwritable(out);

  nlohmann::ordered_json report = {{"context",
                                    {{"schema", "accuracy 1"},
                                     {"date", now()},
                                     {"device", machine->name()},
                                     {"simulated", machine->simulated() ? "true" : "false"},
                                     {"math", machine->math()},
                                     {"git_sha", SOFTMAX_GIT_SHA},
                                     {"git_dirty", SOFTMAX_GIT_DIRTY},
                                     {"dtype", "fp32"}}},
                                   {"accuracy", nlohmann::ordered_json::array()}};
  auto& lines = report["accuracy"];
  std::vector<const Kernel*> judged;
  for (const Kernel* k : kernels())
    if (&k->machine() == machine) judged.push_back(k);
  if (!machine->simulated())
    if (const bench::Cudnn& peer = bench::cudnn(*machine); peer.kernel) judged.push_back(peer.kernel);
  for (const Kernel* k : judged)
    for (const Sample& s : all) {
      Case c = s.c;
      c.block = k->traits().blocks[k->traits().blocks.size() / 2];
      if (!k->unsupported(problem_of(c)).empty()) continue;
      const bool ours = k->version() != 0 || k->traits().choice;  // nobody proved anything of cuDNN's
      lines.push_back(line(k->label(), c.block, s, errors(s, run(*k, c, s.x).y, ours ? k : nullptr, c), ours));
    }
  if (!outputs.empty()) add_others(outputs, all, report);
  std::ofstream file(out);
  file << report.dump(1) << "\n";
  if (!file) throw std::runtime_error(out + ": cannot be written");
  const std::string wrong = verdict(lines);
  if (!wrong.empty()) return std::cerr << "accuracy: " << wrong << "\n", 1;
  return 0;
}

}  // namespace
}  // namespace softmax::properties

int main(int argc, char** argv) {
  try {
    return softmax::properties::run_program({argv + std::min(argc, 1), argv + argc});
  } catch (const softmax::bench::UsageError& e) {
    std::fprintf(stderr, "accuracy: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "accuracy: %s\n", e.what());
    return 1;
  }
}
