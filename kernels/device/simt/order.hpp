#pragma once
// Happens-before: which past accesses a thread may rely on. Barriers order whole scopes, __syncwarp the lanes it names, and
// a fence before an atomic store with a fence behind the atomic load that sees it order two threads anywhere. Shuffles
// and votes order nothing: CUDA promises no more.

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/device/simt/executor.hpp"

namespace softmax::device::simt {

struct Thread;
struct Block;
struct Launch;

// When some lanes of a warp did something. Copies that an mbarrier counts are those of a warp of the barrier's own, its
// phases their ages; no barrier of threads covers them.
struct Stamp {
  std::uint32_t block = 0;  // serial number, over all launches of the program; 0: never
  std::uint32_t epoch = 0;  // barriers that the block had passed
  std::uint32_t age = 0;    // events of the warp before it
  std::uint32_t lanes = 0;
  std::uint16_t warp = 0;
  std::uint16_t site = 0;
};
inline constexpr std::uint16_t kFirstCopier = 32;  // of a block's warps, the first that is none

// What a thread has learnt from others through atomics, in the order of blocks and ranks.
class Knowledge {
 public:
  static constexpr std::uint32_t kAll = ~std::uint32_t{0};
  // A thread's actions before an age of its warp; or, of rank kAll, all of a block's before an epoch.
  struct Fact {
    std::uint32_t block, rank, before;
  };
  bool empty() const { return facts_.empty(); }
  void learn(const Knowledge&);
  void learn(Fact f) { learn(Knowledge(f)); }
  bool covers(const Stamp&) const;
  Knowledge() = default;

 private:
  explicit Knowledge(Fact f) : facts_{f} {}
  std::uint32_t before(std::uint32_t block, std::uint32_t rank) const;
  std::vector<Fact> facts_;
};

// What the lanes of one warp know of each other, since the last barrier of the block.
struct WarpOrder {
  std::uint32_t age = 1;             // moves on with each event that orders
  std::uint32_t known_to_all = 0;    // every lane knows what happened before this age
  std::vector<std::uint32_t> known;  // [lane][other]: a lane knows what the other did before that age; empty: nothing

  void sync(unsigned mask);
  std::uint32_t knows(unsigned lane, unsigned other) const;
};

// The order of one launch.
class Order {
 public:
  void begin() { *this = {}; }
  // Other blocks become resident. Those before never act again; what they released stays at the addresses.
  void admit();
  // Does everything that the stamp stands for happen before what `now` does next?
  bool before(const Stamp&, const Thread& now) const;

  // All threads of the scope, of which `block` is one block, met.
  void barrier(Scope, Launch&, Block& block);
  void sync_warp(Block&, unsigned warp, unsigned mask);
  void fence(Thread&, Scope);
  // Of an mbarrier: what a thread knows goes into it and comes out of it.
  void release(Thread& t, Knowledge& to) { to.learn(snapshot(t)); }
  void acquire(Thread& t, const Knowledge& from) { mine(t).acquired.learn(from); }
  // `owner` tells apart what different blocks keep at one address of shared memory.
  void atomic(Thread&, std::uintptr_t address, std::uint32_t owner, bool load, bool store);

 private:
  // In a block, a fence of that scope is enough.
  struct Both {
    Knowledge anywhere, in_block;
    void learn(const Both&);
  };
  // What a fence let go, what waits for a fence to be acquired, and what was. A fence is sequentially consistent, so
  // what it did holds beyond a barrier, for another thread's atomics too.
  struct OfThread {
    Knowledge acquired;
    Both pending, released;
    void learn(const OfThread&);
  };
  struct OfAddress {
    std::uint32_t owner = 0;
    Knowledge released;
    std::map<std::uint32_t, Knowledge> in_block;
  };
  static std::uint64_t key(const Thread&);
  OfThread& mine(const Thread&);  // to be changed
  template <class Each>
  void join(Each each);
  Knowledge snapshot(Thread&);

  // Empty but for launches with fences.
  bool fenced_ = false;
  std::unordered_map<std::uint64_t, std::shared_ptr<OfThread>> threads_;  // shared by those that met
  std::unordered_map<std::uintptr_t, OfAddress> addresses_;
};

}  // namespace softmax::device::simt
