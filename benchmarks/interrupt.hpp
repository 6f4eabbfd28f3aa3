#pragma once
// Ctrl-C: measure no more, and keep what is done.

namespace softmax::bench {

// Not a std::exception, so that nobody takes it for a case's error.
struct Interrupted {};

// While it lives, the first SIGINT or SIGTERM is only remembered, and a SIGINT after it ends the program. A signal that was
// ignored stays ignored. One at a time.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
};

int interrupted();           // the signal, or 0
void stop_if_interrupted();  // throws Interrupted

}  // namespace softmax::bench
