#pragma once
// Reporters: a table for people, and JSON that every reader takes.

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>

#include "benchmarks/progress.hpp"
#include "benchmarks/session.hpp"

namespace softmax::bench {

// A table, in ASCII: one line for each case, under a heading for each shape. With repetitions it shows their median, or
// the only one that came to its end. Of a simulated machine it shows what it counted, not times that mean nothing.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  explicit TableReporter(std::string machine) : machine_(std::move(machine)) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override;

 private:
  void heading(const Run&);
  void row(const Run&);
  std::string measured(const Run&, const std::string& version, const std::string& block);

  std::string machine_, heading_, last_version_;
  std::map<std::string, double> v1_;  // us of V1 at block 32, by heading
};

// The library's JSON without numbers that are not finite: its cv rows divide by a mean that may be 0 (`smem`, `ci%`).
class FiniteJsonReporter : public benchmark::JSONReporter {
 public:
  void ReportRuns(const std::vector<Run>&) override;
};

// The library's CSV, which is for rows that all have the same counters: it comes when all of them are known.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
class WholeCsvReporter : public benchmark::CSVReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override { all_.insert(all_.end(), runs.begin(), runs.end()); }
  void Finalize() override {
    if (!all_.empty()) CSVReporter::ReportRuns(all_);
  }

 private:
  std::vector<Run> all_;
};
#pragma GCC diagnostic pop

// Hands on to another what was measured, without what an interrupted run did not come to.
class Relay : public benchmark::BenchmarkReporter {
 public:
  // `progress`, which may be null, makes way for what is written.
  Relay(std::unique_ptr<benchmark::BenchmarkReporter> to, Progress* progress)
      : to_(std::move(to)), progress_(progress) {}
  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;
  void Finalize() override;
  bool good() const { return good_; }  // all that it was given is written

 private:
  std::unique_ptr<benchmark::BenchmarkReporter> to_;
  Progress* progress_;
  bool good_ = true;
};

// "roofs: copy 4243 GB/s ..."; `peak` in bytes/s, or 0. Empty if nothing was measured.
std::string roof_line(const Roof&, double peak);

// Why a run has no number; empty if it has one. Google Benchmark renamed the members in 1.8.
template <class Run>
std::string error_of(const Run& run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred ? run.error_message : "";
  else
    return int(run.skipped) != 0 ? run.skip_message : "";
}

// Four significant digits, without an exponent: 0.09512, 28.32, 12340.
std::string four_digits(double);

}  // namespace softmax::bench
