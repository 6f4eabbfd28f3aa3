#pragma once
// The part of cooperative groups that the CPU device speaks; names and meanings are CUDA's.

#include "kernels/device/simt/words.hpp"

namespace cooperative_groups {
inline namespace SOFTMAX_BACKEND {

namespace simt = softmax::device::simt;

class thread_block {
 public:
  SIMT_WORD unsigned thread_rank() const { return simt::thread_rank(); }
  SIMT_WORD unsigned size() const { return unsigned(simt::block_size().count()); }
  SIMT_WORD unsigned num_threads() const { return size(); }
  SIMT_WORD dim3 thread_index() const { return as_dim3(simt::thread_index()); }
  SIMT_WORD dim3 group_index() const { return as_dim3(simt::block_index()); }
  SIMT_WORD dim3 dim_threads() const { return as_dim3(simt::block_size()); }
  SIMT_WORD dim3 group_dim() const { return dim_threads(); }
  SIMT_WORD void sync(simt::Where where = {}) const { simt::barrier(simt::Scope::block, false, where); }

 private:
  SIMT_WORD static dim3 as_dim3(simt::Index i) { return {i.x, i.y, i.z}; }
};
SIMT_WORD thread_block this_thread_block() { return {}; }

// `Size` neighbouring lanes of a warp, a power of two.
template <unsigned Size>
class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0);

 public:
  SIMT_WORD unsigned thread_rank() const { return simt::thread_rank() % Size; }
  SIMT_WORD static constexpr unsigned size() { return Size; }
  SIMT_WORD static constexpr unsigned num_threads() { return Size; }
  SIMT_WORD unsigned meta_group_rank() const { return simt::thread_rank() / Size; }
  SIMT_WORD unsigned meta_group_size() const { return (unsigned(simt::block_size().count()) + Size - 1) / Size; }
  SIMT_WORD void sync(simt::Where where = {}) const {
    simt::meet(simt::Meet::sync, mask(), nullptr, nullptr, 0, 0, where);
  }
  template <class T>
  SIMT_WORD T shfl(T value, int source, simt::Where where = {}) const {
    return __shfl_sync(mask(), value, source, Size, where);
  }
  template <class T>
  SIMT_WORD T shfl_down(T value, unsigned delta, simt::Where where = {}) const {
    return __shfl_down_sync(mask(), value, delta, Size, where);
  }
  template <class T>
  SIMT_WORD T shfl_up(T value, unsigned delta, simt::Where where = {}) const {
    return __shfl_up_sync(mask(), value, delta, Size, where);
  }
  template <class T>
  SIMT_WORD T shfl_xor(T value, unsigned bits, simt::Where where = {}) const {
    return __shfl_xor_sync(mask(), value, int(bits), Size, where);
  }
  SIMT_WORD int any(int predicate, simt::Where where = {}) const { return __any_sync(mask(), predicate, where); }
  SIMT_WORD int all(int predicate, simt::Where where = {}) const { return __all_sync(mask(), predicate, where); }
  SIMT_WORD unsigned ballot(int predicate, simt::Where where = {}) const {  // the tile's first lane is bit 0
    return __ballot_sync(mask(), predicate, where) >> simt::thread_rank() % 32 / Size * Size;
  }
  SIMT_WORD unsigned mask() const {
    const unsigned first = simt::thread_rank() % 32 / Size * Size;
    return unsigned((std::uint64_t{1} << Size) - 1) << first;
  }
};
template <unsigned Size>
SIMT_WORD thread_block_tile<Size> tiled_partition(const thread_block&) {
  return {};
}
template <unsigned Size, unsigned Outer>
SIMT_WORD thread_block_tile<Size> tiled_partition(const thread_block_tile<Outer>&) {
  static_assert(Size <= Outer);
  return {};
}
template <class Group>
SIMT_WORD void sync(const Group& group, simt::Where where = {}) {
  group.sync(where);
}

// What reduce combines with.
template <class T>
struct plus {
  SIMT_WORD T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct greater {
  SIMT_WORD T operator()(T a, T b) const { return a > b ? a : b; }
};
template <class T>
struct less {
  SIMT_WORD T operator()(T a, T b) const { return a < b ? a : b; }
};

// All lanes get op over the values of all lanes, combined along a butterfly.
template <unsigned Size, class T, class Op>
SIMT_WORD T reduce(const thread_block_tile<Size>& tile, T value, Op op, simt::Where where = {}) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2) value = op(value, tile.shfl_xor(value, bits, where));
  return value;
}

class grid_group {
 public:
  SIMT_WORD void sync(simt::Where where = {}) const { simt::barrier(simt::Scope::grid, false, where); }
  SIMT_WORD unsigned long long num_blocks() const { return (unsigned long long)(simt::grid_size().count()); }
  SIMT_WORD unsigned long long block_rank() const {
    const simt::Index b = simt::block_index(), g = simt::grid_size();
    return b.x + (unsigned long long)(g.x) * (b.y + (unsigned long long)(g.y) * b.z);
  }
};
SIMT_WORD grid_group this_grid() { return {}; }

class cluster_group {
 public:
  SIMT_WORD void sync(simt::Where where = {}) const { simt::barrier(simt::Scope::cluster, false, where); }
  // A thread that has arrived may do what concerns no other block before it waits.
  struct arrival_token {};
  SIMT_WORD static arrival_token barrier_arrive(simt::Where where = {}) { return simt::arrive(where), arrival_token(); }
  SIMT_WORD static void barrier_wait(simt::Where where = {}) { simt::wait_arrived(where); }
  SIMT_WORD static void barrier_wait(arrival_token&&, simt::Where where = {}) { simt::wait_arrived(where); }
  SIMT_WORD unsigned block_rank() const { return simt::cluster_rank(); }
  SIMT_WORD unsigned num_blocks() const { return simt::cluster_blocks(); }
  template <class T>
  SIMT_WORD T* map_shared_rank(T* address, unsigned rank, simt::Where where = {}) const {
    return static_cast<T*>(simt::in_cluster(address, rank, where));
  }
};
SIMT_WORD cluster_group this_cluster() { return {}; }

}  // namespace SOFTMAX_BACKEND
}  // namespace cooperative_groups
