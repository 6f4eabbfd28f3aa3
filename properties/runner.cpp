#include "properties/runner.hpp"

#include <algorithm>
#include <bit>

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

// The memory of one case, in which a kernel may run many times.
class Place {
 public:
  Place(const Kernel& kernel, const Case& c)
      : kernel_(kernel),
        case_(c),
        problem_(problem_of(c)),
        in_at_(std::size_t(c.in_shift) * sizeof(float)),
        out_at_(std::size_t(c.out_shift) * sizeof(float)),
        padded_(std::size_t(c.rows * problem_.in_stride), kTrap),
        in_(kernel.machine(), padded_.size() * sizeof(float) + in_at_),
        out_(kernel.machine(), std::size_t(c.rows * problem_.out_stride) * sizeof(float) + out_at_),
        workspace_(kernel.machine(), std::size_t(kernel.workspace(problem_))) {
    problem_.in = in_.floats() + c.in_shift;
    problem_.out = out_.floats() + c.out_shift;
    problem_.workspace = workspace_.data();
  }

  Output run(const std::vector<float>& x) {
    for (std::int64_t r = 0; r < case_.rows; ++r)
      std::copy_n(x.begin() + r * case_.cols, case_.cols, padded_.begin() + r * problem_.in_stride);
    in_.upload(padded_.data(), padded_.size() * sizeof(float), in_at_);
    {
      const Scheduled scheduled(kernel_.machine(), case_.schedule);
      kernel_.launch(problem_);
      kernel_.machine().synchronize();
    }
    std::vector<float> out(std::size_t(case_.rows * problem_.out_stride));
    out_.download(out.data(), out.size() * sizeof(float), out_at_);
    Output result;
    result.y.resize(x.size());
    for (std::int64_t r = 0; r < case_.rows; ++r)
      std::copy_n(out.begin() + r * problem_.out_stride, case_.cols, result.y.begin() + r * case_.cols);
    result.trespass = trespass(out);
    return result;
  }

 private:
  std::string trespass(const std::vector<float>& out) const {
    std::vector<float> back(padded_.size());
    in_.download(back.data(), back.size() * sizeof(float), in_at_);
    const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
    constexpr std::uint32_t kUntouched = kPoison * 0x01010101u;
    const std::int64_t in_stride = problem_.in_stride, out_stride = problem_.out_stride;
    for (std::size_t i = 0; i < back.size(); ++i)
      if (bits(back[i]) != bits(padded_[i])) return "changed" + place(std::int64_t(i), in_stride, "input");
    for (std::size_t i = 0; i < out.size(); ++i)
      if (std::int64_t(i) % out_stride >= case_.cols && bits(out[i]) != kUntouched)
        return "wrote between the rows of" + place(std::int64_t(i), out_stride, "output");
    if (const std::string damage = in_.damage(); !damage.empty()) return "input: " + damage;
    if (const std::string damage = out_.damage(); !damage.empty()) return "output: " + damage;
    if (const std::string damage = workspace_.damage(); !damage.empty()) return "workspace: " + damage;
    const int threads = kernel_.machine().last_launch().threads;
    if (problem_.empty() || case_.block == 0 || threads == case_.block) return {};
    return "was launched with " + std::to_string(threads) + " threads a block, not " + std::to_string(case_.block);
  }

  const Kernel& kernel_;
  const Case& case_;
  Problem problem_;
  std::size_t in_at_, out_at_;
  std::vector<float> padded_;
  Buffer in_, out_, workspace_;
};

}  // namespace

Output run(const Kernel& kernel, const Case& c, const std::vector<float>& x) { return Place(kernel, c).run(x); }

std::vector<Output> run_in_turn(const Kernel& kernel, const Case& c, std::span<const std::vector<float>> inputs) {
  Place place(kernel, c);
  std::vector<Output> outputs;
  for (const std::vector<float>& x : inputs) outputs.push_back(place.run(x));
  return outputs;
}

}  // namespace softmax::properties
