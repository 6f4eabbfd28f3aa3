#pragma once
// NVIDIA's own softmax as a pseudo-version: measured and verified as ours are, registered nowhere. The library is loaded
// when it is asked for, so that the program starts on a machine without it.

#include <string>

#include "kernels/kernel.hpp"

namespace softmax::bench {

// `kernel` is null where cuDNN cannot be used, and then `why_not` says why. `version` as in "9.19.0", of the library that
// was loaded. The kernel has version 0, name "cudnn", and chooses its own block. machine.last_launch() knows nothing of
// its launches.
struct Cudnn {
  const Kernel* kernel = nullptr;
  std::string version, why_not;
};
// Of the first machine that it is called with.
const Cudnn& cudnn(Machine&);

}  // namespace softmax::bench
