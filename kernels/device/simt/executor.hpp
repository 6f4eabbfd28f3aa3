#pragma once
// The CPU device's scheduler: runs the threads of a launch as fibers, one at a time, and stops at the first rule they
// break.
//
// A thread runs until it waits at a barrier or for its warp; then the one that the schedule puts first, of those that can
// run, does. That is about the most unequal progress the barriers allow, so a missing barrier shows. Blocks of a plain
// launch run one after the other; the blocks of a cluster, and all blocks of a cooperative launch, are resident together.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/machine.hpp"

namespace softmax::device::simt {

// A rule of the CUDA model that a kernel broke.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Index {
  unsigned x = 1, y = 1, z = 1;
  std::int64_t count() const { return std::int64_t(x) * y * z; }
};

// The place in a kernel that calls a word of the device, for reports. As a default argument, Where() is the caller's place.
struct Where {
  constexpr Where(const char* f = __builtin_FILE(), int l = __builtin_LINE()) : file(f), line(l) {}
  const char* file;
  int line;
};

// What the CPU device can hold; blocks and threads as on a GPU of compute capability 9.0, with fewer multiprocessors.
struct Limits {
  static constexpr int kThreadsPerBlock = 1024, kWarp = 32, kProcessors = 8, kThreadsPerProcessor = 2048;
  static constexpr int kBlocksPerProcessor = 32, kClusterBlocks = 16;
  static constexpr std::size_t kStaticShared = 48 << 10, kShared = 227 << 10, kSharedPerProcessor = 228 << 10;
};

extern int compute_capability;  // that kernels are told; the device does what 9.0 does in any case

struct Geometry {
  Index grid, block;
  std::size_t dynamic_shared = 0;  // bytes
  bool cooperative = false;
  unsigned cluster = 1;  // blocks, along x
};

// Runs body(argument) once for every thread. Throws what the body throws, or Fault, also for a launch that no GPU would
// take.
void run(const Geometry&, void (*body)(void*), void* argument);
LaunchInfo last_launch();
// On the whole device at once, in whole clusters.
int resident_blocks(const Geometry&);
void set_schedule(Schedule);

// The rest is for the words, called by the thread that runs.

// Constant for the life of a thread, so the compiler may keep them across a barrier.
[[gnu::const]] Index thread_index();
[[gnu::const]] Index block_index();
[[gnu::const]] Index block_size();
[[gnu::const]] Index grid_size();
[[gnu::const]] unsigned thread_rank();   // in the block
[[gnu::const]] unsigned cluster_rank();  // of the block in its cluster
[[gnu::const]] unsigned cluster_blocks();

enum class Scope { block, cluster, grid };
// Waits for every thread of the scope; returns how many of them came with a true predicate (Scope::block only).
int barrier(Scope, bool predicate, Where);

// The two halves of a cluster's barrier. What a thread does between them is taken for done before its cluster met if it
// was, and for done behind it otherwise.
void arrive(Where);
void wait_arrived(Where);

enum class Meet { sync, shuffle, ballot };
// Waits for the lanes of `mask` in the caller's warp. shuffle: *result = what lane `source` brought, `bytes` of it.
// ballot: result is a 32-bit mask of the lanes that brought a true bool. sync: neither.
void meet(Meet, unsigned mask, const void* value, void* result, std::size_t bytes, int source, Where);
// Of the caller's warp, those that have not returned.
unsigned live_lanes();
// __trap: throws Fault.
[[noreturn]] void trap(Where);
// Throws Fault: a shuffle's width is a power of two up to 32.
[[noreturn]] void refuse_width(int width, Where);
// Lets other threads run; every spinning wait must call it.
void spin(Where);
// __threadfence and __threadfence_block.
void fence(Scope);
// The two halves of an atomic operation. A thread that does many lets others run now and then.
void atomic_load(const void* address, void* value, std::size_t bytes);
void atomic_store(void* address, const void* value, std::size_t bytes);

// The block's own copy of a shared variable; `key` tells declarations apart.
void* shared(const void* key, const char* name, std::size_t bytes, std::size_t alignment);
void* dynamic_shared();
// See words.hpp and async.cpp.
void copy_async(void* to, const void* from, std::size_t bytes, Where);
void commit_copies();
void wait_copies(std::size_t groups);
void mbarrier_init(std::uint64_t*, unsigned arrivals, Where);
void mbarrier_expect(std::uint64_t*, unsigned bytes, Where);
void mbarrier_wait(std::uint64_t*, unsigned parity, Where);
void store_async(std::uint64_t* to, std::uint64_t value, std::uint64_t* barrier, Where);
void bulk_load(void* to, const void* from, std::size_t bytes, std::uint64_t* barrier, Where);
// Where the block of rank `rank` in the caller's cluster has what `address` is in the caller's block.
void* in_cluster(void* address, unsigned rank, Where);

}  // namespace softmax::device::simt
