// The exps that the kernels use, each over all floats that matter.
#include "kernels/collective/slice.hpp"
#include "kernels/prelude.hpp"
#include "properties/certify/certify.hpp"

namespace {

using namespace softmax;
using softmax::certify::Answer;

// V1 to V7.
struct Expf {
  static __device__ float of(float x) { return expf(x); }
};
// The same by name, whatever the flags.
struct Fast {
  static __device__ float of(float x) { return __expf(x); }
};
struct Exp2 {
  static __device__ float of(float x) { return exp2f(x * collective::kLog2E); }
};
// V8 and later, at temperature 1.
struct Shifted {
  static __device__ float of(float x) { return collective::shifted_exp(x, 0, collective::kLog2E); }
};

// Theirs where outputs have 32 bits.
struct Fine {
  static __device__ float of(float x) { return collective::shifted_exp(x, 0, collective::fine_scale_at(1)); }
};

// Blocks of 256 threads; on the CPU device a sample has no use for more than a few.
constexpr int kBlock = 256;
constexpr int blocks(bool simulated) { return simulated ? 4 : 4096; }

template <class F>
__global__ void survey(Answer* out, double kappa, std::uint32_t step) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  Answer a;
  for (std::uint64_t at = std::uint64_t(thread) * step; at < certify::kValues; at += std::uint64_t(threads) * step) {
    const std::uint32_t bits = 0x80000000u + std::uint32_t(at);
    const float x = __uint_as_float(bits), y = F::of(x);
    const double exact = exp(double(x)), error = fabs(double(y) - exact);
    int exponent;
    frexp(exact, &exponent);
    if (exact >= 0x1p-126) {
      const double ulps = ldexp(error, 24 - exponent);
      if (ulps > a.max_ulp) a.max_ulp = ulps, a.at = x;
      const double excess = error / exact * 0x1p24 + kappa * double(x);
      if (excess > a.excess) a.excess = excess;
    } else if (error * 0x1p149 > a.below) {
      a.below = error * 0x1p149;
    }
    if (y > a.most) a.most = y;
    if (std::uint32_t(at) + 1 < certify::kValues) {
      const float next = F::of(__uint_as_float(bits + 1));
      if (next > y) {
        ++a.rises;
        const double rise = (double(next) - double(y)) / exact * 0x1p24;
        if (rise > a.rise) a.rise = rise;
      }
    }
    ++a.values;
  }
  out[thread] = a;
}
template <class F>
__global__ void at_zero(float* out) {
  *out = F::of(-0.0f * float(gridDim.x));
}

template <class F>
void launch(Answer* out, double kappa, std::uint32_t step) {
  Machine& machine = device::machine();
  device::launch(survey<F>,
                 {.blocks = unsigned(blocks(machine.simulated())), .threads = kBlock, .stream = machine.stream()}, out,
                 kappa, step);
}
template <class F>
void zero(float* out) {
  device::launch(at_zero<F>, {.blocks = 1, .threads = 1, .stream = device::machine().stream()}, out);
}
int threads() { return kBlock * blocks(device::machine().simulated()); }

using reference::kExpf, reference::kFastExp, reference::kFineExp;
#define OFFER(F, name, what, documented, fast) \
  [[maybe_unused]] const bool k##F##Offered =  \
      certify::register_exp({name, what, documented, fast, &device::machine, threads, launch<F>, zero<F>});
OFFER(Expf, "expf", "expf(x)", kExpf, kFastExp)
OFFER(Fast, "fast", "__expf(x)", kFastExp, kFastExp)
OFFER(Exp2, "exp2f", "exp2f(x * log2(e))", kFastExp, kFastExp)
OFFER(Shifted, "shifted", "ex2.approx.ftz(x * log2(e)) of V8 and later", kFastExp, kFastExp)
OFFER(Fine, "fine", "the same with what it lost given back", kFineExp, kFineExp)

}  // namespace
