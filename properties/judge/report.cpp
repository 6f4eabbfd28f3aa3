#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "properties/judge/judge.hpp"

namespace softmax::judge {
namespace {

std::string number(double value, int decimals = 1) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(decimals) << value;
  return out.str();
}

double ratio(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : double(a) / double(b); }

std::string plural(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string row(const std::string& what, const std::string& value, const std::string& note = "") {
  std::ostringstream out;
  out << "  " << std::left << std::setw(30) << what << std::right << std::setw(10) << value;
  return out.str() + (note.empty() ? "" : "  " + note) + "\n";
}

// How many sectors a request would touch if what it asks for lay side by side.
double packed(std::int64_t requests, std::int64_t sectors, std::int64_t bytes) {
  return std::min(ratio(sectors, requests), std::max(1.0, ratio(bytes, 32 * requests)));
}

// The loads or stores of a source line that waste the most of the sectors they touch; empty if none wastes half.
std::string worst_line(const Profile& profile) {
  double most = 0;
  std::string text;
  for (const Profile::Line& line : profile.lines) {
    const Counters& c = line.counters;
    const auto look = [&](const char* verb, std::int64_t requests, std::int64_t sectors, std::int64_t bytes) {
      const double best = packed(requests, sectors, bytes), wasted = double(sectors) - best * double(requests);
      if (wasted <= most || wasted < 0.5 * double(sectors)) return;
      most = wasted;
      text = line.file.substr(line.file.find_last_of('/') + 1) + ":" + std::to_string(line.line) + " " + verb + " " +
             number(ratio(sectors, requests)) + " sectors a request where " + number(best) + " would do";
    };
    look("loads", c.global_load_requests, c.global_load_sectors, c.global_load_bytes);
    look("stores", c.global_store_requests, c.global_store_sectors, c.global_store_bytes);
  }
  return text;
}

std::string to_string(const Traffic& t) {
  const Counters& c = t.profile.total;
  std::string text = "memory, counted at " + std::to_string(t.rows) + " x " + std::to_string(t.cols) + "\n";
  text += row("bytes moved", std::to_string(c.bytes_transferred()),
              number(ratio(c.bytes_transferred(), 8 * t.rows * t.cols), 2) +
                  " times the least, one read and one write of the matrix");
  text += row("bytes loaded again by a block", std::to_string(c.redundant_load_bytes));
  const auto sectors = [&](const char* what, std::int64_t requests, std::int64_t touched, std::int64_t bytes) {
    text += row(what, number(ratio(touched, requests)),
                "of 32 bytes; " + number(packed(requests, touched, bytes)) + " if they were packed");
  };
  sectors("sectors a load", c.global_load_requests, c.global_load_sectors, c.global_load_bytes);
  sectors("sectors a store", c.global_store_requests, c.global_store_sectors, c.global_store_bytes);
  const std::int64_t shared = c.shared_load_requests + c.shared_store_requests;
  if (shared > 0)
    text += row("bank conflicts a shared access",
                number(ratio(c.shared_load_conflicts + c.shared_store_conflicts, shared), 2));
  text += row("barriers a row", number(ratio(c.barriers, t.rows)));
  text += row("shuffles a row", number(ratio(c.shuffles, t.rows)));
  if (const std::string worst = worst_line(t.profile); !worst.empty()) text += "  " + worst + "\n";
  return text;
}

}  // namespace

std::string to_string(const properties::Case& c) {
  std::ostringstream out;
  out << properties::name(c.kind) << " " << c.rows << " x " << c.cols;
  if (c.offset != 0) out << " offset " << c.offset;
  if (c.in_padding != 0 || c.out_padding != 0) out << " padding " << c.in_padding << "/" << c.out_padding;
  if (c.in_shift != 0 || c.out_shift != 0) out << " shift " << c.in_shift << "/" << c.out_shift;
  if (c.block != 0) out << " block " << c.block;
  if (c.schedule.order != Schedule::Order::forward) out << " schedule " << softmax::to_string(c.schedule);
  out << " seed " << c.seed;
  return out.str();
}

std::string to_string(const Ruling& r) {
  std::ostringstream out;
  const bool broken = !r.why.empty(), idle = r.held == 0;
  out << "  " << std::left << std::setw(8)
      << (broken      ? "BROKEN"
          : !idle     ? "held"
          : r.stopped ? "stopped"
                      : "-")
      << std::setw(24) << r.name << std::right << std::setw(4) << (broken ? "" : std::to_string(r.held)) << "  ";
  const std::string indent(40, ' '), ended = plural(std::size_t(r.stopped), "case") + " ended in a finding\n";
  if (!broken && idle && r.stopped > 0) return out.str() + ended;
  out << r.statement << "\n";
  if (broken)
    out << indent << r.why << "\n" << indent << "smallest case: " << to_string(r.smallest) << "\n";
  else if (r.stopped > 0)
    out << indent << ended;
  return out.str();
}

std::string to_string(const Report& r) {
  std::string text;
  if (!r.not_judged.empty()) return "  not judged here: " + r.not_judged + "\n";
  for (const Finding& f : r.findings)
    text += (text.empty() ? "findings\n  " : "  ") + f.text + "\n      in " + std::to_string(f.launches) +
            (f.launches == 1 ? " launch" : " launches") + ", the smallest: " + to_string(f.smallest) + "\n";
  if (r.findings.empty() && r.id == "cpu") text += "findings\n  none\n";
  if (r.traffic) text += to_string(*r.traffic);
  if (r.speed)
    text += "time at " + std::to_string(r.speed->rows) + " x " + std::to_string(r.speed->cols) + "\n" +
            row("us/token", number(r.speed->us_per_token, 4)) + row("%copy", number(r.speed->percent_copy)) +
            row("largest error, ulp", number(r.speed->max_ulp));
  if (r.wrong() && !r.hint.empty())
    text += "It is right where " + r.hint +
            ". If it is for such shapes only, say so in a comment:\n    // takes: " + r.hint + "\n";
  return text;
}

std::string verdict(const std::vector<Report>& reports) {
  std::size_t broken = 0, laws = 0, findings = 0, judged = 0;
  bool wrong = false;
  std::string where, limits, why, unasked;
  for (const Report& r : reports) {
    if (!r.not_judged.empty()) {
      why += (why.empty() ? "" : "; ") + r.not_judged;
      continue;
    }
    ++judged;
    wrong |= r.wrong();
    broken = std::max(broken, std::size_t(r.broken()));
    laws = std::max(laws, r.rulings.size());
    findings = std::max(findings, r.findings.size());
    where += (where.empty() ? "the " : " and the ") + r.machine;
    limits = r.limits;
  }
  if (judged == 0) return "NOT JUDGED - " + why;
  // The first finding is most often the cause of all the rest.
  std::string first;
  for (const Report& r : reports)
    if (static const std::regex place(R"(^([^:]+):.*? at ([\w.+-]+\.\w+:\d+))"); first.empty() && !r.findings.empty())
      if (std::smatch m; std::regex_search(r.findings[0].text, m, place)) first = m.str(1) + " at " + m.str(2) + ": ";
  const std::string rules = std::to_string(broken) + " of " + plural(laws, "law") + " broken";
  if (wrong)
    return "WRONG - " + first + (broken == 0 ? "" : rules) + (broken > 0 && findings > 0 ? ", " : "") +
           (findings == 0 ? "" : plural(findings, "finding")) + " on " + where;
  // A law that no case reached may hold or not, unless the examples are of shapes that the kernel does not take.
  for (const Report& r : reports)
    for (const Ruling& law : r.rulings)
      if (law.held == 0 && !law.example && !law.broken()) unasked += (unasked.empty() ? "" : ", ") + law.name;
  if (!unasked.empty()) return "NOT JUDGED - no case for " + unasked + " on " + where;
  return "RIGHT - " + (limits.empty() ? "" : "for some shapes only (" + limits + "): ") +
         (broken == 0 ? "every law holds on " + where
                      : "every answer within its bound on " + where + ", but the last bits vary from run to run");
}

std::string to_json(const std::string& file, const std::string& verdict, const std::vector<Report>& reports) {
  using nlohmann::json;
  json all = {{"schema", 1},
              {"file", file},
              {"verdict", verdict.substr(0, verdict.find(" - "))},
              {"summary", verdict},
              {"machines", json::array()}};
  for (const Report& r : reports) {
    json one = {
        {"machine", r.machine}, {"id", r.id}, {"limits", r.limits}, {"hint", r.hint}, {"not_judged", r.not_judged}};
    one["laws"] = json::array();
    for (const Ruling& law : r.rulings) {
      json entry = {{"name", law.name}, {"held", law.held}, {"stopped", law.stopped}, {"broken", !law.why.empty()}};
      if (!law.why.empty()) entry.update({{"why", law.why}, {"case", to_string(law.smallest)}});
      one["laws"].push_back(entry);
    }
    one["findings"] = json::array();
    for (const Finding& f : r.findings)
      one["findings"].push_back({{"text", f.text}, {"launches", f.launches}, {"case", to_string(f.smallest)}});
    if (r.traffic) {
      json counters = {{"N", r.traffic->rows}, {"C", r.traffic->cols}};
      for (const CounterName& c : counter_names())  // a token's share, as in result files
        counters[std::string(c.key)] = double(r.traffic->profile.total.*c.value) / double(r.traffic->rows);
      one["counters"] = counters;
    }
    if (r.speed)
      one["time"] = {{"N", r.speed->rows},
                     {"C", r.speed->cols},
                     {"us/token", r.speed->us_per_token},
                     {"%copy", r.speed->percent_copy},
                     {"max_ulp", r.speed->max_ulp}};
    all["machines"].push_back(one);
  }
  return all.dump(2, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace) + "\n";
}

}  // namespace softmax::judge
