#include "properties/counters/patterns.hpp"

namespace softmax::counters {
namespace {

std::vector<const Pattern*>& registered() {
  static std::vector<const Pattern*> all;
  return all;
}

}  // namespace

const std::vector<const Pattern*>& patterns() { return registered(); }

bool register_pattern(const Pattern& pattern) {
  registered().push_back(&pattern);
  return true;
}

Counters expected(const Pattern& p) {
  Counters all;
  for (int b = 0; b < p.blocks; ++b) {
    all += p.block;
    for (int w = 0; w < p.threads / 32; ++w) all += p.warp;
  }
  return all;
}

void run(const Pattern& p) {
  Machine& machine = p.machine();
  Buffer in(machine, kIn * sizeof(float)), out(machine, kOut * sizeof(float));
  machine.fill_noise(in.floats(), kIn, 1);
  machine.within({{"the input", in.data(), 1, kIn, kIn, sizeof(float), Region::Use::input},
                  {"the output", out.data(), 1, kOut, kOut, sizeof(float), Region::Use::scratch}},
                 [&] { p.launch(in.floats(), out.floats()); });
  machine.synchronize();
}

}  // namespace softmax::counters
