// Claim (4.4): special instructions for exp are faster than the library's, and good enough.
// Measured: `exp`: x = f(-x) over and over in registers, four values a thread, one block: ns/op is of one multiprocessor.
// `exp-ulp`: f over [-104, 0], from 1 down to where a float is 0, against double: max_ulp. expf; __expf, which multiplies by
// log2(e) and takes ex2.approx; the same with exp2f; and that instruction itself. In fast math all four should be one.
// Refuted if expf is not slower where nothing waits for memory, or if the largest error of the others is not larger.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;
constexpr float kLog2E = 1.4426950408889634f;

struct Expf {
  static __device__ float of(float x) { return expf(x); }
};
struct Fast {
  static __device__ float of(float x) { return __expf(x); }
};
struct Exp2 {
  static __device__ float of(float x) { return exp2f(x * kLog2E); }
};
struct Ex2 {
  static __device__ float of(float x) {
#if SOFTMAX_BACKEND_CUDA  // elsewhere nobody calls it
    asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(x * kLog2E));
#endif
    return x;
  }
};

// exp(-x) has one fixed point, and every step from anywhere near leads towards it: no step needs anything but f, and all
// must end there. They are there after two dozen; the sum of one in four tells how many were taken.
constexpr double kOmega = 0.567143290409783873;
constexpr int kChains = 4;

template <class F>
__global__ void iterate(const float* in, float* out, int steps) {
  float x[kChains], sum = 0;
  for (int c = 0; c < kChains; ++c) x[c] = in[c * blockDim.x + threadIdx.x];
#pragma unroll 4
  for (int s = 0; s < steps; ++s) {
    for (int c = 0; c < kChains; ++c) x[c] = F::of(-x[c]);
    sum += x[0];
  }
  for (int c = 0; c < kChains; ++c) out[c * blockDim.x + threadIdx.x] = x[c];
  out[kChains * blockDim.x + threadIdx.x] = sum;
}
constexpr int steps(const Problem& p) { return p.simulated ? 64 : 8192; }
template <class F>
void launch_iterate(const Problem& p) {
  softmax::device::launch(iterate<F>, {.blocks = 1, .threads = unsigned(p.block), .stream = p.stream}, p.in, p.out,
                          steps(p));
}
Cost cost_iterate(const Problem& p) {
  const std::int64_t values = std::int64_t(kChains + 1) * p.block;
  return {.elements = values, .outputs = values, .operations = std::int64_t(steps(p)) * kChains * p.block};
}
std::uint32_t near_omega(std::int64_t i, const Problem&) { return 0x3f000000 + std::uint32_t(i % 4096) * 1024; }
// Near 0.57, where an ulp is 2^-24, no f errs by more than four (below); a step shrinks what came before to 0.57 of it, so
// errors add up to at most 4 / (1 - 0.57).
// The sum is off by what the first steps were, less than 2 in all, and by an ulp of at most 2^-11 for each step.
Want omega(const Input&, std::int64_t i, const Problem& p) {
  if (i < kChains * p.block) return {kOmega, 4 / (1 - 0.57) * 0x1p-24};
  return {steps(p) * kOmega, 2 + steps(p) * 0x1p-11};
}

template <class F>
__global__ void map(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = F::of(in[i]);
}
template <class F>
void launch_map(const Problem& p) {
  softmax::device::launch(map<F>,
                          {.blocks = unsigned(p.elements / p.block), .threads = unsigned(p.block), .stream = p.stream},
                          p.in, p.out);
}
Cost cost_map(const Problem& p) {
  const std::int64_t elements = p.simulated ? 1 << 14 : 1 << 22;
  return {.elements = elements, .outputs = elements, .bytes = 8 * elements};
}
std::uint32_t down_to_zero(std::int64_t i, const Problem& p) {
  return __builtin_bit_cast(std::uint32_t, float(-104.0 * double(i) / double(p.elements - 1)));
}
double ulp(double y) {
  int exponent;
  frexp(y, &exponent);
  return ldexp(1, exponent - 24 > -149 ? exponent - 24 : -149);
}
// NVIDIA's bound for expf is 2 ulp. That of the others grows with |x|: x * log2(e) is rounded once, by half an ulp, and
// log2(e) was, by a quarter: |x| * 1.25 * 2^-24 of the result, so many ulp where an ulp is least, and 3 for exp2 and the last
// rounding. Fast math makes expf one of them, and 0 of what is below 2^-126.
Want within(double x, double ulps, bool fast) {
  const double y = exp(x);
  return {y, ulps * ulp(y) + (fast && y < 0x1.001p-126 ? y : 0)};
}
Want exact(const Input& in, std::int64_t i, const Problem& p) {
  return within(in(i), p.fast ? 3 - 1.25 * in(i) : 2, p.fast);
}
Want approximate(const Input& in, std::int64_t i, const Problem& p) { return within(in(i), 3 - 1.25 * in(i), p.fast); }

}  // namespace

SOFTMAX_STUDY("exp",
              .variants = {{"expf", "expf(-x)", launch_iterate<Expf>},
                           {"fast", "__expf(-x)", launch_iterate<Fast>},
                           {"exp2", "exp2f(-x * log2(e))", launch_iterate<Exp2>},
                           {"ex2", "ex2.approx(-x * log2(e))", launch_iterate<Ex2>, true}},
              .blocks = {1024}, .modes = {softmax::Mode::hot}, .cost = cost_iterate, .expected = omega,
              .word = near_omega)
SOFTMAX_STUDY("exp-ulp", .variants = {{"expf", "expf over [-104, 0]", launch_map<Expf>}}, .blocks = {256},
              .modes = {softmax::Mode::hot}, .cost = cost_map, .expected = exact, .word = down_to_zero,
              .accuracy = true)
SOFTMAX_STUDY("exp-ulp",
              .variants = {{"fast", "__expf over [-104, 0]", launch_map<Fast>},
                           {"exp2", "exp2f(x * log2(e)) over [-104, 0]", launch_map<Exp2>},
                           {"ex2", "ex2.approx(x * log2(e)) over [-104, 0]", launch_map<Ex2>, true}},
              .blocks = {256}, .modes = {softmax::Mode::hot}, .cost = cost_map, .expected = approximate,
              .word = down_to_zero, .accuracy = true)
