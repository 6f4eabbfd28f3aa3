#include "kernels/library/softmax.hpp"

#include <cstdint>

#include "kernels/kernel.hpp"
#include "kernels/library/table.hpp"
#include "kernels/machine.hpp"

namespace softmax {
namespace {

// Every error in the types that the header promises.
template <class F>
auto typed(F f) {
  try {
    return f();
  } catch (const std::invalid_argument& e) {
    throw InvalidProblem(e.what());
  } catch (const std::runtime_error& e) {
    throw DeviceError(e.what());
  }
}

// Auto of a machine; null where the library was built without it.
const Kernel* automatic(bool simulated) {
  for (const Kernel* k : kernels())
    if (k->label() == "Auto" && k->machine().simulated() == simulated) return k;
  return nullptr;
}
const Kernel& on(Device device) {
  if (device != Device::best && device != Device::gpu && device != Device::cpu)
    throw InvalidProblem("there is no softmax::Device " + std::to_string(int(device)));
  static const Kernel *const gpu = automatic(false), *const cpu = automatic(true);
  const Kernel* const wanted = device == Device::gpu || (device == Device::best && gpu) ? gpu : cpu;
  if (!wanted)
    throw DeviceError(device == Device::gpu ? "no GPU: this library was built without CUDA (SOFTMAX_CUDA)"
                                            : "this library was built without the CPU device (SOFTMAX_CPU_DEVICE)");
  if (std::string why = wanted->machine().unavailable(); !why.empty()) throw DeviceError(why);
  return *wanted;
}
const Kernel& taking(const Problem& p, Device device) {
  const Kernel& kernel = on(device);
  if (const std::string why = kernel.unsupported(p); !why.empty()) throw InvalidProblem(why);
  return kernel;
}

// Whether `at` is inside a matrix that begins at `begin`.
bool within(const void* at, const void* begin, const Problem& p, std::int64_t stride, DataType type) {
  const std::uintptr_t bytes = std::uintptr_t((p.rows - 1) * stride + p.cols) * bytes_per_element(type);
  return std::uintptr_t(at) - std::uintptr_t(begin) < bytes;
}

// Without one the blocks of a launch would meet at address 0; inside the data, in these. Where it ends is not looked at,
// since to know that would cost each call more than the rest of this.
void check_workspace(const Kernel& kernel, const Problem& p) {
  if (std::uintptr_t(p.workspace) % 16 != 0) throw InvalidProblem("the workspace must begin at a multiple of 16 bytes");
  if (p.workspace) {
    if (within(p.workspace, p.in, p, p.in_stride, p.in_type) || within(p.workspace, p.out, p, p.out_stride, p.out_type))
      throw InvalidProblem("the workspace begins inside the input or the output");
    return;
  }
  const bool sliced = p.rows > Kernel::kRowsPerLaunch;  // then the last launch may be another's
  if (sliced ? kernel.workspace(p) > 0 : kernel.choice(p).kernel->traits().workspace != nullptr)
    throw InvalidProblem("Problem::workspace is null, and must be " + std::to_string(kernel.workspace(p)) + " bytes");
}

}  // namespace

void forward(const Problem& p, Device device) {
  typed([&] {
    const Kernel& kernel = taking(p, device);
    if (p.empty()) return;
    check_workspace(kernel, p);
    kernel.launch(p);
  });
}

std::int64_t workspace_bytes(const Problem& p, Device device) {
  return typed([&] {
    const Kernel& kernel = taking(p, device);
    return p.empty() ? 0 : kernel.workspace(p);
  });
}

std::string picked(const Problem& p, Device device) {
  return typed([&] {
    const Kernel& kernel = taking(p, device);
    return p.empty() ? std::string() : to_string(kernel.choice(p));
  });
}

void load_table(const std::string& path) { set_table(read_table(path)); }

}  // namespace softmax
