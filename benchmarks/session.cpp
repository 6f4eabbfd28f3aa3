#include "benchmarks/session.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace softmax::bench {

Session::Session(Machine& machine, Input input) : machine_(machine), input_(std::move(input)) {
  machine_.watch(Watch::off);
}

Workspace& Session::workspace(Shape shape) {
  if (!workspace_ || workspace_->shape() != shape) {
    workspace_.reset();  // first, or two shapes would have to fit
    workspace_ = std::make_unique<Workspace>(machine_, shape, input_);
  }
  return *workspace_;
}

void Session::fail() {
  ++failures_;
  workspace_.reset();
}

Expected& Session::expected(const Workspace& ws) {
  const auto found = expected_.find(ws.shape());
  return found != expected_.end() ? found->second : expected_.emplace(ws.shape(), expect(ws, input_)).first->second;
}

Summary Session::time(Workspace& ws, const Work& work, std::int64_t at_least) {
  const Policy p = policy(machine_);
  if (!warm_ && !machine_.simulated()) {
    const auto copy = [&] { machine_.copy(0, ws.out().data(), ws.in().data(), ws.in().bytes()); };
    warm_up(machine_, copy, warm_up_seconds, p.now);
    warm_ = true;
  }
  return measure(machine_, work, p, at_least);
}

Summary Session::time_copy(Workspace& ws, std::int64_t at_least) {
  Summary best;
  for (int way = 0; way < machine_.copies(); ++way) {
    const auto copy = [&] { machine_.copy(way, ws.out().data(), ws.in().data(), ws.in().bytes()); };
    const auto sums = [&](const Buffer& of) { return machine_.row_sums(of.floats(), ws.shape().layout()); };
    ws.out().poison();
    copy();
    machine_.synchronize();
    const std::vector<double> want = sums(ws.in()), got = sums(ws.out());
    // Bit for bit: equal rows are summed alike, and a file's rows may sum to NaN.
    if (got.size() != want.size() || std::memcmp(got.data(), want.data(), got.size() * sizeof(double)) != 0)
      throw std::runtime_error("INCORRECT: way " + std::to_string(way) + " to copy does not copy all rows");
    const Summary s = time(ws, copy, at_least);
    if (best.n == 0 || s.median < best.median) best = s;
  }
  copy_seconds_.try_emplace(ws.shape().bytes(), best.median);
  return best;
}

const Trace& Session::trace(Workspace& ws, const Kernel& kernel, int block) {
  const auto found = std::find_if(traces_.begin(), traces_.end(), [&](const Trace& t) {
    return t.shape == ws.shape() && t.kernel == &kernel && t.block == block;
  });
  return found != traces_.end() ? *found : traces_.emplace_back(bench::trace(ws, kernel, block));
}

double Session::copy_seconds(Workspace& ws) {
  const auto found = copy_seconds_.find(ws.shape().bytes());
  return found != copy_seconds_.end() ? found->second : time_copy(ws, 0).median;
}

}  // namespace softmax::bench
