#pragma once
// From a problem to one of a kernel's instances.

#include "kernels/collective/slice.hpp"

namespace softmax::collective {
inline namespace SOFTMAX_BACKEND {

using Instance = void (*)(Args);

// Calls `Of<In, Out>::at(i)` for the problem's types: the i-th instance.
template <template <class, class> class Of>
static Instance instance(Types t, int i) {
  if (t.out == DataType::fp32) {
    if (t.in == DataType::fp32) return Of<float, float>::at(i);
    return t.in == DataType::fp16 ? Of<__half, float>::at(i) : Of<__nv_bfloat16, float>::at(i);
  }
  return t.in == DataType::fp16 ? Of<__half, __half>::at(i) : Of<__nv_bfloat16, __nv_bfloat16>::at(i);
}

// Whether the next launch finds registers beside one of so many blocks.
inline bool leaves_room(long blocks, int threads) {
  return 2 * blocks * threads <= 1024L * device::limits().multiprocessors;
}

__host__ __device__ __forceinline__ constexpr long divide_up(long a, long b) { return (a + b - 1) / b; }
// Elements of a vector: 16 bytes of the wider type.
inline int vector_elements(Types t) { return t.in == DataType::fp32 || t.out == DataType::fp32 ? 4 : 8; }
inline int vector_bytes(Types t) { return vector_elements(t) * (t.in == DataType::fp32 ? 4 : 2); }
// How often Slice::reduce rescales what an element is in, at most: at a group of vectors, the row's ends, and the last group
// of each batch in shared memory.
inline long rescales(const Plan& by, Types t) {
  const int group = 16 / vector_elements(t), staged = by.vectors < 4 ? 1 : 2;
  return divide_up(by.vectors, group) + 1 + (by.shared > 0 ? by.shared / staged + 4 : 0);
}
// Vectors of a row's longest slice of `parts`: at most, wherever the row begins.
inline long slice_vectors(const Problem& p, int threads, int parts) {
  const long align = threads >= 128 ? 128 / (p.in_type == DataType::fp32 ? 4 : 2) : vector_elements(p.types());
  const long whole = p.cols / vector_elements(p.types()), line = align / vector_elements(p.types());
  return parts == 1 ? whole : divide_up(divide_up(whole, line), parts) * line;
}

inline Args args_of(const Problem& p, const Plan& plan) {
  return {.in = p.in,
          .out = p.out,
          .rows = p.rows,
          .cols = p.cols,
          .in_stride = p.in_stride,
          .out_stride = p.out_stride,
          .scale = scale_at(p.temperature),
          .temperatures = p.temperatures,
          .shared = plan.shared,
          .blocks = plan.blocks,
          .share = slice_vectors(p, plan.threads, plan.blocks),
          .workspace = p.workspace,
          .overlap = p.overlap};
}
// Calls `start` with as many rows at a time as a grid has room for at `blocks` a row.
template <class Start>
static void for_rows(const Problem& p, Args a, long blocks, Start start) {
  const long most = (long(1) << 30) / blocks;
  for (long first = 0; first < p.rows; first += most) {
    a.rows = p.rows - first < most ? p.rows - first : most;
    a.in = static_cast<const char*>(p.in) + first * p.in_stride * (p.in_type == DataType::fp32 ? 4 : 2);
    a.out = static_cast<char*>(p.out) + first * p.out_stride * (p.out_type == DataType::fp32 ? 4 : 2);
    if (p.temperatures) a.temperatures = p.temperatures + first;
    start(a);
  }
}
// What `Find` finds.
template <int (*Find)(const Problem&, Plan&)>
static Plan planned(const Problem& p) {
  Plan found;
  Find(p, found);
  return found;
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
