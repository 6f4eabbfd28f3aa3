#include "kernels/device/simt/order.hpp"

#include <algorithm>
#include <bit>

#include "kernels/device/simt/state.hpp"

namespace softmax::device::simt {
namespace {

constexpr unsigned kLanes = 32;

// The resident block of a serial number, or null.
const Block* resident(std::uint32_t serial) {
  const std::uint32_t first = launch->blocks.front().serial;
  return serial >= first && serial - first < launch->blocks.size() ? &launch->blocks[serial - first] : nullptr;
}

}  // namespace

void Knowledge::learn(const Knowledge& other) {
  for (const auto& [serial, theirs] : other.blocks) {
    OfBlock& mine = blocks[serial];
    mine.epoch = std::max(mine.epoch, theirs.epoch);
    for (const auto& [rank, age] : theirs.threads) mine.threads[rank] = std::max(mine.threads[rank], age);
  }
}

bool Knowledge::covers(const Stamp& s) const {
  const auto found = blocks.find(s.block);
  if (found == blocks.end()) return false;
  if (s.epoch < found->second.epoch) return true;
  for (unsigned lanes = s.lanes; lanes; lanes &= lanes - 1) {
    const auto thread = found->second.threads.find(s.warp * kLanes + unsigned(std::countr_zero(lanes)));
    if (thread == found->second.threads.end() || s.age >= thread->second) return false;
  }
  return true;
}

void WarpOrder::sync(unsigned mask) {
  ++age;
  if (mask == ~0u) {
    known_to_all = age;
    known.clear();
    return;
  }
  if (known.empty()) known.assign(kLanes * kLanes, 0);
  std::uint32_t together[kLanes] = {};
  for (unsigned m = mask; m; m &= m - 1)
    for (unsigned other = 0; other < kLanes; ++other)
      together[other] = std::max(together[other], known[unsigned(std::countr_zero(m)) * kLanes + other]);
  for (unsigned m = mask; m; m &= m - 1) together[std::countr_zero(m)] = age;
  for (unsigned m = mask; m; m &= m - 1)
    std::copy_n(together, kLanes, known.begin() + std::countr_zero(m) * int(kLanes));
}

std::uint32_t WarpOrder::knows(unsigned lane, unsigned other) const {
  return std::max(known_to_all, known.empty() ? 0 : known[lane * kLanes + other]);
}

std::uint64_t Order::key(const Thread& t) { return std::uint64_t(t.block->serial) << 16 | t.rank; }

bool Order::before(const Stamp& s, const Thread& now) const {
  if (s.block < launch->first_serial) return true;  // launches follow each other
  const Block& mine = *now.block;
  Stamp unknown = s;
  if (s.block == mine.serial) {
    if (s.epoch < mine.epoch) return true;
    if (s.warp == now.rank / kLanes) {
      const WarpOrder& order = mine.warps[s.warp].order;
      unknown.lanes &= ~(1u << now.rank % kLanes);
      for (unsigned m = unknown.lanes; m; m &= m - 1)
        if (s.age < order.knows(now.rank % kLanes, unsigned(std::countr_zero(m)))) unknown.lanes &= ~(m & -m);
      if (unknown.lanes == 0) return true;
    }
  } else if (const Block* other = resident(s.block)) {
    if (s.epoch < other->grid_epoch) return true;
    if (other->cluster_barrier == mine.cluster_barrier && s.epoch < other->cluster_epoch) return true;
  }
  const auto thread = threads_.find(key(now));
  if (thread != threads_.end() && thread->second.acquired.covers(unknown)) return true;
  const auto block = blocks_.find(mine.serial);
  return block != blocks_.end() && block->second.covers(unknown);
}

void Order::barrier(Scope scope, Launch& l, Block& one) {
  Knowledge all;
  const auto each = [&](auto visit) {
    for (Block& b : l.blocks)
      if (together(scope, b, one)) visit(b);
  };
  each([&](Block& b) {
    ++b.epoch;
    if (scope == Scope::grid) b.grid_epoch = b.epoch;
    if (scope == Scope::cluster) b.cluster_epoch = b.epoch;
    if (threads_.empty() && blocks_.empty()) return;
    all.learn(blocks_[b.serial]);
    for (unsigned t = 0; t < l.threads_per_block; ++t)
      if (const auto found = threads_.find(key(b.threads[t])); found != threads_.end())
        all.learn(found->second.acquired);
  });
  if (!all.empty()) each([&](Block& b) { blocks_[b.serial] = all; });
}

void Order::sync_warp(Block& b, unsigned warp, unsigned mask) {
  b.warps[warp].order.sync(mask);
  if (threads_.empty()) return;
  Knowledge all;
  const auto each = [&](auto visit) {
    for (unsigned m = mask; m; m &= m - 1) visit(key(b.threads[warp * kLanes + unsigned(std::countr_zero(m))]));
  };
  each([&](std::uint64_t k) {
    if (const auto found = threads_.find(k); found != threads_.end()) all.learn(found->second.acquired);
  });
  if (!all.empty()) each([&](std::uint64_t k) { threads_[k].acquired = all; });
}

// All that a thread knows now; what it does from here on is younger.
Knowledge Order::snapshot(Thread& t) {
  Block& b = *t.block;
  WarpOrder& order = b.warps[t.rank / kLanes].order;
  Knowledge all = threads_[key(t)].acquired;
  if (const auto found = blocks_.find(b.serial); found != blocks_.end()) all.learn(found->second);
  for (const Block& other : launch->blocks) {
    const std::uint32_t epoch =
        &other == &b ? b.epoch
                     : std::max(other.grid_epoch,
                                other.cluster_barrier == b.cluster_barrier ? other.cluster_epoch : std::uint32_t{0});
    if (epoch) all.blocks[other.serial].epoch = std::max(all.blocks[other.serial].epoch, epoch);
  }
  ++order.age;
  auto& threads = all.blocks[b.serial].threads;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned rank = t.rank / kLanes * kLanes + lane;
    threads[rank] = rank == t.rank ? order.age : std::max(threads[rank], order.knows(t.rank % kLanes, lane));
  }
  return all;
}

void Order::fence(Thread& t, Scope scope) {
  OfThread& mine = threads_[key(t)];
  mine.acquired.learn(mine.pending_in_block);
  if (scope == Scope::grid) mine.acquired.learn(mine.pending);
  mine.released_in_block = snapshot(t);
  if (scope == Scope::grid) mine.released = mine.released_in_block;
}

void Order::atomic(Thread& t, std::uintptr_t address, bool load, bool store) {
  if (threads_.empty()) return;  // nobody has used a fence
  OfThread& mine = threads_[key(t)];
  OfAddress& there = addresses_[address];
  Knowledge& in_block = there.in_block[t.block->serial];
  if (load) {
    mine.pending.learn(there.released);
    mine.pending_in_block.learn(in_block);
  }
  if (!store) return;
  if (!load) there.released = {}, in_block = {};  // a plain strong store ends what earlier ones released
  there.released.learn(mine.released);
  in_block.learn(mine.released_in_block);
}

}  // namespace softmax::device::simt
