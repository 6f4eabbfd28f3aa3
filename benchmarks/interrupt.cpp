#include "benchmarks/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace softmax::bench {
namespace {

std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // a handler may do no more

constexpr int kSignals[] = {SIGINT, SIGTERM};
struct sigaction before[2];

void on_signal(int signal) {
  if (caught != 0) {
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
  for (int i = 0; i < 2; ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &ours, nullptr);
  }
}

Signals::~Signals() {
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &before[i], nullptr);
  caught = 0;
}

int interrupted() { return caught; }

void stop_if_interrupted() {
  if (interrupted() != 0) throw Interrupted();
}

}  // namespace softmax::bench
