#include "properties/certify/certify.hpp"

#include <algorithm>

namespace softmax::certify {
namespace {

std::vector<Exp>& registered() {
  static std::vector<Exp> all;
  return all;
}

}  // namespace

void Answer::add(const Answer& other) {
  if (other.max_ulp > max_ulp) max_ulp = other.max_ulp, at = other.at;
  excess = std::max(excess, other.excess);
  below = std::max(below, other.below);
  rise = std::max(rise, other.rise);
  most = std::max(most, other.most);
  rises += other.rises;
  values += other.values;
}

bool register_exp(const Exp& exp) {
  registered().push_back(exp);
  return true;
}
const std::vector<Exp>& exps() { return registered(); }

reference::ExpError documented(const Exp& exp) { return exp.machine().math() == "fast" ? exp.fast : exp.documented; }

Answer survey(const Exp& exp, std::uint32_t step) {
  Machine& machine = exp.machine();
  std::vector<Answer> answers(std::size_t(exp.threads()));
  const std::size_t bytes = answers.size() * sizeof(Answer);
  Buffer buffer(machine, bytes);
  exp.survey(static_cast<Answer*>(buffer.data()), documented(exp).kappa, step);
  machine.synchronize();
  machine.download(answers.data(), buffer.data(), bytes);
  Answer all;
  for (const Answer& one : answers) all.add(one);
  return all;
}
float at_zero(const Exp& exp) {
  Machine& machine = exp.machine();
  Buffer buffer(machine, sizeof(float));
  exp.at_zero(static_cast<float*>(buffer.data()));
  machine.synchronize();
  float y = 0;
  machine.download(&y, buffer.data(), sizeof y);
  return y;
}

}  // namespace softmax::certify
