#pragma once
// From a problem to one of a kernel's instances.

#include <limits>

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
inline int vector_bytes(Types t) { return vector_elements(t) * int(bytes_per_element(t.in)); }
// How often Slice::reduce rescales what an element is in, at most: at a group of vectors but the first, the row's ends, and the
// last group of each batch in shared memory. `tiles` in turn, of which one has the ends.
inline long rescales(const Plan& by, Types t, long tiles = 1) {
  const int group = 16 / vector_elements(t), staged = by.vectors < 4 ? 1 : 2;
  return tiles * divide_up(by.vectors, group) + (by.shared > 0 ? by.shared / staged + 4 : 0);
}
// Whether rows begin at vectors, in and out, and have whole ones.
inline bool regular(const Problem& p) {
  const int n = vector_elements(p.types());
  const auto whole = [n](const void* at, long stride, DataType type) {
    return reinterpret_cast<std::uintptr_t>(at) % (n * bytes_per_element(type)) == 0 && stride % n == 0;
  };
  return p.cols % n == 0 && whole(p.in, p.in_stride, p.in_type) && whole(p.out, p.out_stride, p.out_type);
}
// How many additions an element passes through there: its vector's others, the other vectors, and the thread's end.
inline long additions(const Plan& by, Types t, long tiles = 1) {
  return vector_elements(t) - 1 + tiles * by.vectors + by.shared;
}
// Of a tree, on the way from one of its leaves.
inline int levels(long leaves) {
  int up = 0;
  while (1L << up < leaves) ++up;
  return up;
}
// Vectors of a row's longest slice of `parts`: at most, wherever the row begins.
inline long slice_vectors(const Problem& p, int threads, int parts) {
  const long align = threads >= 128 ? 128 / long(bytes_per_element(p.in_type)) : vector_elements(p.types());
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
          .scale = fine_scale_at(p.temperature),
          .temperatures = p.temperatures,
          .shared = plan.shared,
          .blocks = plan.blocks,
          .share = slice_vectors(p, plan.threads, plan.blocks),
          .workspace = p.workspace,
          .overlap = p.overlap};
}
// `blocks` of a plan that has shared memory for its threads' vectors, and 16 bytes where it needs none.
inline device::Grid grid_of(const Problem& p, const Plan& by, long blocks) {
  return {.blocks = unsigned(blocks),
          .threads = unsigned(by.threads),
          .shared = std::size_t(by.shared * by.threads * vector_bytes(p.types()) + 16),
          .stream = p.stream,
          .overlap = p.overlap};
}
// Whether a grid has so many.
inline bool launches(long blocks) { return blocks <= std::numeric_limits<int>::max(); }
// What `Find` finds.
template <int (*Find)(const Problem&, Plan&)>
static Plan planned(const Problem& p) {
  Plan found;
  Find(p, found);
  return found;
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
