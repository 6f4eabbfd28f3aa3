#include "properties/runner.hpp"

#include <algorithm>
#include <bit>
#include <optional>

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
  Problem p = problem_of(c);
  std::vector<float> padded(std::size_t(c.rows * p.in_stride), kTrap), back(padded.size());
  std::vector<float> out(std::size_t(c.rows * p.out_stride));
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::copy_n(x.begin() + r * c.cols, c.cols, padded.begin() + r * p.in_stride);

  const std::size_t in_at = std::size_t(c.in_shift) * sizeof(float), out_at = std::size_t(c.out_shift) * sizeof(float);
  const std::size_t in_bytes = padded.size() * sizeof(float), out_bytes = out.size() * sizeof(float);
  Buffer in_memory(machine, in_bytes + in_at), out_memory(machine, out_bytes + out_at);
  Buffer workspace(machine, std::size_t(kernel.workspace(p)));
  in_memory.upload(padded.data(), in_bytes, in_at);
  p.in = in_memory.floats() + c.in_shift;
  p.out = out_memory.floats() + c.out_shift;
  p.workspace = workspace.data();
  {
    const Scheduled scheduled(machine, c.schedule);
    kernel.launch(p);
    machine.synchronize();
  }
  in_memory.download(back.data(), in_bytes, in_at);
  out_memory.download(out.data(), out_bytes, out_at);

  Output result;
  result.y.resize(x.size());
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::copy_n(out.begin() + r * p.out_stride, c.cols, result.y.begin() + r * c.cols);

  const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  constexpr std::uint32_t kUntouched = kPoison * 0x01010101u;
  const auto first = [](std::int64_t count, auto wrong) {
    std::int64_t i = 0;
    while (i < count && !wrong(std::size_t(i))) ++i;
    return i < count ? std::optional(i) : std::nullopt;
  };
  if (const auto i = first(c.rows * p.in_stride, [&](std::size_t k) { return bits(back[k]) != bits(padded[k]); }))
    result.trespass = "changed" + place(*i, p.in_stride, "input");
  else if (const auto o = first(c.rows * p.out_stride, [&](std::size_t k) {
             return std::int64_t(k) % p.out_stride >= c.cols && bits(out[k]) != kUntouched;
           }))
    result.trespass = "wrote between the rows of" + place(*o, p.out_stride, "output");
  else if (const std::string damage = in_memory.damage(); !damage.empty())
    result.trespass = "input: " + damage;
  else if (const std::string harm = out_memory.damage(); !harm.empty())
    result.trespass = "output: " + harm;
  else if (const std::string scratch = workspace.damage(); !scratch.empty())
    result.trespass = "workspace: " + scratch;
  else if (const int threads = machine.last_launch().threads; !p.empty() && threads != c.block)
    result.trespass =
        "was launched with " + std::to_string(threads) + " threads a block, not " + std::to_string(c.block);
  return result;
}

}  // namespace softmax::properties
