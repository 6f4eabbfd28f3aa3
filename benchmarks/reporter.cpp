#include "benchmarks/reporter.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "benchmarks/cases.hpp"
#include "benchmarks/trace.hpp"

namespace softmax::bench {
namespace {

// A counter, or NaN.
double counter(const benchmark::BenchmarkReporter::Run& run, const char* key) {
  const auto found = run.counters.find(key);
  return found == run.counters.end() ? NAN : double(found->second);
}

std::string cell(double value, const char* format = "%.1f") {
  if (!std::isfinite(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

// "8192" of "N:8192/C:50257", or "-".
std::string argument(const benchmark::BenchmarkReporter::Run& run, const std::string& key) {
  for (const std::string& part : split(run.run_name.args, '/'))
    if (part.starts_with(key + ":")) return part.substr(key.size() + 1);
  return "-";
}

// A label is "what it is" or "what it is @ FILE"; the file belongs to the heading.
constexpr const char* kAt = " @ ";
std::string file_of(const std::string& label) {
  const std::size_t at = label.rfind(kAt);
  return at == std::string::npos ? "" : label.substr(at);
}

bool simulated(const benchmark::BenchmarkReporter::Run& run) {
  const auto parts = split(run.run_name.function_name, '/');
  return parts.size() > 4 && parts[4] == "sim";
}

std::string count(double value) {
  return cell(value, value >= 1000 || value == std::round(value) ? "%.0f" : value >= 100 ? "%.1f" : "%.2f");
}

constexpr const char* kMeasured = "%10s %10s %8s %6s %6s %8s %8s  %-8s ";
constexpr const char* kStudied = "%-13s %-28s %8s %8s %6s %8s %8s  %-8s ";
constexpr const char* kCounted = "%9s %8s %9s %8s %9s %6s %9s %8s %8s %8s %9s  ";

// The counters of a simulated run.
std::string counted(const benchmark::BenchmarkReporter::Run& run) {
  const auto of = [&](std::int64_t Counters::*value) { return counter(run, counter_key(value).c_str()); };
  using C = Counters;
  char line[160];
  std::snprintf(line, sizeof line, kCounted, count(of(&C::global_load_requests)).c_str(),
                cell(counter(run, "ld_sectors/request")).c_str(), count(of(&C::global_store_requests)).c_str(),
                cell(counter(run, "st_sectors/request")).c_str(),
                cell(counter(run, "bytes_transferred"), "%.0f").c_str(), cell(counter(run, "x_min"), "%.2f").c_str(),
                count(of(&C::shared_load_conflicts) + of(&C::shared_store_conflicts)).c_str(),
                count(of(&C::barriers)).c_str(), count(of(&C::shuffles)).c_str(), cell(counter(run, "max_ulp")).c_str(),
                four_digits(counter(run, "us/token")).c_str());
  return line;
}

std::string spread(const benchmark::BenchmarkReporter::Run& run) {
  return cell(50 * (counter(run, "us_p75") - counter(run, "us_p25")) / counter(run, "us"), "+-%.1f%%");
}

// Of repetitions the median's: of most of them.
std::string flags(const benchmark::BenchmarkReporter::Run& run) {
  std::string all;
  for (const char* flag : {"suspect", "throttled", "noisy"})
    if (counter(run, flag) > 0) all += std::string(flag) + " ";
  return all + (all.empty() ? "" : " ");
}

bool is_study(const benchmark::BenchmarkReporter::Run& run) {
  return !run.run_name.function_name.starts_with("softmax/");
}

// "width 4 unroll 8 block 256"
std::string arguments(const benchmark::BenchmarkReporter::Run& run) {
  std::string all = run.run_name.args;
  std::ranges::replace(all, '/', ' ');
  std::ranges::replace(all, ':', ' ');
  return all;
}

std::string studied(const benchmark::BenchmarkReporter::Run& run, const std::string& variant) {
  char line[160];
  std::snprintf(line, sizeof line, kStudied, variant.c_str(), arguments(run).c_str(),
                four_digits(counter(run, "us")).c_str(), four_digits(counter(run, "GB/s")).c_str(),
                cell(counter(run, "%copy")).c_str(), four_digits(counter(run, "ns/op")).c_str(),
                cell(counter(run, "max_ulp")).c_str(), spread(run).c_str());
  return line + flags(run);
}

}  // namespace

std::string four_digits(double value) {
  if (!std::isfinite(value)) return "-";
  const int magnitude = value == 0 ? 0 : int(std::floor(std::log10(std::fabs(value))));
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", std::clamp(3 - magnitude, 0, 12), value);
  return text;
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    const bool failed = !error_of(run).empty();
    // Of repetitions only the median is a line of its own; the others are in the JSON file. One alone has no median.
    const bool alone = run.repetitions <= 1 || std::ranges::count(runs, "", error_of<Run>) == 1;
    const bool shown = run.run_type == Run::RT_Aggregate ? run.aggregate_name == "median" : alone || failed;
    if (!shown) continue;
    heading(run);
    row(run);
  }
  GetOutputStream().flush();
}

void TableReporter::heading(const Run& run) {
  auto parts = split(run.run_name.function_name, '/');  // softmax/V6/fp32/ieee/cold
  parts.resize(std::max<std::size_t>(parts.size(), 5));
  std::string now = is_study(run) ? parts[0] + ", " : argument(run, "N") + " x " + argument(run, "C") + " ";
  for (auto layout = parts.begin() + 5; layout != parts.end(); ++layout)  // at:1.2
    now += layout->substr(0, layout->find(':')) + " " + layout->substr(layout->find(':') + 1) + " ";
  now += parts[2] + ", " + parts[3] + ", " + parts[4] + ", " + machine_ + file_of(run.report_label);
  if (now == heading_) return;
  char titles[160];
  std::string line;
  if (is_study(run)) {
    std::snprintf(titles, sizeof titles, kStudied, "variant", "", "us", "GB/s", "%copy", "ns/op", "max ulp", "spread");
  } else if (simulated(run)) {
    std::snprintf(titles, sizeof titles, "%-15s %18s %18s %16s %9s %26s %9s\n", "  a token:", "global loads",
                  "global stores", "bytes moved", "shared", "", "simulator");
    line = titles;
    std::snprintf(titles, sizeof titles, kCounted, "requests", "sect/req", "requests", "sect/req", "bytes", "x min",
                  "conflicts", "barriers", "shuffles", "max ulp", "us/token");
  } else {
    std::snprintf(titles, sizeof titles, kMeasured, "us", "us/token", "GB/s", "%copy", "%peak", "x V1", "max ulp",
                  "spread");
  }
  line += std::string(is_study(run) ? "  " : "  version block ") + titles + "idea\n";
  GetOutputStream() << (heading_.empty() ? "" : "\n") << now << "\n" << line;
  heading_ = now;
  last_version_.clear();
}

void TableReporter::row(const Run& run) {
  const auto parts = split(run.run_name.function_name, '/');
  const std::string version = parts.size() > 1 ? parts[1] : run.benchmark_name(), block = argument(run, "block");
  char line[160];
  std::snprintf(line, sizeof line, is_study(run) ? "  " : "  %-7s %5s ", version.c_str(), block.c_str());
  GetOutputStream() << line;
  if (const std::string error = error_of(run); !error.empty()) {
    GetOutputStream() << (is_study(run) ? version + " " + arguments(run) + " " : "") << "ERROR: " << error << "\n";
    return;
  }
  const std::string idea = run.report_label.substr(0, run.report_label.size() - file_of(run.report_label).size());
  std::string shown = run.counters.count("profiled") ? "profiled  "
                      : is_study(run)                ? studied(run, version)
                      : simulated(run)               ? counted(run)
                                                     : measured(run, version, block);
  if (version != last_version_) shown += idea;
  shown.erase(shown.find_last_not_of(' ') + 1);
  GetOutputStream() << shown << "\n";
  last_version_ = version;
}

std::string TableReporter::measured(const Run& run, const std::string& version, const std::string& block) {
  const double us = counter(run, "us");
  if (version == "V1" && block == "32") v1_[heading_] = us;
  const auto v1 = v1_.find(heading_);
  const std::string times = v1 == v1_.end() || version == "copy" ? "-" : cell(v1->second / us, "%.2f");
  char line[160];
  std::snprintf(line, sizeof line, kMeasured, four_digits(us).c_str(), four_digits(counter(run, "us/token")).c_str(),
                four_digits(counter(run, "GB/s")).c_str(), cell(counter(run, "%copy")).c_str(),
                cell(counter(run, "%peak")).c_str(), times.c_str(), cell(counter(run, "max_ulp")).c_str(),
                spread(run).c_str());
  return line + flags(run);
}

bool Relay::ReportContext(const Context& context) {
  to_->SetOutputStream(&GetOutputStream());
  to_->SetErrorStream(&GetErrorStream());
  return to_->ReportContext(context);
}

void Relay::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> done = runs;
  std::erase_if(done, [](const Run& run) { return error_of(run) == kInterrupted; });
  if (done.empty()) return;
  if (progress_) progress_->clear();
  to_->ReportRuns(done);
}

void Relay::Finalize() {
  if (progress_) progress_->clear();
  to_->Finalize();
  good_ = bool(GetOutputStream().flush());
}

std::string roof_line(const Roof& roof, double peak) {
  if (!(roof.floor > 0)) return {};
  std::string line = "roofs, cold: copy " + four_digits(roof.copy / 1e9) + " GB/s";
  if (peak > 0) line += " (" + cell(100 * roof.copy / peak) + "% of the memory's peak)";
  return line + ", read " + four_digits(roof.read / 1e9) + ", write " + four_digits(roof.write / 1e9) +
         "; an empty launch " + four_digits(roof.floor * 1e6) + " us\n";
}

void FiniteJsonReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> finite = runs;
  for (Run& run : finite) {
    std::erase_if(run.counters, [](const auto& counter) { return !std::isfinite(double(counter.second)); });
    if (!std::isfinite(run.cpu_accumulated_time)) run.cpu_accumulated_time = 0;
    if (!std::isfinite(run.real_accumulated_time)) run.real_accumulated_time = 0;
  }
  JSONReporter::ReportRuns(finite);
}

}  // namespace softmax::bench
