#pragma once
// What a kernel file includes, and the only thing.

#include "kernels/device/device.hpp"
#include "kernels/kernel.hpp"

// Last line of a kernel file: SOFTMAX_KERNEL(9, "v9_name", "idea in one line", launch), then any traits by name, as in
// `.blocks = {32}`. It registers `void launch(const softmax::Problem&)` on the machine that the file is compiled for.
// The problem is not empty and its block size is one of the traits'.
#define SOFTMAX_KERNEL(version, name, idea, launch, ...) \
  SOFTMAX_REGISTER(__LINE__, version, name, idea, launch, __VA_ARGS__)
// The line makes the names unique, for files of several kernels.
#define SOFTMAX_REGISTER(line, ...) SOFTMAX_REGISTER_ON(line, __VA_ARGS__)
#define SOFTMAX_REGISTER_ON(line, version, name, idea, launch, ...)                                                \
  static const ::softmax::Kernel softmax_kernel_##line(version, name, idea, __FILE__, &::softmax::device::machine, \
                                                       launch, ::softmax::Traits{__VA_ARGS__});                    \
  [[maybe_unused]] static const bool softmax_registered_##line = ::softmax::register_kernel(softmax_kernel_##line);
