#include "kernels/device/simt/source.hpp"

namespace softmax::device::simt {

SourceLine line_of(std::uintptr_t) { return {}; }  // of a program without debug information

}  // namespace softmax::device::simt
