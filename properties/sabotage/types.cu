// Kernels of every type, with plans, temperature and work in place, and one thing wrong each time. V940 has nothing wrong.
#include "kernels/narrow.hpp"
#include "kernels/prelude.hpp"

namespace {

using softmax::DataType;

template <DataType type>
struct Memory {
  using Word = unsigned short;
  __device__ static float load(Word w) {
    return type == DataType::fp16 ? softmax::from_fp16(w) : softmax::from_bf16(w);
  }
  __device__ static Word store(float x) { return type == DataType::fp16 ? softmax::to_fp16(x) : softmax::to_bf16(x); }
};
template <>
struct Memory<DataType::fp32> {
  using Word = float;
  __device__ static float load(float x) { return x; }
  __device__ static float store(float x) { return x; }
};

struct typed {
  template <class In>
  __device__ static float add(float sum, float e) {
    return sum + e;
  }
  template <class Out>
  __device__ static auto store(float y) {
    return Out::store(y);
  }
  __device__ static float scale(float temperature) { return 1 / temperature; }
  // A product that the compiler must not fuse: the maximum was found without.
  __device__ static float below(float x, float scale, float max) { return __fmul_rn(x, scale) - max; }
  template <class Out>
  __device__ static void early(typename Out::Word&) {}
};

// A thread a row. The workspace holds a zero for each, and does so afterwards.
template <class S, class In, class Out>
__global__ void softmax_typed(const typename In::Word* in, typename Out::Word* out, const float* zeros, int rows,
                              long cols, long in_stride, long out_stride, float temperature,
                              const float* temperatures) {
  const int row = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  const typename In::Word* x = in + row * in_stride;
  typename Out::Word* y = out + row * out_stride;
  const float scale = S::scale(temperatures ? temperatures[row] : temperature);
  float max = -INFINITY, sum = zeros[row];
  for (long i = 0; i < cols; ++i) max = fmaxf(max, In::load(x[i]) * scale);
  for (long i = 0; i < cols; ++i) {
    sum = S::template add<In>(sum, expf(S::below(In::load(x[i]), scale, max)));
    S::template early<Out>(y[i]);
  }
  for (long i = 0; i < cols; ++i) y[i] = S::template store<Out>(expf(S::below(In::load(x[i]), scale, max)) / sum);
}

template <class S, DataType in, DataType out>
void launch_as(const softmax::Problem& p) {
  using In = Memory<in>;
  using Out = Memory<out>;
  const unsigned threads = p.plan.threads ? unsigned(p.plan.threads) : 64;
  softmax::device::launch(
      softmax_typed<S, In, Out>,
      {.blocks = unsigned((p.rows + threads - 1) / threads), .threads = threads, .stream = p.stream},
      static_cast<const typename In::Word*>(p.in), static_cast<typename Out::Word*>(p.out),
      static_cast<const float*>(p.workspace), int(p.rows), p.cols, p.in_stride, p.out_stride, p.temperature,
      p.temperatures);
}

template <class S>
void launch(const softmax::Problem& p) {
  using enum DataType;
  if (p.in_type == fp32) return launch_as<S, fp32, fp32>(p);
  if (p.in_type == fp16) return p.out_type == fp16 ? launch_as<S, fp16, fp16>(p) : launch_as<S, fp16, fp32>(p);
  p.out_type == bf16 ? launch_as<S, bf16, bf16>(p) : launch_as<S, bf16, fp32>(p);
}

std::int64_t workspace(const softmax::Problem& p) { return p.rows * std::int64_t(sizeof(float)); }
softmax::Rounding rounding(const softmax::Problem& p) { return {p.cols - 1, 0}; }
softmax::Plan plan(const softmax::Problem& p) {
  softmax::Plan made = p.plan;
  if (made.threads == 0) made.threads = 64;
  if (made.vectors == 0) made.vectors = 1;
  if (made.blocks == 0) made.blocks = 1;
  return made.blocks == 1 ? made : softmax::Plan();
}

#define TYPED(version, saboteur, idea)                                                                             \
  SOFTMAX_KERNEL(version, #saboteur, idea, launch<saboteur>, .blocks = {0}, .algorithm = softmax::Algorithm::safe, \
                 .reads = 3, .alignment = 2,                                                                       \
                 .types = {softmax::Types{},                                                                       \
                           {DataType::fp16, DataType::fp16},                                                       \
                           {DataType::bf16, DataType::bf16},                                                       \
                           {DataType::bf16, DataType::fp32},                                                       \
                           {DataType::fp16, DataType::fp32}},                                                      \
                 .in_place = true, .temperature = true, .keeps_workspace = true, .workspace = workspace,           \
                 .rounding = rounding, .plans = {softmax::Plan{64, 1}, softmax::Plan{128, 2}}, .plan = plan)

TYPED(940, typed, "No sabotage: every type, plans, temperatures and work in place must keep every law.")

struct narrow_sum : typed {
  template <class In>
  __device__ static float add(float sum, float e) {
    return In::load(In::store(sum + e));
  }
};
TYPED(941, narrow_sum, "The sum is kept in the input's type.")

struct truncates : typed {
  template <class Out>
  __device__ static auto store(float y) {
    const auto word = Out::store(y);
    if constexpr (sizeof word == 4)
      return word;
    else
      return typename Out::Word(Out::load(word) > y ? word - 1 : word);
  }
};
TYPED(942, truncates, "The output is cut off to its type, not rounded.")

struct lukewarm : typed {
  __device__ static float scale(float) { return 1; }
};
TYPED(943, lukewarm, "The temperature is not looked at.")

struct hasty : typed {
  template <class Out>
  __device__ static void early(typename Out::Word& y) {
    y = Out::store(0);
  }
};
TYPED(944, hasty, "The output is zeroed before the input is read for the last time.")

struct fused : typed {
  __device__ static float below(float x, float scale, float max) { return __fmaf_rn(x, scale, -max); }
};
TYPED(945, fused, "x / T is rounded for the maximum and not where it is subtracted.")

}  // namespace
