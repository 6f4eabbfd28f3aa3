#include <algorithm>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax {
namespace {

std::vector<const Kernel*>& registered() {
  static std::vector<const Kernel*> all;
  return all;
}

auto key(const Kernel& k) { return std::tuple(k.version(), k.machine().id()); }

std::vector<const Kernel*> sorted() {
  std::vector<const Kernel*> all = registered();
  std::sort(all.begin(), all.end(), [](auto* a, auto* b) { return key(*a) < key(*b); });
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Kernel &a = *all[i - 1], &b = *all[i];
    if (key(a) != key(b)) continue;
    std::fprintf(stderr, "two kernels are version %d: %s and %s; give one of them another number\n", a.version(),
                 std::string(a.file()).c_str(), std::string(b.file()).c_str());
    std::exit(2);
  }
  return all;
}

template <class T, class Spell>
std::string list(const List<T>& values, Spell spell) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + spell(value);
  return text;
}

bool same_place(const Problem& p) { return p.in == p.out && p.in_type == p.out_type && p.in_stride == p.out_stride; }

std::string text(double x) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%g", x);
  return digits;
}

std::string bad_pointers(const Problem& p, bool in_place) {
  if (!p.in || !p.out) return std::string(p.in ? "out" : "in") + " is a null pointer";
  const auto end = [&p](const void* begin, std::int64_t stride, DataType type) {
    return static_cast<const char*>(begin) + ((p.rows - 1) * stride + p.cols) * std::int64_t(bytes_per_element(type));
  };
  const bool apart = end(p.in, p.in_stride, p.in_type) <= p.out || end(p.out, p.out_stride, p.out_type) <= p.in;
  if (apart || (in_place && same_place(p))) return "";
  return in_place ? "input and output overlap; in place they are the same, with the same type and stride"
                  : "input and output overlap, and kernels are promised that they do not";
}

std::string misaligned(const void* at, DataType type, int alignment, const char* what) {
  alignment = std::max(alignment, int(bytes_per_element(type)));
  if (std::uintptr_t(at) % std::uintptr_t(alignment) == 0) return {};
  return std::string(what) + " must begin at a multiple of " + std::to_string(alignment) + " bytes";
}
std::string misaligned(const Problem& p, int alignment) {
  if (std::string in = misaligned(p.in, p.in_type, alignment, "the input"); !in.empty()) return in;
  if (std::string out = misaligned(p.out, p.out_type, alignment, "the output"); !out.empty()) return out;
  return misaligned(p.temperatures, DataType::fp32, alignof(float), "the temperatures");
}

// What the kernel may touch.
std::vector<Region> regions(const Problem& p, std::int64_t workspace, bool keeps_workspace) {
  using enum Region::Use;
  std::vector<Region> all = {
      {"the output", p.out, p.rows, p.cols, p.out_stride, bytes_per_element(p.out_type),
       same_place(p) ? state : output},
      {"the workspace", p.workspace, 1, workspace, workspace, 1, keeps_workspace ? state : scratch}};
  if (!same_place(p))
    all.insert(all.begin(), {"the input", p.in, p.rows, p.cols, p.in_stride, bytes_per_element(p.in_type), input});
  if (p.temperatures) all.push_back({"the temperatures", p.temperatures, 1, p.rows, p.rows, sizeof(float), input});
  return all;
}

}  // namespace

std::string_view name(DataType type) {
  switch (type) {
    case DataType::fp32: return "fp32";
    case DataType::fp16: return "fp16";
    case DataType::bf16: return "bf16";
  }
  return "?";
}

std::string name(Types t) {
  return t.in == t.out ? std::string(name(t.in)) : std::string(name(t.in)) + "-" + std::string(name(t.out));
}

std::string to_string(const Plan& p) {
  std::string text = std::to_string(p.threads) + "x" + std::to_string(p.vectors);
  if (p.shared > 0) text += "+" + std::to_string(p.shared) + "s";
  return p.blocks > 1 ? text + " c" + std::to_string(p.blocks) : text;
}

std::string to_string(const Choice& c) { return c.kernel->label() + (c.plan == Plan() ? "" : " " + to_string(c.plan)); }

std::size_t bytes_per_element(DataType type) { return type == DataType::fp32 ? 4 : 2; }

Kernel::Kernel(int version, std::string_view name, std::string_view idea, std::string_view file, Machine& (*machine)(),
               Launch launch, const Traits& traits)
    : version_(version),
      name_(name),
      idea_(idea),
      file_(file.substr(file.find_last_of('/') + 1)),
      machine_(machine),
      launch_(launch),
      traits_(traits) {}

std::string Kernel::unsupported(const Problem& p) const {
  if (p.rows < 0 || p.cols < 0)
    return "rows and cols must be at least 0, not " + std::to_string(p.rows) + " and " + std::to_string(p.cols);
  for (const auto& [what, stride, type] :
       {std::tuple("in_stride", p.in_stride, p.in_type), {"out_stride", p.out_stride, p.out_type}}) {
    if (stride < p.cols)
      return std::string(what) + " must be at least cols = " + std::to_string(p.cols) + ", not " +
             std::to_string(stride);
    // With room for the arithmetic of whoever rounds up.
    if (p.rows > 0 && stride > (std::int64_t{1} << 60) / p.rows / std::int64_t(bytes_per_element(type)))
      return std::to_string(p.rows) + " rows of " + what + " " + std::to_string(stride) + " are more than 2^60 bytes";
  }
  if (p.max_blocks < 0) return "max_blocks must be at least 0, not " + std::to_string(p.max_blocks);
  if (std::find(traits_.types.begin(), traits_.types.end(), p.types()) == traits_.types.end())
    return label() + " takes " + list(traits_.types, [](Types t) { return softmax::name(t); }) + ", not " +
           softmax::name(p.types());
  if (!traits_.temperature && (p.temperature != 1 || p.temperatures)) return label() + " knows no temperature";
  if (!p.temperatures && !(p.temperature > 0 && p.temperature <= FLT_MAX))
    return "a temperature must be above 0 and finite, not " + text(p.temperature);
  if (traits_.blocks[0] == 0 && p.block != 0)
    return label() + " chooses its own block size, so ask for 0, not " + std::to_string(p.block);
  if (std::find(traits_.blocks.begin(), traits_.blocks.end(), p.block) == traits_.blocks.end())
    return label() + " takes blocks of " + list(traits_.blocks, [](int b) { return std::to_string(b); }) +
           " threads, not " + std::to_string(p.block);
  if (traits_.cuda_only && machine().simulated()) return label() + " runs on a GPU only";
  if (!traits_.plan && p.plan != Plan()) return label() + " has no plans";
  return traits_.supports ? traits_.supports(p) : std::string();
}

void Kernel::launch(const Problem& p, std::int64_t rows_per_launch) const {
  if (const std::string why = unsupported(p); !why.empty()) throw std::invalid_argument(why);
  if (p.empty()) return;
  if (const std::string why = bad_pointers(p, traits_.in_place); !why.empty())
    throw std::invalid_argument(label() + ": " + why);
  if (const std::string why = misaligned(p, traits_.alignment); !why.empty())
    throw std::invalid_argument(label() + ": " + why);
  for (std::int64_t first = 0; first < p.rows; first += rows_per_launch) {
    Problem slice = p;
    slice.rows = std::min(rows_per_launch, p.rows - first);
    slice.in = static_cast<const char*>(p.in) + first * p.in_stride * std::int64_t(bytes_per_element(p.in_type));
    slice.out = static_cast<char*>(p.out) + first * p.out_stride * std::int64_t(bytes_per_element(p.out_type));
    if (p.temperatures) slice.temperatures = p.temperatures + first;
    try {
      // Who checks must be told what the launch may touch; for others that would only cost allocations.
      if (!machine().simulated())
        launch_(slice);
      else
        machine().within(regions(slice, workspace(p), traits_.keeps_workspace), [&] { launch_(slice); });
    } catch (const OutOfMemory&) {
      throw;
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(label() + " (" + std::string(file_) + "): " + e.what());
    }
  }
}

Traffic Kernel::traffic(const Problem& p) const {
  const Traits& by = choice(p).kernel->traits();
  const std::int64_t elements = p.rows * p.cols;
  return {by.reads * elements * std::int64_t(bytes_per_element(p.in_type)),
          by.writes * elements * std::int64_t(bytes_per_element(p.out_type))};
}

Plan Kernel::plan(const Problem& p) const { return traits_.plan ? traits_.plan(p) : Plan(); }

Choice Kernel::choice(const Problem& p) const { return traits_.choice ? traits_.choice(p) : Choice{this, plan(p)}; }

std::int64_t Kernel::workspace(const Problem& p) const { return traits_.workspace ? traits_.workspace(p) : 0; }

std::ostream& operator<<(std::ostream& out, const Kernel& k) {
  return out << k.label() << " on the " << k.machine().id() << " (" << k.name() << ")";
}

std::span<const Kernel* const> kernels() {
  static const std::vector<const Kernel*> all = sorted();
  return all;
}

bool register_kernel(const Kernel& kernel) {
  registered().push_back(&kernel);
  return true;
}

}  // namespace softmax
