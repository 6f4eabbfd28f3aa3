#pragma once
// Words that CUDA has only as instructions: copies that an mbarrier counts, 16 bytes at once, dependent launches.
// What needs compute capability 9.0 compiles for less, and traps there.

#include <cooperative_groups.h>

#include <cstdint>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SOFTMAX_HOPPER(...) __trap()

// CUDA leaves it out for what has no clusters.
namespace cooperative_groups {
class cluster_group {
 public:
  struct arrival_token {};
  static __device__ void sync() { __trap(); }
  static __device__ arrival_token barrier_arrive() { return __trap(), arrival_token(); }
  static __device__ void barrier_wait() { __trap(); }
  static __device__ void barrier_wait(arrival_token&&) { __trap(); }
  static __device__ unsigned block_rank() { return 0; }
  static __device__ unsigned num_blocks() { return 1; }
  template <class T>
  static __device__ T* map_shared_rank(T* address, int) {
    return __trap(), address;
  }
};
static __device__ inline cluster_group this_cluster() { return {}; }
}  // namespace cooperative_groups
#else
#define SOFTMAX_HOPPER(...) asm volatile(__VA_ARGS__)
#endif

namespace softmax::device {
inline namespace SOFTMAX_BACKEND {

#define SOFTMAX_WORD __device__ __forceinline__

// Lies in shared memory. One thread initialises it; its uses follow the fence and a barrier of all who take part.
using Mbarrier = std::uint64_t;

// A shared address of this block, or of a block of its cluster if map_shared_rank made it: the window of shared memory
// that generic addresses see is the cluster's.
SOFTMAX_WORD unsigned in_shared_window(const void* address) {
  return static_cast<unsigned>(__cvta_generic_to_shared(address));
}

// A phase is complete once `arrivals` have come and all bytes that they expect.
SOFTMAX_WORD void mbarrier_init(Mbarrier* barrier, unsigned arrivals) {
  SOFTMAX_HOPPER("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared_window(barrier)), "r"(arrivals) : "memory");
}
// Other blocks of the cluster and the copy engine see the initialisation.
SOFTMAX_WORD void mbarrier_fence_init() {
  SOFTMAX_HOPPER(
      "fence.mbarrier_init.release.cluster;\n\t"
      "fence.proxy.async.shared::cta;" ::
          : "memory");
}
// Arrives, and lets the phase wait for so many bytes more.
SOFTMAX_WORD void mbarrier_expect(Mbarrier* barrier, unsigned bytes) {
  SOFTMAX_HOPPER("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared_window(barrier)),
                 "r"(bytes)
                 : "memory");
}
// Waits until the phase of this parity is complete; the first phase has parity 0.
SOFTMAX_WORD void mbarrier_wait(Mbarrier* barrier, unsigned parity) {
  SOFTMAX_HOPPER(
      "{\n\t"
      ".reg .pred done;\n\t"
      "again:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
      "@!done bra again;\n\t"
      "}" ::"r"(in_shared_window(barrier)),
      "r"(parity)
      : "memory");
}
// Both addresses are map_shared_rank's, of one block. The value's 8 bytes count there once it is visible.
SOFTMAX_WORD void store_async(std::uint64_t* address, std::uint64_t value, Mbarrier* barrier) {
  SOFTMAX_HOPPER(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(in_shared_window(address)),
      "l"(value), "r"(in_shared_window(barrier))
      : "memory");
}
// Global to shared memory of this block, by one thread: multiples of 16 bytes at multiples of 16. What the block itself
// did in `shared` before must be fenced off with async_fence() by those who did it.
SOFTMAX_WORD void bulk_load(void* shared, const void* global, unsigned bytes, Mbarrier* barrier) {
  SOFTMAX_HOPPER("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     in_shared_window(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(in_shared_window(barrier))
                 : "memory");
}
// Asks for global memory to come into L2: multiples of 16 bytes at multiples of 16.
SOFTMAX_WORD void bulk_prefetch(const void* global, unsigned bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(global)), "r"(bytes));
#endif
}
// The copy engine sees what this thread stored, or read, before: between that and a bulk_load over it.
SOFTMAX_WORD void async_fence() { SOFTMAX_HOPPER("fence.proxy.async.shared::cta;" ::: "memory"); }

// Relaxed, at device scope, 16 bytes at once: whoever loads them sees one store's, never half of one.
SOFTMAX_WORD void store_relaxed(uint4* address, uint4 v) {
  asm volatile(
      "{\n\t"
      ".reg .b128 all;\n\t"
      "mov.b128 all, {%1, %2};\n\t"
      "st.relaxed.gpu.global.b128 [%0], all;\n\t"
      "}" ::"l"(__cvta_generic_to_global(address)),
      "l"(static_cast<unsigned long long>(v.y) << 32 | v.x), "l"(static_cast<unsigned long long>(v.w) << 32 | v.z)
      : "memory");
}
SOFTMAX_WORD uint4 load_relaxed(const uint4* address) {
  unsigned long long low, high;
  asm volatile(
      "{\n\t"
      ".reg .b128 all;\n\t"
      "ld.relaxed.gpu.global.b128 all, [%2];\n\t"
      "mov.b128 {%0, %1}, all;\n\t"
      "}"
      : "=l"(low), "=l"(high)
      : "l"(__cvta_generic_to_global(address))
      : "memory");
  return make_uint4(unsigned(low), unsigned(low >> 32), unsigned(high), unsigned(high >> 32));
}
SOFTMAX_WORD void store_relaxed(unsigned* address, unsigned value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)), "r"(value) : "memory");
}
SOFTMAX_WORD unsigned load_relaxed(const unsigned* address) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(address)) : "memory");
  return value;
}

// cluster.barrier_arrive() for those who have nothing to tell but an mbarrier that mbarrier_fence_init() covers.
SOFTMAX_WORD void cluster_arrive_relaxed() { SOFTMAX_HOPPER("barrier.cluster.arrive.relaxed.aligned;" ::); }
// Lets so many cycles pass, or a few more.
SOFTMAX_WORD void pause(unsigned cycles) {
  const long long from = clock64();
  while (clock64() - from < cycles) {
  }
}
// In a loop that waits for another thread's store.
SOFTMAX_WORD void spin() {}

// 2^x to 2 ulp, what is below 2^-126 is 0: one instruction.
SOFTMAX_WORD float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Of a launch with Grid::overlap: waits until the grids ahead of it are done and their stores visible; lets the one
// behind it begin. CUDA's own names do not compile for less than 9.0, where launches do not overlap.
SOFTMAX_WORD void grid_dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
SOFTMAX_WORD void grid_dependency_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

#undef SOFTMAX_WORD
#undef SOFTMAX_HOPPER

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device
