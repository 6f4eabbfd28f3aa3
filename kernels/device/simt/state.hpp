#pragma once
// What the scheduler knows of a launch while it runs; executor.cpp moves it, report.cpp reads it.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <vector>

#include "kernels/device/simt/arena.hpp"
#include "kernels/device/simt/executor.hpp"
#include "kernels/device/simt/fiber.hpp"
#include "kernels/device/simt/order.hpp"
#include "kernels/device/simt/requests.hpp"

namespace softmax::device::simt {

enum class State : unsigned char { ready, spinning, at_warp, at_block, at_cluster, at_grid, returned };

// Of a thread's barrier_arrive: whether the others have come since.
enum class Arrival : unsigned char { none, pending, met };

// What __pipeline_memcpy_async has not done yet.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes, group;
  std::uintptr_t pc;
};

struct Block;
struct Thread {
  Fiber fiber;
  State state;
  Index index;
  Block* block;
  unsigned rank;      // in the block
  std::size_t order;  // in the schedule
  Where where;
  // What a waiting lane brought to its warp, and what it asked for.
  const void* value;
  void* result;
  int source;
  int votes;
  Arrival arrival;
  std::vector<Copy> copies;
  std::size_t groups;   // of copies that it has committed
  int strong_in_a_row;  // atomic and volatile accesses since the thread last waited: it may be spinning
};

// Lanes of one warp that wait for each other under one mask.
struct Meeting {
  unsigned mask, arrived;
  Meet kind;
  std::size_t bytes;
  Where where;
};

struct Warp {
  unsigned present, returned;  // lanes
  std::vector<Meeting> meetings;
  WarpOrder order;
  RequestLog* requests;
};

// A barrier of any scope: who came, and from where.
struct Barrier {
  std::int64_t arrived = 0, returned = 0;
  int votes = 0;
  Where where{};
};

struct Block {
  Index index;
  std::int64_t number;
  std::uint32_t serial;  // over all launches of the program
  // Barriers that it has passed, and how many of those before its grid and its cluster last met.
  std::uint32_t epoch, grid_epoch, cluster_epoch;
  unsigned cluster_rank;
  Thread* threads;
  std::vector<Warp> warps;
  Barrier barrier;
  Barrier* cluster_barrier;
  Arena* arena;
};

// An mbarrier, and the copies under way that count on it.
struct MbarrierState {
  struct Flight {
    void* to;
    const void* from;  // null: the value
    std::uint64_t value;
    std::size_t bytes;
  };
  Block* block;
  std::uint16_t number;  // in the launch
  unsigned arrivals, awaited;
  std::int64_t bytes = 0;   // still expected
  std::uint32_t phase = 0;  // how many are complete
  Knowledge released{};     // what those knew who arrived and copied
  std::vector<Flight> flights{};
};

// The threads that are resident together and everything the scheduler knows of them.
struct Launch {
  Geometry geometry;
  void (*body)(void*);
  void* argument;
  unsigned threads_per_block;
  std::uint32_t first_serial;
  SharedLayout layout;
  std::vector<Block> blocks;  // resident
  std::vector<Barrier> cluster_barriers;
  Barrier grid_barrier;
  std::map<std::uint64_t*, MbarrierState> mbarriers;
  std::uint16_t mbarriers_made = 0;
  std::vector<std::size_t> by_order;  // thread of each place in the schedule
  std::vector<std::uint64_t> ready;   // a bit for each place
  std::size_t first_ready = 0;        // no bit before this word
  std::exception_ptr error;
  std::int64_t live = 0, spinning = 0;
};

// Do two resident blocks belong to one scope?
inline bool together(Scope scope, const Block& a, const Block& b) {
  return scope == Scope::grid || &a == &b || (scope == Scope::cluster && a.cluster_barrier == b.cluster_barrier);
}

// The launch and the thread that run now.
extern constinit thread_local Launch* launch;
extern constinit thread_local Thread* current;

// A thread ends: its copies are made. A block ends: none may be under way to it.
void finish_copies(Thread&);
void refuse_flights(const Block&);

// For reports: "v2_shared.cu:31", "a shuffle", "block 7", and who waits where in a block, one clause a place.
std::string at(Where);
const char* spell(Scope);
const char* spell(Meet);
std::string describe(const Block&);
std::string roll_call(const Block&);

}  // namespace softmax::device::simt
