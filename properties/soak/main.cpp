// soak: fresh cases for every kernel under every law, for minutes or hours. ./check --soak builds and runs it.

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "benchmarks/interrupt.hpp"
#include "properties/soak/soak.hpp"
#include "softmax_build.hpp"  // generated at build time: git revision

namespace {

using namespace softmax;

constexpr const char* kUsage =
    R"(Asks every kernel of this program fresh cases under every law. Ctrl-C ends it after the case at hand, with the report;
Ctrl-\ ends it at once, as a crash does, and tells the case at hand.

usage: soak [--minutes=M] [--seed=N] [--device=gpu|cpu] [--json=FILE]
  --minutes=M       how long; default: 1
  --seed=N          the same seed gives the same cases; default: another one each time, which is printed first
  --device=gpu|cpu  where; default: everywhere, each for the same time
  --json=FILE       the report for programs

The exit status is 0 if no law was broken, 1 if one was, 2 if nothing could be asked.
)";

// The case at hand, where a kernel ends the program: all that is left to say then.
char doing[1024];

void on_crash(int signal) {
  const ssize_t written = write(STDOUT_FILENO, doing, std::strlen(doing));
  (void)written;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void catch_crashes() {
  static char stack[1 << 16];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT}) sigaction(signal, &action, nullptr);
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", std::gmtime(&now));
  return text;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : " and ") + one;
  return text;
}

nlohmann::ordered_json to_json(const soak::Report& r, const std::string& begun) {
  nlohmann::ordered_json json;
  json["context"] = {{"schema", "soak 1"},
                     {"date", begun},
                     {"device", joined(r.devices)},
                     {"simulated", r.simulated ? "true" : "false"},
                     {"math", joined(r.math)},
                     {"git_sha", SOFTMAX_GIT_SHA},
                     {"git_dirty", SOFTMAX_GIT_DIRTY},
                     {"flags", SOFTMAX_FLAGS},
                     {"seed", std::to_string(r.seed)},  // as text: JSON's numbers end at 2^53
                     {"minutes", std::round(r.seconds * 100 / 60) / 100},
                     {"stopped", r.stopped}};
  json["cases"] = r.cases;
  json["classes"] = nlohmann::ordered_json::object();
  for (const soak::Drawn& one : r.classes)
    json["classes"][one.name] = {{"cases", one.cases}, {"least", std::floor(one.least)}};
  json["failures"] = nlohmann::ordered_json::array();
  for (const soak::Failure& f : r.failures)
    json["failures"].push_back({{"kernel", f.kernel},
                                {"law", f.law},
                                {"times", f.times},
                                {"drawn", f.drawn},
                                {"case", f.smallest},
                                {"why", f.why}});
  return json;
}

int run(int argc, char** argv) {
  soak::Options options;
  options.seed = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i], value = flag.substr(std::min(flag.size(), flag.find('=') + 1));
    // All of it a number, in decimal.
    const auto number = [&value](auto& to) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), to);
      return error == std::errc() && end == value.data() + value.size();
    };
    if (flag == "--help" || flag == "-h") return std::fputs(kUsage, stdout), 0;
    if (flag.starts_with("--minutes=")) {
      double minutes;
      if (number(minutes) && minutes > 0 && minutes < 1e5) {
        options.seconds = 60 * minutes;
        continue;
      }
    } else if (flag.starts_with("--seed=")) {
      if (number(options.seed)) continue;
    } else if (flag == "--device=gpu" || flag == "--device=cpu") {
      options.device = value;
      continue;
    } else if (flag.starts_with("--json=") && !value.empty()) {
      path = value;
      continue;
    }
    std::fprintf(stderr, "soak: %s: unknown; see --help\n", flag.c_str());
    return 2;
  }
  std::ofstream file;
  if (!path.empty()) file.open(path);
  if (!path.empty() && !file) throw std::runtime_error(path + ": cannot be written");
  options.stop = [] { return bench::interrupted() != 0; };
  options.say = [](const std::string& text) { std::cout << text << std::endl; };
  options.doing = [](const std::string& text) { std::snprintf(doing, sizeof doing, "%s\n", text.c_str()); };
  catch_crashes();
  const std::string begun = date();
  const bench::Signals signals;
  const soak::Report report = soak::soak(options);
  std::cout << report << std::flush;
  if (!path.empty() && !(file << to_json(report, begun).dump(1) << std::endl))
    throw std::runtime_error(path + ": cannot be written");
  return report.failures.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "soak: %s\n", e.what());
    return 2;
  }
}
