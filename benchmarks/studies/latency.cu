// Claim (4.1): registers are faster than shared memory, that is faster than global memory, and what is read again should
// stay as near as it can.
// Measured: one thread follows a chain in which each step needs the one before: arithmetic on a register, and pointers
// through shared memory and through global memory, lines of 128 bytes in an order that no unit foresees. Small sets are
// brought in by all threads first; `set:` tells what holds them: L1 up to about 200 KiB, L2 up to tens of MiB, or, read cold,
// memory. `global-cg` passes L1 by: the difference is what L1 saves.
// Refuted if the steps are not in the order register < shared <= L1 < L2 < memory, or L1 is no faster than L2.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;
using Address = unsigned long long;
constexpr std::int64_t kLine = 32;  // floats: 128 bytes

// A full period for every power of two, by Hull and Dobell: the multiplier is 1 mod 4, the increment odd.
__host__ __device__ constexpr std::int64_t after(std::int64_t i, std::int64_t nodes) {
  return (i * 1664525 + 1013904223) % nodes;
}

constexpr std::int64_t lines(const Problem& p) { return p.arg[0] / 128; }
constexpr bool in_l1(const Problem& p) { return p.arg[0] <= 256 << 10; }
// No multiple of a power of two that is a set: a walk of whole rounds would end where it began, and so would none.
constexpr int steps(const Problem& p) {
  return p.simulated ? 100 : p.arg[0] == 0 ? 1 << 20 : 16 + (in_l1(p) ? 1 << 16 : 1 << 14);
}

std::uint32_t pointers(std::int64_t i, const Problem& p) {
  const auto to = Address(p.in + kLine * after(i / kLine, lines(p)));
  return i % kLine > 1 ? 0 : std::uint32_t(i % kLine == 0 ? to : to >> 32);
}

template <bool kPastL1>
__device__ Address load(const float* at) {
  const Address* address = reinterpret_cast<const Address*>(at);
  return kPastL1 ? __ldcg(address) : *address;
}

template <bool kPastL1>
__global__ void chase(const float* in, float* out, std::int64_t bring, int steps) {
  Address seen = 0;
  for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < bring; i += gridDim.x * blockDim.x)
    seen ^= load<kPastL1>(in + kLine * i);
  if (seen == 1) out[0] = -1;  // never, but the loads have a use
  __syncthreads();
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  const float* at = in;
#pragma unroll 16
  for (int s = 0; s < steps; ++s) at = reinterpret_cast<const float*>(load<kPastL1>(at));
  out[0] = float((at - in) / kLine);
}

// Other multiprocessors help to bring a set into L2; only the walker's own loads bring it into its L1.
template <bool kPastL1, bool kBring>
void launch_chase(const Problem& p) {
  softmax::device::launch(chase<kPastL1>,
                          {.blocks = kBring && !in_l1(p) ? 64u : 1u, .threads = unsigned(p.block), .stream = p.stream},
                          p.in, p.out, kBring ? lines(p) : 0, steps(p));
}

Cost cost(const Problem& p) { return {.elements = p.arg[0] / 4, .outputs = 1, .operations = steps(p)}; }
// Where the chain stands after all steps.
Want node(const Input&, std::int64_t, const Problem& p) {
  std::int64_t at = 0;
  for (int s = 0; s < steps(p); ++s) at = after(at, lines(p));
  return {double(at), 0};
}

// Offsets in bytes, so that a step is one load and nothing else.
constexpr int kNodes = 128;
__global__ void chase_shared(const float*, float* out, int steps) {
  SHARED(next, unsigned[kLine * kNodes]);
  for (unsigned i = threadIdx.x; i < kNodes; i += blockDim.x) next[kLine * i] = 128 * unsigned(after(i, kNodes));
  __syncthreads();
  if (threadIdx.x > 0) return;
  unsigned at = 0;
#pragma unroll 16
  for (int s = 0; s < steps; ++s) at = *reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(next) + at);
  out[0] = float(at / 128);
}
__global__ void count_up(const float* in, float* out, int steps) {
  const float one = in[0];
  float v = 0;
#pragma unroll 16
  for (int s = 0; s < steps; ++s) v = fmaf(v, one, one);
  out[0] = v;
}
template <void (*kKernel)(const float*, float*, int)>
void launch_alone(const Problem& p) {
  softmax::device::launch(kKernel, {.blocks = 1, .threads = unsigned(p.block), .stream = p.stream}, p.in, p.out,
                          steps(p));
}
Cost cost_of_counting(const Problem& p) { return {.elements = 1, .outputs = 1, .operations = steps(p)}; }
std::uint32_t ones(std::int64_t, const Problem&) { return 0x3f800000; }
Want counted(const Input&, std::int64_t, const Problem& p) { return {double(steps(p)), 0}; }

}  // namespace

SOFTMAX_STUDY("latency", .variants = {{"register", "v = v * a + b", launch_alone<count_up>}}, .blocks = {1},
              .modes = {softmax::Mode::hot}, .cost = cost_of_counting, .expected = counted, .word = ones)
SOFTMAX_STUDY("latency",
              .variants = {{"shared", "an offset leads to the next, in shared memory", launch_alone<chase_shared>}},
              .axes = {{"set", {128 * kNodes}}}, .blocks = {32}, .modes = {softmax::Mode::hot}, .cost = cost,
              .expected = node)
SOFTMAX_STUDY("latency",
              .variants = {{"global", "a pointer leads to the next", launch_chase<false, true>},
                           {"global-cg", "the same past L1, by ld.cg", launch_chase<true, true>}},
              .axes = {{"set",
                        {4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20},
                        {4 << 10, 512 << 10}}},
              .blocks = {1024}, .modes = {softmax::Mode::hot}, .cost = cost, .expected = node, .word = pointers)
SOFTMAX_STUDY("latency", .variants = {{"global", "a pointer leads to the next", launch_chase<false, false>}},
              .axes = {{"set", {16 << 20, 64 << 20, 256 << 20}, {4 << 10}}}, .blocks = {32},
              .modes = {softmax::Mode::cold}, .cost = cost, .expected = node, .word = pointers)
