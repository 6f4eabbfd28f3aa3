#include "benchmarks/session.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace softmax::bench {

SampleFile::SampleFile(const std::string& path) : file_(path, std::ios::binary) {
  if (!file_) throw std::runtime_error(path + ": " + std::strerror(errno));
}

std::string SampleFile::beside(const std::string& json) {
  const std::string stem = json.ends_with(".json") ? json.substr(0, json.size() - 5) : json;
  return stem + ".samples.f32";
}

std::int64_t SampleFile::append(const Measured& m) {
  static_assert(std::endian::native == std::endian::little);
  const std::int64_t at = size_;
  for (const auto* samples : {&m.samples, &m.copy_samples})
    for (const double seconds : *samples) {
      const auto us = float(seconds * 1e6);
      file_.write(reinterpret_cast<const char*>(&us), sizeof us);
      ++size_;
    }
  file_.flush();  // an interrupted run keeps what it has
  return at;
}

Session::Session(Machine& machine, Input input)
    : policy(bench::policy(machine)), machine_(machine), input_(std::move(input)) {
  machine_.watch(Watch::off);
}

int Session::sets(const Point& point) const {
  if (point.mode != Mode::graph || machine_.simulated()) return 1;
  const auto bytes = std::size_t(point.shape.bytes());
  return int(std::max<std::size_t>(2, (3 * machine_.cache_bytes() + bytes - 1) / bytes));
}

Workspace& Session::workspace(Shape shape, int sets) {
  if (!workspace_ || workspace_->shape() != shape || workspace_->sets() != sets) {
    workspace_.reset();  // first, or two shapes would have to fit
    workspace_ = std::make_unique<Workspace>(machine_, shape, input_, sets);
  }
  return *workspace_;
}

void Session::fail() {
  ++failures_;
  workspace_.reset();
}

Expected& Session::expected(const Workspace& ws) {
  if (!expected_ || expected_->first != ws.shape()) expected_.emplace(ws.shape(), expect(ws, input_));
  return expected_->second;
}

void Session::warm(const Work& launch) {
  if (!warm_ && !machine_.simulated()) warm_up(machine_, launch, policy);
  warm_ = true;
}

Measured Session::time(Workspace& ws, const Work& work, Mode mode, std::int64_t at_least, bool beside_copy) {
  const Timing timing{.mode = mode, .flush = flush, .sets = ws.sets()};
  if (!beside_copy || machine_.simulated() || machine_.copies() == 0) {
    warm(work);
    return measure(machine_, work, nullptr, timing, policy, at_least);
  }
  const auto copy = [&, way = best_copy(ws, mode)](int set) { ws.copy(way, set); };
  return measure(machine_, work, copy, timing, policy, at_least);
}

Measured Session::time_copy(Workspace& ws, Mode mode, std::int64_t at_least) {
  return time(
      ws, [&, way = best_copy(ws, mode)](int set) { ws.copy(way, set); }, mode, at_least);
}

std::string Session::differing_set(const Workspace& ws) {
  const std::int64_t last = ws.shape().rows - 1;
  const std::size_t in = std::max(ws.room(), ws.shape().in().end(last)),
                    out = std::max(ws.room(), ws.shape().out().end(last));
  for (int set = 1; set < ws.sets(); ++set)
    if (!ws.machine().equal(ws.out(0), ws.out(set), out) || !ws.machine().equal(ws.in(0), ws.in(set), in))
      return "set " + std::to_string(set) + " of " + std::to_string(ws.sets()) + " differs from set 0";
  return {};
}

int Session::best_copy(Workspace& ws, Mode mode) {
  const std::tuple key{ws.shape().bytes(), ws.sets(), mode};
  if (const auto found = best_copy_.find(key); found != best_copy_.end()) return found->second;
  warm([&](int set) { ws.copy(0, set); });
  Policy brief = policy;
  brief.samples = 20;  // and no more: ways that these do not tell apart are as good as each other
  brief.ci_percent = std::numeric_limits<double>::infinity();
  brief.cap_seconds = 0.2;
  brief.warm_seconds = 0.01;  // it has just been run on every set
  double least = 0;
  int best = 0;
  for (int way = 0; way < machine_.copies(); ++way) {
    const auto copy = [&](int set) { ws.copy(way, set); };
    ws.out().poison();
    for (int set = 0; set < ws.sets(); ++set) copy(set);
    machine_.synchronize();
    for (int set = 0; set < ws.sets(); ++set)
      if (!ws.copied(set))
        throw std::runtime_error("INCORRECT: way " + std::to_string(way) + " to copy does not copy all bytes");
    const Timing timing{.mode = mode, .flush = flush, .sets = ws.sets()};
    const double seconds = measure(machine_, copy, nullptr, timing, brief).work.median;
    if (way > 0 && seconds >= least) continue;
    least = seconds;
    best = way;
  }
  return best_copy_[key] = best;
}

const Roof& Session::roof() {
  if (roof_.floor > 0 || machine_.simulated() || machine_.copies() == 0) return roof_;
  const std::size_t bytes = std::min<std::size_t>(std::size_t{1} << 30, machine_.free_memory() / 8 / 16 * 16);
  const Buffer from(machine_, bytes), to(machine_, bytes);
  machine_.fill_noise(from.floats(), bytes / sizeof(float), input_.seed);
  const auto seconds = [&](const Work& launch) {
    return measure(machine_, launch, nullptr, {.mode = Mode::cold, .flush = flush}, policy).work.median;
  };
  const auto best = [&](double& roof, std::size_t moved, const Work& launch) {
    const double speed = double(moved) / seconds(launch);
    const bool better = speed > roof;
    roof = std::max(roof, speed);
    return better;
  };
  warm([&](int) { machine_.copy(0, to.data(), from.data(), bytes); });
  for (int way = Machine::kDriverCopy; way < machine_.copies(); ++way)
    if (best(roof_.copy, 2 * bytes, [&](int) { machine_.copy(way, to.data(), from.data(), bytes); }))
      roof_.copy_way = way == Machine::kDriverCopy ? "the driver's" : "kernel " + std::to_string(way);
  best(roof_.read, bytes, [&](int) { machine_.read(from.data(), bytes); });
  best(roof_.write, bytes, [&](int) { machine_.write(to.data(), bytes); });
  roof_.floor = seconds([&](int) { machine_.nothing(); });
  return roof_;
}

const Trace& Session::trace(Workspace& ws, const Kernel& kernel, const How& how) {
  const auto found = std::find_if(traces_.begin(), traces_.end(), [&](const Trace& t) {
    return t.shape == ws.shape() && t.kernel == &kernel && t.how == how;
  });
  return found != traces_.end() ? *found : traces_.emplace_back(bench::trace(ws, kernel, how));
}

}  // namespace softmax::bench
