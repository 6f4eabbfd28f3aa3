#include "kernels/device/simt/order.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

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
  if (empty()) facts_ = other.facts_;
  if (other.empty() || &other == this) return;
  const auto place = [](const Fact& f) { return std::pair(f.block, f.rank); };
  std::vector<Fact> all;
  all.reserve(facts_.size() + other.facts_.size());
  std::merge(facts_.begin(), facts_.end(), other.facts_.begin(), other.facts_.end(), std::back_inserter(all),
             [&](const Fact& a, const Fact& b) { return place(a) < place(b); });
  facts_.clear();
  for (const Fact& f : all)
    if (facts_.empty() || place(facts_.back()) != place(f))
      facts_.push_back(f);
    else
      facts_.back().before = std::max(facts_.back().before, f.before);
}

std::uint32_t Knowledge::before(std::uint32_t block, std::uint32_t rank) const {
  const auto found = std::lower_bound(facts_.begin(), facts_.end(), std::pair(block, rank),
                                      [](const Fact& f, auto at) { return std::pair(f.block, f.rank) < at; });
  return found != facts_.end() && found->block == block && found->rank == rank ? found->before : 0;
}

bool Knowledge::covers(const Stamp& s) const {
  if (s.epoch < before(s.block, kAll)) return true;
  for (unsigned lanes = s.lanes; lanes; lanes &= lanes - 1)
    if (s.age >= before(s.block, s.warp * kLanes + unsigned(std::countr_zero(lanes)))) return false;
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

void Order::Both::learn(const Both& other) {
  anywhere.learn(other.anywhere);
  in_block.learn(other.in_block);
}

void Order::OfThread::learn(const OfThread& other) {
  acquired.learn(other.acquired);
  pending.learn(other.pending);
  released.learn(other.released);
}

Order::OfThread& Order::mine(const Thread& t) {
  std::shared_ptr<OfThread>& known = threads_[key(t)];
  if (!known || known.use_count() > 1)
    known = known ? std::make_shared<OfThread>(*known) : std::make_shared<OfThread>();
  return *known;
}

void Order::admit() { threads_.clear(); }

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
        if (s.age < order.knows(now.rank % kLanes, unsigned(std::countr_zero(m))))
          unknown.lanes &= ~(1u << std::countr_zero(m));
      if (unknown.lanes == 0) return true;
    }
  } else if (const Block* other = resident(s.block)) {
    if (s.epoch < other->grid_epoch) return true;
    if (other->cluster_barrier == mine.cluster_barrier && s.epoch < other->cluster_epoch) return true;
  }
  const auto thread = threads_.find(key(now));
  return thread != threads_.end() && thread->second->acquired.covers(unknown);
}

// Threads that met know what each of them knew. each(visit) visits their keys.
template <class Each>
void Order::join(Each each) {
  if (threads_.empty()) return;
  const auto all = std::make_shared<OfThread>();
  const OfThread* last = nullptr;
  each([&](std::uint64_t k) {
    const auto found = threads_.find(k);
    if (found == threads_.end() || found->second.get() == last) return;
    last = found->second.get();
    all->learn(*last);
  });
  if (last) each([&](std::uint64_t k) { threads_[k] = all; });
}

void Order::barrier(Scope scope, Launch& l, Block& one) {
  const auto each = [&](auto visit) {
    for (Block& b : l.blocks)
      if (together(scope, b, one)) visit(b);
  };
  each([&](Block& b) {
    ++b.epoch;
    if (scope == Scope::grid) b.grid_epoch = b.epoch;
    if (scope == Scope::cluster) b.cluster_epoch = b.epoch;
  });
  join([&](auto visit) {
    each([&](Block& b) {
      for (unsigned t = 0; t < l.threads_per_block; ++t) visit(key(b.threads[t]));
    });
  });
}

void Order::sync_warp(Block& b, unsigned warp, unsigned mask) {
  b.warps[warp].order.sync(mask);
  join([&](auto visit) {
    for (unsigned m = mask; m; m &= m - 1) visit(key(b.threads[warp * kLanes + unsigned(std::countr_zero(m))]));
  });
}

// All that a thread knows now; what it does from here on is younger.
Knowledge Order::snapshot(Thread& t) {
  Block& b = *t.block;
  WarpOrder& order = b.warps[t.rank / kLanes].order;
  Knowledge all = mine(t).acquired;
  for (const Block& other : launch->blocks) {
    const bool cluster = other.cluster_barrier == b.cluster_barrier;
    const std::uint32_t epoch =
        &other == &b ? b.epoch : std::max(other.grid_epoch, cluster ? other.cluster_epoch : std::uint32_t{0});
    if (epoch) all.learn({other.serial, Knowledge::kAll, epoch});
  }
  ++order.age;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned rank = t.rank / kLanes * kLanes + lane;
    const std::uint32_t age = rank == t.rank ? order.age : order.knows(t.rank % kLanes, lane);
    if (age) all.learn({b.serial, rank, age});
  }
  return all;
}

void Order::fence(Thread& t, Scope scope) {
  fenced_ = true;
  OfThread& own = mine(t);
  own.acquired.learn(own.pending.in_block);
  if (scope == Scope::grid) own.acquired.learn(own.pending.anywhere);
  own.released.in_block = snapshot(t);
  if (scope == Scope::grid) own.released.anywhere = own.released.in_block;
}

void Order::atomic(Thread& t, std::uintptr_t address, std::uint32_t owner, bool load, bool store) {
  if (!fenced_) return;
  OfThread& own = mine(t);
  OfAddress& there = addresses_[address];
  // A plain strong store ends what earlier ones released, and so does a new block whose shared memory this is.
  if (there.owner != owner || !load) there = {.owner = owner, .released = {}, .in_block = {}};
  Knowledge& in_block = there.in_block[t.block->serial];
  if (load) {
    own.pending.anywhere.learn(there.released);
    own.pending.in_block.learn(in_block);
  }
  if (!store) return;
  there.released.learn(own.released.anywhere);
  in_block.learn(own.released.in_block);
}

}  // namespace softmax::device::simt
