// judge: loads one kernel, built as a module for each device, and judges it. ./check FILE.cu builds the module.
//
// The kernel is anyone's, so a child process runs it and this one watches: a crash, an exit and a launch that never ends
// are answers too. That is a seat belt, not a prison: who means harm can do it.

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "properties/judge/judge.hpp"

namespace softmax::judge {
namespace {

constexpr const char* kHelp = R"(judge [options]: judges the kernel of one file
  --cpu=MODULE.so     the kernel, built for the CPU device
  --gpu=MODULE.so     the kernel, built for the GPU
  --name=FILE         what to call it
  --not-cpu=REASON    why there is no module for the CPU device
  --verdict=TEXT      the verdict, where nothing could be built
  --seed=N            which cases are drawn (1)
  --cases=N           how many for each law (50)
  --patience=SECONDS  how long one case may take (60)
  --json=FILE         the report for programs
)";

enum Status { kRight = 0, kWrong = 1, kNotJudged = 2 };

struct Arguments {
  std::string cpu, gpu, name = "the kernel", not_cpu, verdict, json;
  Options options;
  double patience = 60;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

double number(const std::string& flag, const std::string& value, double least) {
  char* end = nullptr;
  const double n = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(n >= least && n < 1e15))
    throw UsageError(flag + value + ": a number of at least " + std::to_string(int(least)) + " is wanted");
  return n;
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], flag = argument.substr(0, argument.find('=') + 1);
    const std::string value = argument.substr(flag.size());
    if (flag == "--cpu=")
      a.cpu = value;
    else if (flag == "--gpu=")
      a.gpu = value;
    else if (flag == "--name=")
      a.name = value;
    else if (flag == "--not-cpu=")
      a.not_cpu = value;
    else if (flag == "--verdict=")
      a.verdict = value;
    else if (flag == "--json=")
      a.json = value;
    else if (flag == "--seed=")
      a.options.seed = std::uint64_t(number(flag, value, 0));
    else if (flag == "--cases=")
      a.options.cases = int(number(flag, value, 1));
    else if (flag == "--patience=")
      a.patience = number(flag, value, 1);
    else
      throw UsageError("unknown argument " + argument + "\n" + kHelp);
  }
  if (a.cpu.empty() && a.gpu.empty() && a.verdict.empty()) throw UsageError("neither --cpu nor --gpu names a module");
  return a;
}

// What the child tells its parent.
struct Message {
  std::atomic<std::uint64_t> beats;
  std::atomic<bool> done;
  char doing[512];
  char fault[128];
  char verdict[2048];
};
Message* shared = nullptr;

void put(char* to, std::size_t size, const std::string& text) {
  std::strncpy(to, text.c_str(), size - 1);
  to[size - 1] = 0;
}

void load(const std::string& module) {
  if (!dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL)) throw std::runtime_error(dlerror());
}

void write_json(const Arguments& a, const std::string& verdict, const std::vector<Report>& reports) {
  if (a.json.empty()) return;
  std::ofstream out(a.json);
  out << to_json(a.name, verdict, reports);
  if (!out.flush()) throw UsageError("cannot write " + a.json);
}

std::string judge_all(const Arguments& a, Message& message) {
  for (const std::string& module : {a.cpu, a.gpu})
    if (!module.empty()) load(module);
  std::vector<Report> reports;
  if (!a.not_cpu.empty()) {
    reports.emplace_back().machine = "CPU device";
    reports.back().not_judged = a.not_cpu;
    std::printf("on the CPU device\n%s", to_string(reports.back()).c_str());
  }
  const Observer observer{[&](const std::string& what) {
                            put(message.doing, sizeof message.doing, what);
                            ++message.beats;
                          },
                          [](const Ruling& ruling) {
                            std::fputs(to_string(ruling).c_str(), stdout);
                            std::fflush(stdout);
                          }};
  std::string seen;
  for (const Kernel* kernel : kernels()) {
    const std::string id(kernel->machine().id());
    if (id == seen) throw UsageError("the file registers several kernels; judge one at a time");
    seen = id;
    Report report;
    observer.doing("the " + id);
    std::string why = kernel->machine().unavailable();
    if (why.empty() && kernel->traits().cuda_only && kernel->machine().simulated()) why = "it runs on a GPU only";
    std::printf("on the %s\n", why.empty() ? kernel->machine().name().c_str() : id.c_str());
    if (why.empty()) {
      std::printf("laws%32s\n", "cases");
      report = judge(*kernel, a.options, observer);
    } else {
      report.machine = id;
      report.not_judged = why;
    }
    std::fputs(to_string(report).c_str(), stdout);
    std::fflush(stdout);
    reports.push_back(std::move(report));
  }
  if (reports.empty()) throw UsageError("the file registers no kernel");
  const std::string text = verdict(reports);
  write_json(a, text, reports);
  return text;
}

// A page that may not be touched: memory of the device in the hands of the host (plain.hpp), or the end of a stack.
void on_fault(int signal, siginfo_t* info, void*) {
  if (info->si_code == SEGV_ACCERR) {
    const std::string_view why = "host code touches the device's memory, or local variables overflow a thread's stack";
    const std::size_t length = std::min(why.size(), sizeof shared->fault - 1);
    std::memcpy(shared->fault, why.data(), length);
  }
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void catch_faults() {
  static char stack[1 << 16];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

// In the child: never returns.
[[noreturn]] void child(const Arguments& a, Message& message) {
  std::string text;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever stops the parent stops the kernel too
  catch_faults();
  try {
    text = judge_all(a, message);
  } catch (const std::exception& e) {
    text = std::string("NOT JUDGED - ") + e.what();
  }
  std::fflush(stdout);
  put(message.verdict, sizeof message.verdict, text);
  message.done = true;
  _exit(0);  // the kernel's own destructors have nothing to say
}

// Waits for the child; returns its verdict, or what became of it.
std::string watch(pid_t pid, const Arguments& a, Message& message) {
  using Clock = std::chrono::steady_clock;
  auto since = Clock::now();
  std::uint64_t beats = 0;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (const std::uint64_t now = message.beats; now != beats) {
      beats = now;
      since = Clock::now();
    }
    if (std::chrono::duration<double>(Clock::now() - since).count() < a.patience) continue;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return "WRONG - still running after " + std::to_string(int(a.patience)) + " s: " + message.doing;
  }
  if (message.done) return message.verdict;
  std::string how = "the file's own code ended the program";
  if (WIFSIGNALED(status)) how = message.fault[0] ? message.fault : strsignal(WTERMSIG(status));
  return "WRONG - " + how + ": " + message.doing;
}

int conclude(const std::string& text) {
  std::printf("verdict: %s\n", text.c_str());
  return text.starts_with("RIGHT") ? kRight : text.starts_with("WRONG") ? kWrong : kNotJudged;
}

int run(int argc, char** argv) {
  if (argc == 2 && (!std::strcmp(argv[1], "--help") || !std::strcmp(argv[1], "-h"))) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const Arguments a = parse(argc, argv);
  if (!a.verdict.empty()) {
    write_json(a, a.verdict, {});
    return conclude(a.verdict);
  }
  void* memory = mmap(nullptr, sizeof(Message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  Message& message = *new (memory) Message{};
  shared = &message;
  put(message.doing, sizeof message.doing, "while the file was loaded");
  std::printf("%s, seed %llu\n", a.name.c_str(), static_cast<unsigned long long>(a.options.seed));
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid == 0) child(a, message);
  const std::string text = watch(pid, a, message);
  if (!message.done) write_json(a, text, {});
  return conclude(text);
}

}  // namespace
}  // namespace softmax::judge

int main(int argc, char** argv) {
  try {
    return softmax::judge::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "judge: %s\n", e.what());
    return 2;
  }
}
