// --explain: the counters of each source line, and which line to fix.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "benchmarks/trace.hpp"

namespace softmax::bench {
namespace {

constexpr std::size_t kWidth = 120;
constexpr const char* kRow = "        %-12s %8s %7s %5s %6s %6s %9s";
constexpr double kConflicts = 0.1;  // a request, from which on they are worth a word

template <class... Values>
std::string text(const char* format, Values... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

std::string number(double value) {
  if (value == std::round(value)) return text("%.0f", value);
  return text(value >= 1000 ? "%.0f" : value >= 100 ? "%.1f" : value >= 0.1 ? "%.2f" : "%.2g", value);
}

// From the project's root, where a path leads into it: a compiler may have been told another way there.
std::string in_project(const std::string& file) {
  for (const std::string folder : {"/kernels/", "/properties/"})
    if (const std::size_t at = file.rfind(folder); at != std::string::npos)
      if (const std::string rest = file.substr(at + 1); std::ifstream(SOFTMAX_SOURCE_DIR "/" + rest)) return rest;
  return file;
}

// The line without its indentation; empty if there is no such file or line.
std::string source(const std::string& file, int line) {
  static std::map<std::string, std::vector<std::string>> files;
  const auto [found, fresh] = files.try_emplace(file);
  if (fresh) {
    const std::string inside = in_project(file);
    std::ifstream in(inside == file ? file : SOFTMAX_SOURCE_DIR "/" + inside);
    for (std::string one; std::getline(in, one);) found->second.push_back(one);
  }
  if (line < 1 || std::size_t(line) > found->second.size()) return {};
  const std::string& whole = found->second[std::size_t(line - 1)];
  return whole.substr(std::min(whole.find_first_not_of(" \t"), whole.size()));
}

struct Explanation {
  std::string lines;
  int flags = 0;
};

class Explainer {
 public:
  explicit Explainer(const Trace& t)
      : rows_(double(t.rows)), least_(double(t.shape.bytes()) / double(t.shape.rows) * double(t.rows)) {
    std::string file;
    for (const Profile::Line& line : t.profile.lines) {
      if (line.file != file) out_.lines += "  " + in_project(line.file) + "\n";
      file = line.file;
      std::string here = text("  %4d  ", line.line) + source(file, line.line);
      if (here.size() > kWidth) here = here.substr(0, kWidth - 3) + "...";
      out_.lines += here.substr(0, here.find_last_not_of(' ') + 1) + "\n";
      explain(line.counters);
    }
  }
  Explanation result() const { return out_; }

 private:
  void explain(const Counters& c) {
    global("global load", c.global_load_requests, c.global_load_sectors, c.global_load_bytes, c.redundant_load_bytes);
    global("global store", c.global_store_requests, c.global_store_sectors, c.global_store_bytes, -1);
    shared("shared load", c.shared_load_requests, c.shared_load_conflicts);
    shared("shared store", c.shared_store_requests, c.shared_store_conflicts);
    for (const auto& [what, count] :
         {std::pair{"atomic", c.atomics}, {"barrier", c.barriers}, {"shuffle", c.shuffles}, {"vote", c.votes}})
      if (count > 0) row(what, count, "", "", "", "", "", "");
  }
  void global(const char* what, std::int64_t requests, std::int64_t sectors, std::int64_t bytes, std::int64_t again) {
    if (requests == 0) return;
    const double each = double(sectors) / double(requests);
    const double ideal = std::ceil(double(bytes) / double(requests) / 32);
    const std::string reread = again < 0 || bytes == 0 ? "" : text("%.0f%%", 100 * double(again) / double(bytes));
    const std::string would = "uncoalesced: " + number(each) + " sectors a request, " + number(ideal) + " would do";
    row(what, requests, number(each), number(ideal), text("%.2f", 32 * double(sectors) / least_), reread, "",
        each > ideal + 1 ? would : "");  // one more where a row starts between sectors
  }
  void shared(const char* what, std::int64_t requests, std::int64_t conflicts) {
    if (requests == 0) return;
    const double each = double(conflicts) / double(requests);
    row(what, requests, "", "", "", "", number(each),
        each > kConflicts ? number(each) + " bank conflicts a request" : "");
  }
  void row(const char* what, std::int64_t count, const std::string& sectors, const std::string& ideal,
           const std::string& x_min, const std::string& reread, const std::string& conflicts, const std::string& flag) {
    std::string all = text(kRow, what, number(double(count) / rows_).c_str(), sectors.c_str(), ideal.c_str(),
                           x_min.c_str(), reread.c_str(), conflicts.c_str());
    if (!flag.empty()) all += "  <- " + flag;
    out_.flags += !flag.empty();
    out_.lines += all.substr(0, all.find_last_not_of(' ') + 1) + "\n";
  }

  double rows_, least_;
  Explanation out_;
};

// "32, 64"
void append(std::string& list, int block) { list += (list.empty() ? "" : ", ") + std::to_string(block); }

// Traces of one kernel at one shape.
std::string explain_kernel(const std::vector<const Trace*>& traces) {
  std::vector<Explanation> all;
  int most = 0;
  for (const Trace* t : traces) most = std::max(most, all.emplace_back(Explainer(*t).result()).flags);
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].flags == most) candidates.push_back(i);
  const std::size_t chosen = candidates[candidates.size() / 2];
  std::string alike, different;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i != chosen) append(all[i].lines == all[chosen].lines ? alike : different, traces[i]->how.block);

  const Trace& t = *traces[chosen];
  std::string out = "\n" + t.kernel->label() + " at " + to_string(t.shape) + ", block " + std::to_string(t.how.block);
  if (!alike.empty()) out += "; the same at block " + alike;
  if (!different.empty())
    out += "; block " + different + " differ, see --benchmark_filter=/" + t.kernel->label() +
           "/.*block:" + different.substr(0, different.find(',')) + "/";
  out += "\n" + text(kRow, "", "a token", "sectors", "ideal", "x min", "reread", "conflicts") + "\n";
  return out + all[chosen].lines +
         (most == 0 ? "  nothing flagged: no request is uncoalesced, none has bank conflicts\n" : "");
}

}  // namespace

std::string explain(const std::vector<Trace>& traces) {
  std::string out;
  std::vector<bool> done(traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i) {
    std::vector<const Trace*> same;
    for (std::size_t j = i; j < traces.size(); ++j)
      if (!done[j] && traces[j].kernel == traces[i].kernel && traces[j].shape == traces[i].shape) {
        done[j] = true;
        if (traces[j].profile.accesses > 0) same.push_back(&traces[j]);
      }
    if (!same.empty()) out += explain_kernel(same);
  }
  if (out.empty()) return "\nnothing was traced, so there is nothing to explain\n";
  return "\nsectors of 32 bytes and conflicts: a request of a warp; ideal: sectors that its bytes fill (a row that "
         "starts "
         "between\nsectors costs one more); x min: bytes moved over the least; reread: bytes that the block had loaded "
         "before\n" +
         out;
}

}  // namespace softmax::bench
