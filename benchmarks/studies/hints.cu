// Claim (4.1, 4.4): __ldcs and __stcs, which keep streaming data out of the caches, make softmax faster.
// Measured: hints one at a time, on loads and on stores, over 1 GiB: where everything is read once (reads:1, a vector of 16
// bytes a thread), and where a block reads its row of 50257 twice, as softmax does (reads:2): for its maximum, and to
// subtract it. `ldcs-first` hints at what comes again, `ldcs-second` at what does not. GB/s counts one read and one write.
// Refuted if plain is best where data stream, or if a hint on the first of two reads gains anything.
#include "benchmarks/studies/study.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax::studies;

enum class Load { plain, ldcs, ldcg, ldg };
enum class Store { plain, stcs, stcg, stwt };
template <Load kLoad, class T>
__device__ T load(const T* at) {
  if constexpr (kLoad == Load::ldcs) return __ldcs(at);
  if constexpr (kLoad == Load::ldcg) return __ldcg(at);
  if constexpr (kLoad == Load::ldg) return __ldg(at);
  return *at;
}
template <Store kStore, class T>
__device__ void store(T* at, T value) {
  if constexpr (kStore == Store::stcs) return __stcs(at, value);
  if constexpr (kStore == Store::stcg) return __stcg(at, value);
  if constexpr (kStore == Store::stwt) return __stwt(at, value);
  *at = value;
}

template <Load kLoad, Store kStore>
__global__ void once(const float4* in, float4* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  store<kStore>(&out[i], load<kLoad>(&in[i]));
}
template <Load kLoad, Store kStore = Store::plain>
void launch_once(const Problem& p) {
  softmax::device::launch(
      once<kLoad, kStore>,
      {.blocks = unsigned(p.elements / 4 / p.block), .threads = unsigned(p.block), .stream = p.stream},
      reinterpret_cast<const float4*>(p.in), reinterpret_cast<float4*>(p.out));
}
Cost cost_once(const Problem& p) {
  const std::int64_t elements = p.simulated ? 1 << 14 : 1 << 28;
  return {.elements = elements, .outputs = elements, .bytes = 8 * elements};
}
Want same(const Input& in, std::int64_t i, const Problem&) { return {in(i), 0}; }

// No restricted pointers: the compiler would mix loads and stores, in another way for each hint.
constexpr int kUnroll = 8;
// Two blocks a multiprocessor, whatever a hint does to the compiler's choice of registers.
template <Load kFirst, Load kSecond, Store kStore>
__global__ void __launch_bounds__(1024, 2) twice(const float* in, float* out, int cols) {
  SHARED(maxima, float[32]);
  const float* x = in + blockIdx.x * std::int64_t(cols);
  float* y = out + blockIdx.x * std::int64_t(cols);
  const int threads = int(blockDim.x), thread = int(threadIdx.x);
  float max = -INFINITY;
#pragma unroll 1
  for (int first = thread; first < cols; first += kUnroll * threads) {
    float batch[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      batch[u] = first + u * threads < cols ? load<kFirst>(&x[first + u * threads]) : -INFINITY;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) max = fmaxf(max, batch[u]);
  }
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
  if (thread % 32 == 0) maxima[thread / 32] = max;
  __syncthreads();
  for (int w = 0; w < threads / 32; ++w) max = fmaxf(max, maxima[w]);
#pragma unroll 1
  for (int first = thread; first < cols; first += kUnroll * threads) {
    float batch[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u * threads < cols) batch[u] = load<kSecond>(&x[first + u * threads]);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u * threads < cols) store<kStore>(&y[first + u * threads], batch[u] - max);
  }
}
constexpr int cols(const Problem& p) { return p.simulated ? 1571 : 50257; }
template <Load kFirst, Load kSecond, Store kStore = Store::plain>
void launch_twice(const Problem& p) {
  softmax::device::launch(twice<kFirst, kSecond, kStore>,
                          {.blocks = unsigned(p.elements / cols(p)), .threads = unsigned(p.block), .stream = p.stream},
                          p.in, p.out, cols(p));
}
Cost cost_twice(const Problem& p) {
  const std::int64_t elements = cols(p) * std::int64_t(p.simulated ? 4 : 5341);
  return {.elements = elements, .outputs = elements, .bytes = 8 * elements};
}
// One subtraction, rounded once.
Want below_maximum(const Input& in, std::int64_t i, const Problem& p) {
  const double max = in.max(i / cols(p) * cols(p), cols(p));
  return {in(i)-max, (max - in(i)) * 0x1p-24};
}

}  // namespace

SOFTMAX_STUDY("hints",
              .variants = {{"plain", "no hint", launch_once<Load::plain>},
                           {"ldcs", "__ldcs: loads that stream", launch_once<Load::ldcs>},
                           {"ldcg", "__ldcg: loads past L1", launch_once<Load::ldcg>},
                           {"ldg", "__ldg: loads of what is constant", launch_once<Load::ldg>},
                           {"stcs", "__stcs: stores that stream", launch_once<Load::plain, Store::stcs>},
                           {"stcg", "__stcg: stores past L1", launch_once<Load::plain, Store::stcg>},
                           {"stwt", "__stwt: stores through to memory", launch_once<Load::plain, Store::stwt>}},
              .axes = {{"reads", {1}}}, .blocks = {512}, .modes = {softmax::Mode::cold}, .cost = cost_once,
              .expected = same)
SOFTMAX_STUDY("hints",
              .variants = {{"plain", "no hint", launch_twice<Load::plain, Load::plain>},
                           {"ldcs-first", "__ldcs on what is read again", launch_twice<Load::ldcs, Load::plain>},
                           {"ldcs-second", "__ldcs on what is not", launch_twice<Load::plain, Load::ldcs>},
                           {"ldcg", "__ldcg on both reads", launch_twice<Load::ldcg, Load::ldcg>},
                           {"stcs", "__stcs", launch_twice<Load::plain, Load::plain, Store::stcs>},
                           {"stcg", "__stcg", launch_twice<Load::plain, Load::plain, Store::stcg>},
                           {"stwt", "__stwt", launch_twice<Load::plain, Load::plain, Store::stwt>}},
              .axes = {{"reads", {2}}}, .blocks = {1024}, .modes = {softmax::Mode::cold}, .cost = cost_twice,
              .expected = below_maximum)
