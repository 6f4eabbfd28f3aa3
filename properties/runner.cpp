#include "properties/runner.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace softmax::properties {
namespace {

// What lies between the rows of the input. A kernel that reads one element too many must feel it: larger than any input
// but finite, because fmaxf would drop a NaN.
constexpr float kTrap = 3e38f;

std::string place(std::int64_t at, std::int64_t stride, const char* of) {
  return std::string(" the ") + of + " at row " + std::to_string(at / stride) + ", column " +
         std::to_string(at % stride);
}

// Until it goes, also by an exception: the next test starts with the usual order.
struct Scheduled {
  Scheduled(Machine& m, const Schedule& s) : machine(m) { machine.schedule(s); }
  ~Scheduled() { machine.schedule({}); }
  Machine& machine;
};

}  // namespace

Output run(const Kernel& kernel, const Case& c, const std::vector<float>& x) {
  Machine& machine = kernel.machine();
  const std::int64_t stride = c.cols + c.padding, elements = c.rows * stride;
  std::vector<float> padded(std::size_t(elements), kTrap), back(padded.size()), out(padded.size());
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::memcpy(&padded[std::size_t(r * stride)], &x[std::size_t(r * c.cols)], std::size_t(c.cols) * sizeof(float));

  const std::size_t bytes = padded.size() * sizeof(float);
  Buffer in_memory(machine, bytes + std::size_t(c.in_shift) * sizeof(float));
  Buffer out_memory(machine, bytes + std::size_t(c.out_shift) * sizeof(float));
  const std::size_t in_at = std::size_t(c.in_shift) * sizeof(float), out_at = std::size_t(c.out_shift) * sizeof(float);
  in_memory.upload(padded.data(), bytes, in_at);

  Buffer workspace(machine, std::size_t(kernel.workspace(problem_of(c))));
  const Scheduled scheduled(machine, c.schedule);
  kernel.launch({.rows = c.rows,
                 .cols = c.cols,
                 .in_stride = stride,
                 .out_stride = stride,
                 .in = in_memory.floats() + c.in_shift,
                 .out = out_memory.floats() + c.out_shift,
                 .block = c.block,
                 .workspace = workspace.data()});
  machine.synchronize();
  in_memory.download(back.data(), bytes, in_at);
  out_memory.download(out.data(), bytes, out_at);

  Output result;
  result.y.resize(std::size_t(c.rows * c.cols));
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::memcpy(&result.y[std::size_t(r * c.cols)], &out[std::size_t(r * stride)], std::size_t(c.cols) * sizeof(float));

  constexpr std::uint32_t kUntouched = kPoison * 0x01010101u;
  for (std::int64_t i = 0; i < elements && result.trespass.empty(); ++i) {
    const std::size_t at = std::size_t(i);
    if (std::bit_cast<std::uint32_t>(back[at]) != std::bit_cast<std::uint32_t>(padded[at]))
      result.trespass = "changed" + place(i, stride, "input");
    if (i % stride >= c.cols && std::bit_cast<std::uint32_t>(out[at]) != kUntouched)
      result.trespass = "wrote between the rows of" + place(i, stride, "output");
  }
  for (const auto& [memory, what] : {std::pair(&in_memory, "input: "), std::pair(&out_memory, "output: ")})
    if (const std::string damage = memory->damage(); result.trespass.empty() && !damage.empty())
      result.trespass = what + damage;
  return result;
}

}  // namespace softmax::properties
