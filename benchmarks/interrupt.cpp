#include "benchmarks/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <iterator>

namespace softmax::bench {
namespace {

std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // a handler may do no more

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction before[std::size(kSignals)], before_pipe;

void on_signal(int signal) {
  if (caught != 0 && signal == SIGINT) {  // `timeout` tells its child to terminate twice
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  caught = signal;
}

}  // namespace

Signals::Signals() {
  caught = 0;
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  // A reader that has gone is an error of writing, not the end: the result file is still to be closed.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before_pipe);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &ours, nullptr);
  }
}

Signals::~Signals() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
  sigaction(SIGPIPE, &before_pipe, nullptr);
  caught = 0;
}

int interrupted() { return caught; }

void stop_if_interrupted() {
  if (interrupted() != 0) throw Interrupted();
}

}  // namespace softmax::bench
