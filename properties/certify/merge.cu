// The collective's merges, each alone in a kernel.
#include "kernels/collective/online.hpp"
#include "kernels/prelude.hpp"
#include "properties/certify/merge.hpp"

namespace {

using namespace softmax;
using softmax::merge::Pair;

__device__ collective::MaxSum as_pair(Pair p) { return {p.max, p.sum}; }

__global__ void merge_two(const Pair* a, const Pair* b, Pair* out, int count, float scale) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const collective::MaxSum all = collective::merge(as_pair(a[i]), as_pair(b[i]), scale);
  out[i] = {all.max, all.sum};
}
__global__ void merge_warp(const Pair* in, Pair* out, float scale) {
  const int i = int(blockIdx.x * 32 + threadIdx.x);
  const collective::MaxSum all = collective::warp_merge(as_pair(in[i]), scale);
  out[i] = {all.max, all.sum};
}

void two(const Pair* a, const Pair* b, Pair* out, int count, float scale) {
  device::launch(merge_two,
                 {.blocks = unsigned((count + 127) / 128), .threads = 128, .stream = device::machine().stream()}, a, b,
                 out, count, scale);
}
void warps(const Pair* in, Pair* out, int warps, float scale) {
  device::launch(merge_warp, {.blocks = unsigned(warps), .threads = 32, .stream = device::machine().stream()}, in, out,
                 scale);
}
[[maybe_unused]] const bool kRegistered = merge::register_merger({&device::machine, two, warps});

}  // namespace
