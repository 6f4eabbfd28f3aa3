#include "properties/runner.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/narrow.hpp"

namespace softmax::properties {
namespace {

// What lies between the rows of the input. A kernel that reads one element too many must feel it: as large as any input
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

// Rows of a type as they lie in memory.
struct Image {
  Image(DataType t, std::int64_t rows, std::int64_t row_stride)
      : type(t), stride(row_stride), bytes(std::size_t(rows * row_stride) * bytes_per_element(t)) {}
  float get(std::int64_t i) const { return element(bytes.data(), std::size_t(i), type); }
  void set(std::int64_t i, float x) { set_element(bytes.data(), std::size_t(i), type, x); }
  std::int64_t size() const { return std::int64_t(bytes.size() / bytes_per_element(type)); }
  // Is element i, bit for bit, that of another image, or poison?
  bool same(const Image& other, std::int64_t i) const {
    const std::size_t width = bytes_per_element(type), at = std::size_t(i) * width;
    return std::memcmp(&bytes[at], &other.bytes[at], width) == 0;
  }
  bool poison(std::int64_t i) const {
    const std::size_t width = bytes_per_element(type), at = std::size_t(i) * width;
    return std::all_of(&bytes[at], &bytes[at] + width, [](unsigned char b) { return b == kPoison; });
  }

  DataType type;
  std::int64_t stride;
  std::vector<unsigned char> bytes;
};

// The memory of one case, in which a kernel may run many times.
class Place {
 public:
  Place(const Kernel& kernel, const Case& c)
      : kernel_(kernel),
        case_(c),
        problem_(problem_of(c)),
        in_at_(std::size_t(c.in_shift) * bytes_per_element(c.types.in)),
        out_at_(c.in_place ? in_at_ : std::size_t(c.out_shift) * bytes_per_element(c.types.out)),
        given_(c.types.in, c.rows, problem_.in_stride),
        left_(c.types.out, c.rows, problem_.out_stride),
        in_(kernel.machine(), given_.bytes.size() + in_at_),
        own_out_(kernel.machine(), c.in_place ? 0 : left_.bytes.size() + out_at_),
        out_(c.in_place ? in_ : own_out_),
        workspace_(kernel.machine(), std::size_t(kernel.workspace(problem_))),
        temperatures_(kernel.machine(), c.each_row ? std::size_t(c.rows) * sizeof(float) : 0) {
    problem_.in = static_cast<char*>(in_.data()) + in_at_;
    problem_.out = static_cast<char*>(out_.data()) + out_at_;
    problem_.workspace = workspace_.data();
    if (kernel.traits().keeps_workspace) kernel.machine().fill(workspace_.data(), 0, workspace_.bytes());
    for (std::int64_t i = 0; i < given_.size(); ++i) given_.set(i, std::min(kTrap, largest(c.types.in)));
    if (!c.each_row) return;
    std::vector<float> own;
    for (std::int64_t r = 0; r < c.rows; ++r) own.push_back(temperature_of(c, r));
    temperatures_.upload(own.data(), temperatures_.bytes());
    problem_.temperature = 1;
    problem_.temperatures = temperatures_.floats();
  }

  Output run(const std::vector<float>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) given_.set(at(std::int64_t(i), given_.stride), x[i]);
    in_.upload(given_.bytes.data(), given_.bytes.size(), in_at_);
    {
      const Scheduled scheduled(kernel_.machine(), case_.schedule);
      kernel_.launch(problem_);
      kernel_.machine().synchronize();
    }
    out_.download(left_.bytes.data(), left_.bytes.size(), out_at_);
    Output result;
    for (std::size_t i = 0; i < x.size(); ++i) result.y.push_back(left_.get(at(std::int64_t(i), left_.stride)));
    result.trespass = trespass();
    return result;
  }

 private:
  std::int64_t at(std::int64_t i, std::int64_t stride) const { return i / case_.cols * stride + i % case_.cols; }

  std::string trespass() const {
    Image back = given_;
    in_.download(back.bytes.data(), back.bytes.size(), in_at_);
    const auto between = [&](std::int64_t i, std::int64_t stride) { return i % stride >= case_.cols; };
    for (std::int64_t i = 0; i < back.size(); ++i)
      if (!back.same(given_, i) && (!case_.in_place || between(i, back.stride)))
        return "changed" + place(i, back.stride, "input");
    for (std::int64_t i = 0; i < left_.size(); ++i)
      if (!case_.in_place && between(i, left_.stride) && !left_.poison(i))
        return "wrote between the rows of" + place(i, left_.stride, "output");
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
  std::size_t in_at_, out_at_;  // bytes
  Image given_, left_;          // with what lies between the rows
  Buffer in_, own_out_;
  Buffer& out_;
  Buffer workspace_, temperatures_;
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
