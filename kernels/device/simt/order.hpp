#pragma once
// Happens-before: which past accesses a thread may rely on. Barriers order whole scopes, __syncwarp the lanes it names, and
// a fence before an atomic store with a fence behind the atomic load that sees it order two threads anywhere. Shuffles
// and votes order nothing: CUDA promises no more.

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "kernels/device/simt/executor.hpp"

namespace softmax::device::simt {

struct Thread;
struct Block;
struct Launch;

// When some lanes of a warp did something.
struct Stamp {
  std::uint32_t block = 0;  // serial number, over all launches of the program; 0: never
  std::uint32_t epoch = 0;  // barriers that the block had passed
  std::uint32_t age = 0;    // events of the warp before it
  std::uint32_t lanes = 0;
  std::uint16_t warp = 0;
  std::uint16_t site = 0;
};

// What one thread has learnt from others through atomics: everything before an epoch of a block, and everything before
// an age of some of its threads.
struct Knowledge {
  struct OfBlock {
    std::uint32_t epoch = 0;
    std::map<unsigned, std::uint32_t> threads;  // by rank
  };
  std::map<std::uint32_t, OfBlock> blocks;

  bool empty() const { return blocks.empty(); }
  void learn(const Knowledge&);
  bool covers(const Stamp&) const;
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
  // Does everything that the stamp stands for happen before what `now` does next?
  bool before(const Stamp&, const Thread& now) const;

  // All threads of the scope, of which `block` is one block, met.
  void barrier(Scope, Launch&, Block& block);
  void sync_warp(Block&, unsigned warp, unsigned mask);
  void fence(Thread&, Scope);
  void atomic(Thread&, std::uintptr_t address, bool load, bool store);

 private:
  struct OfThread {
    Knowledge acquired, pending, pending_in_block, released, released_in_block;
  };
  struct OfAddress {
    Knowledge released;
    std::map<std::uint32_t, Knowledge> in_block;  // by block
  };
  static std::uint64_t key(const Thread&);
  Knowledge snapshot(Thread&);

  // Empty but for launches with fences.
  std::unordered_map<std::uint64_t, OfThread> threads_;
  std::unordered_map<std::uint32_t, Knowledge> blocks_;  // what all threads of a block know
  std::unordered_map<std::uintptr_t, OfAddress> addresses_;
};

}  // namespace softmax::device::simt
