#include "kernels/device/simt/executor.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/device/simt/state.hpp"
#include "kernels/device/simt/trace.hpp"
#include "kernels/input.hpp"

namespace softmax::device::simt {

constinit thread_local Launch* launch = nullptr;
constinit thread_local Thread* current = nullptr;

namespace {

constexpr State waiting_at(Scope s) {
  return s == Scope::block ? State::at_block : s == Scope::cluster ? State::at_cluster : State::at_grid;
}

Schedule schedule;
LaunchInfo info;

// Fibers keep their stacks, and arenas their memory, from launch to launch.
std::vector<Thread>& pool() {
  thread_local std::vector<Thread> threads;
  return threads;
}
std::vector<Arena>& arenas() {
  thread_local std::vector<Arena> all;
  return all;
}

void make_ready(Thread& t) {
  t.state = State::ready;
  const std::size_t word = t.order / 64;
  launch->ready[word] |= std::uint64_t{1} << t.order % 64;
  launch->first_ready = std::min(launch->first_ready, word);
}

Thread* next_ready() {
  Launch& l = *launch;
  for (std::size_t& word = l.first_ready; word < l.ready.size(); ++word)
    if (l.ready[word]) {
      const int bit = std::countr_zero(l.ready[word]);
      l.ready[word] &= l.ready[word] - 1;
      return &pool()[l.by_order[word * 64 + std::size_t(bit)]];
    }
  return nullptr;
}

void wait(State state, Where where) {
  current->state = state;
  current->where = where;
  current->strong_in_a_row = 0;
  current->fiber.suspend();
}

Barrier& barrier_of(Scope scope, Block& b) {
  return scope == Scope::block ? b.barrier : scope == Scope::cluster ? *b.cluster_barrier : launch->grid_barrier;
}

std::int64_t threads_in(Scope scope) {
  const std::int64_t block = launch->threads_per_block;
  return scope == Scope::block     ? block
         : scope == Scope::cluster ? block * launch->geometry.cluster
                                   : block * launch->geometry.grid.count();
}

void release(Scope scope, Barrier& b) {
  for (Block& block : launch->blocks) {
    if (!together(scope, block, *current->block)) continue;
    for (unsigned t = 0; t < launch->threads_per_block; ++t)
      if (Thread& thread = block.threads[t]; thread.state == waiting_at(scope)) {
        thread.votes = b.votes;
        make_ready(thread);
      } else if (scope == Scope::cluster && thread.arrival == Arrival::pending) {
        thread.arrival = Arrival::met;
      }
  }
  b.arrived = b.votes = 0;
  trace::met(scope, b.where);
}

// CUDA lets a barrier be conditional only if the condition is the same in the whole scope, so a thread that has
// returned is as wrong as one that waits elsewhere, although hardware would let the others pass.
void refuse_if_partial(Scope scope, const Barrier& b) {
  if (b.arrived == 0 || b.arrived + b.returned < threads_in(scope) || b.returned == 0) return;
  throw Fault(std::string("not every thread reaches ") + spell(scope) + ": " + roll_call(*current->block));
}

void on_return() {
  trace::settle();
  Thread& self = *current;
  finish_copies(self);
  if (self.arrival != Arrival::none)
    throw Fault("thread " + std::to_string(self.rank) + " of " + describe(*self.block) +
                " returned between barrier_arrive and barrier_wait");
  self.state = State::returned;
  --launch->live;
  const unsigned bit = 1u << self.rank % Limits::kWarp;
  Warp& warp = self.block->warps[self.rank / Limits::kWarp];
  warp.returned |= bit;
  trace::returned(self);
  std::erase_if(warp.meetings, [&](Meeting& m) {
    if (!(m.mask & bit)) return false;
    if (m.kind != Meet::sync)
      throw Fault("a lane that others wait for has returned: thread " + std::to_string(self.rank) + "; " +
                  roll_call(*self.block));
    // Of a barrier, only threads that have not exited need come.
    m.mask &= ~bit;
    if (m.arrived != m.mask) return false;
    trace::met(m.kind, self.rank / Limits::kWarp, m.mask, 0, m.where);
    for (unsigned named = m.mask; named; named &= named - 1)
      make_ready((&self - self.rank % Limits::kWarp)[std::countr_zero(named)]);
    return true;
  });
  for (Scope scope : {Scope::block, Scope::cluster, Scope::grid}) {
    Barrier& b = barrier_of(scope, *self.block);
    ++b.returned;
    refuse_if_partial(scope, b);
  }
  refuse_flights(*self.block);
}

void thread_main(void*) {
  try {
    launch->body(launch->argument);
    on_return();
  } catch (...) {
    if (!launch->error) launch->error = std::current_exception();
    current->state = State::returned;
  }
}

// Runs the resident blocks to their end.
void run_resident() {
  Launch& l = *launch;
  constexpr std::size_t kPatience = 1 << 23;  // threads, over all rounds of nothing but spinning: about a second
  std::size_t idle = 0;
  while (l.live > 0) {
    Thread* t = next_ready();
    if (!t) {
      if (l.spinning == 0 || (idle += l.by_order.size()) > kPatience)
        for (const Block& b : l.blocks)
          if (b.barrier.returned < l.threads_per_block)
            throw Fault((l.spinning ? "threads spin for ever: " : "threads wait for ever: ") + roll_call(b));
      for (std::size_t i = 0; i < l.by_order.size(); ++i)
        if (Thread& thread = pool()[l.by_order[i]]; thread.state == State::spinning) make_ready(thread);
      l.spinning = 0;
      continue;
    }
    current = t;
    t->fiber.resume();
    current = nullptr;  // what runs from here on is the host's
    if (l.error) std::rethrow_exception(l.error);
    if (t->state != State::spinning) idle = 0;
  }
}

// Which thread goes first: a permutation of the resident threads. Warps stay together in one of two seeds, so that some
// schedules skew warps against each other and some lanes.
std::vector<std::size_t> permutation(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (schedule.order == Schedule::Order::reverse) std::reverse(order.begin(), order.end());
  if (schedule.order != Schedule::Order::seeded) return order;
  const std::uint64_t seed = schedule.seed;
  auto place = [seed](std::size_t t) {
    return std::pair(seed % 2 ? 0 : random_bits(seed, t / Limits::kWarp), random_bits(~seed, t));
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return place(a) < place(b); });
  return order;
}

Index unfold(std::int64_t i, Index size) {
  return {unsigned(i % size.x), unsigned(i / size.x % size.y), unsigned(i / size.x / size.y)};
}

// Blocks [first, first + count) become resident, all their threads ready.
void admit(std::int64_t first, std::int64_t count) {
  Launch& l = *launch;
  const unsigned threads = l.threads_per_block, cluster = l.geometry.cluster;
  l.grid_barrier = {};
  l.mbarriers.clear();
  l.mbarriers_made = 0;
  l.cluster_barriers.assign(std::size_t((count + cluster - 1) / cluster), {});
  l.blocks.resize(std::size_t(count));
  const std::size_t total = std::size_t(count) * threads;
  if (pool().size() < total) pool().resize(total);
  if (arenas().size() < std::size_t(count)) arenas().resize(std::size_t(count));
  l.live = std::int64_t(total);
  l.spinning = 0;
  if (l.by_order.size() != total) {
    l.by_order = permutation(total);
    for (std::size_t i = 0; i < total; ++i) pool()[l.by_order[i]].order = i;
  }
  l.ready.assign((total + 63) / 64, 0);
  l.first_ready = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Block& b = l.blocks[std::size_t(i)];
    b.number = first + i;
    b.serial = l.first_serial + std::uint32_t(b.number);
    b.epoch = b.grid_epoch = b.cluster_epoch = 0;
    b.index = unfold(b.number, l.geometry.grid);
    b.cluster_rank = unsigned(i % cluster);
    b.threads = &pool()[std::size_t(i) * threads];
    b.warps.resize((threads + Limits::kWarp - 1) / Limits::kWarp);
    for (std::size_t w = 0; w < b.warps.size(); ++w) {
      const unsigned lanes = std::min(threads - unsigned(w) * Limits::kWarp, unsigned(Limits::kWarp));
      b.warps[w].present = lanes == 32 ? ~0u : (1u << lanes) - 1;
      b.warps[w].returned = 0;
      b.warps[w].meetings.clear();
      b.warps[w].order = {};
    }
    trace::admit(b);
    b.barrier = {};
    b.cluster_barrier = &l.cluster_barriers[std::size_t(i / cluster)];
    b.arena = &arenas()[std::size_t(i)];
    b.arena->open(l.layout);
    for (unsigned t = 0; t < threads; ++t) {
      Thread& thread = b.threads[t];
      thread.index = unfold(t, l.geometry.block);
      thread.block = &b;
      thread.rank = t;
      thread.strong_in_a_row = 0;
      thread.arrival = Arrival::none;
      thread.copies.clear();
      thread.groups = 0;
      thread.fiber.start(thread_main, nullptr);
      make_ready(thread);
    }
  }
}

void refuse(bool bad, const std::string& why) {
  if (bad) throw Fault("launch refused: " + why);
}

void check_geometry(const Geometry& g) {
  const std::int64_t threads = g.block.count(), blocks = g.grid.count();
  refuse(threads < 1 || threads > Limits::kThreadsPerBlock,
         "a block has 1 to 1024 threads, not " + std::to_string(threads));
  refuse(g.block.z > 64, "a block is at most 64 threads along z, not " + std::to_string(g.block.z));
  refuse(blocks < 1 || g.grid.x > 0x7fffffffu || g.grid.y > 65535 || g.grid.z > 65535,
         "a grid is at least 1 and at most 2147483647 x 65535 x 65535 blocks, not " + std::to_string(g.grid.x) + " x " +
             std::to_string(g.grid.y) + " x " + std::to_string(g.grid.z));
  refuse(g.dynamic_shared > Limits::kShared, "a block has at most " + std::to_string(Limits::kShared) +
                                                 " bytes of shared memory, not " + std::to_string(g.dynamic_shared));
  refuse(g.cluster < 1 || g.cluster > Limits::kClusterBlocks || g.grid.x % g.cluster != 0,
         "a cluster has 1 to 16 blocks and divides the grid's x = " + std::to_string(g.grid.x) + ", not " +
             std::to_string(g.cluster));
}

std::int64_t blocks_per_processor(const Geometry& g) {
  const std::int64_t by_shared = g.dynamic_shared
                                     ? std::int64_t(Limits::kSharedPerProcessor / (g.dynamic_shared + 1024))
                                     : Limits::kBlocksPerProcessor;
  return std::min(
      {std::int64_t(Limits::kBlocksPerProcessor), Limits::kThreadsPerProcessor / g.block.count(), by_shared});
}

}  // namespace

void set_schedule(Schedule s) { schedule = s; }
LaunchInfo last_launch() { return info; }

void run(const Geometry& geometry, void (*body)(void*), void* argument) {
  check_geometry(geometry);
  const std::int64_t blocks = geometry.grid.count(), capacity = resident_blocks(geometry);
  refuse(geometry.cooperative && blocks > capacity, "a cooperative launch of " + std::to_string(blocks) +
                                                        " blocks, but only " + std::to_string(capacity) +
                                                        " can be resident at once");
  Launch state{};
  state.geometry = geometry;
  state.body = body;
  state.argument = argument;
  state.threads_per_block = unsigned(geometry.block.count());
  state.layout = SharedLayout(geometry.dynamic_shared);
  launch = &state;
  struct Leave {
    Launch& state;
    ~Leave() {
      for (Block& b : state.blocks)
        if (b.arena) b.arena->wipe(state.layout);
      launch = nullptr, current = nullptr;
    }
  } leave{state};

  const std::int64_t together = geometry.cooperative ? blocks : geometry.cluster, groups = blocks / together;
  // The order of groups: forwards, backwards, or from a seeded start.
  const std::int64_t start =
      schedule.order == Schedule::Order::seeded ? std::int64_t(mix(schedule.seed) % std::uint64_t(groups)) : 0;
  trace::begin();
  try {
    for (std::int64_t i = 0; i < groups; ++i) {
      const std::int64_t group = schedule.order == Schedule::Order::reverse ? groups - 1 - i : (start + i) % groups;
      admit(group * together, together);
      run_resident();
    }
  } catch (const Fault& f) {
    trace::end(f.what());
  }
  info = {.blocks = blocks,
          .threads = int(state.threads_per_block),
          .shared_bytes = std::int64_t(state.layout.bytes()),
          .registers = {},
          .blocks_per_sm = {}};
  trace::end();
}

Index thread_index() { return current->index; }
Index block_index() { return current->block->index; }
Index block_size() { return launch->geometry.block; }
Index grid_size() { return launch->geometry.grid; }
unsigned thread_rank() { return current->rank; }
unsigned live_lanes() {
  const Warp& warp = current->block->warps[current->rank / Limits::kWarp];
  return warp.present & ~warp.returned;
}
unsigned cluster_rank() { return current->block->cluster_rank; }
unsigned cluster_blocks() { return launch->geometry.cluster; }

int resident_blocks(const Geometry& g) {
  if (g.block.count() < 1 || g.block.count() > Limits::kThreadsPerBlock) return 0;
  return int(blocks_per_processor(g) * Limits::kProcessors / g.cluster * g.cluster);
}

// The current thread comes to a barrier.
static Barrier& come(Scope scope, bool predicate, Where where) {
  trace::settle();
  if (scope == Scope::grid && !launch->geometry.cooperative)
    throw Fault("grid.sync at " + at(where) + " in a launch that is not cooperative");
  if (scope == Scope::cluster && current->arrival != Arrival::none)
    throw Fault("a second arrival at the cluster's barrier, without barrier_wait before it, at " + at(where));
  Barrier& b = barrier_of(scope, *current->block);
  if (b.arrived > 0 && (b.where.line != where.line || b.where.file != where.file))
    throw Fault(std::string("threads meet at different calls of ") + spell(scope) + ": thread " +
                std::to_string(current->rank) + " at " + at(where) + "; " + roll_call(*current->block));
  b.where = where;
  b.votes += predicate;
  ++b.arrived;
  return b;
}

int barrier(Scope scope, bool predicate, Where where) {
  Barrier& b = come(scope, predicate, where);
  if (b.arrived == threads_in(scope)) {
    const int votes = b.votes;
    release(scope, b);
    return votes;
  }
  current->state = waiting_at(scope);
  current->where = where;
  refuse_if_partial(scope, b);
  wait(current->state, where);
  return current->votes;
}

void arrive(Where where) {
  Barrier& b = come(Scope::cluster, false, where);
  current->arrival = Arrival::pending;
  refuse_if_partial(Scope::cluster, b);
  if (b.arrived == threads_in(Scope::cluster)) release(Scope::cluster, b);
}

void wait_arrived(Where where) {
  trace::settle();
  if (current->arrival == Arrival::none) throw Fault("barrier_wait without barrier_arrive at " + at(where));
  if (current->arrival == Arrival::pending) wait(State::at_cluster, where);
  current->arrival = Arrival::none;
}

void meet(Meet kind, unsigned mask, const void* value, void* result, std::size_t bytes, int source, Where where) {
  trace::settle();
  Thread& self = *current;
  Block& block = *self.block;
  const unsigned lane = self.rank % Limits::kWarp, bit = 1u << lane;
  Thread* const lanes = &self - lane;
  auto fault = [&](const std::string& what) {
    return Fault(std::string(spell(kind)) + " at " + at(where) + ": thread " + std::to_string(self.rank) + " of " +
                 describe(block) + " " + what);
  };
  if (!(mask & bit)) throw fault("is not named in its own mask");
  Warp& warp = block.warps[self.rank / Limits::kWarp];
  if (kind == Meet::sync) mask &= warp.present & ~warp.returned;  // only threads that have not exited need come
  if (const unsigned absent = mask & ~warp.present)
    throw fault("names lane " + std::to_string(std::countr_zero(absent)) + ", which does not exist");
  if (const unsigned gone = mask & warp.returned)
    throw fault("names lane " + std::to_string(std::countr_zero(gone)) + ", which has returned");
  if (kind == Meet::shuffle && (source < 0 || source >= Limits::kWarp || !(mask >> source & 1)))
    throw fault("reads lane " + std::to_string(source) + ", which the mask does not name");

  auto& meetings = warp.meetings;
  auto meeting = std::find_if(meetings.begin(), meetings.end(), [&](auto& m) { return m.mask == mask; });
  if (meeting == meetings.end()) meeting = meetings.insert(meetings.end(), Meeting{mask, 0, kind, bytes, where});
  if (meeting->kind != kind || meeting->bytes != bytes)
    throw fault("meets lanes that came to " + std::string(spell(meeting->kind)) + " at " + at(meeting->where));
  // Lanes that stand at different shuffles do not exchange on a GPU. A barrier of the warp takes them from anywhere.
  if (kind != Meet::sync && (meeting->where.line != where.line || meeting->where.file != where.file))
    throw fault("meets lanes that came to another one, at " + at(meeting->where));
  self.value = value;
  self.result = result;
  self.source = source;
  meeting->arrived |= bit;
  if (meeting->arrived != mask) return wait(State::at_warp, where);

  meetings.erase(meeting);
  trace::met(kind, self.rank / Limits::kWarp, mask, bytes, where);
  unsigned votes = 0;
  // Every value is read before any result is written: a lane may ask for both in one place.
  alignas(16) unsigned char brought[Limits::kWarp][16];
  for (unsigned named = mask; named; named &= named - 1) {
    const int l = std::countr_zero(named);
    if (kind == Meet::ballot) votes |= unsigned(*static_cast<const bool*>(lanes[l].value)) << l;
    if (kind == Meet::shuffle) std::copy_n(static_cast<const unsigned char*>(lanes[l].value), bytes, brought[l]);
  }
  for (unsigned named = mask; named; named &= named - 1) {
    const int l = std::countr_zero(named);
    if (kind == Meet::ballot) *static_cast<unsigned*>(lanes[l].result) = votes;
    if (kind == Meet::shuffle)
      std::copy_n(brought[lanes[l].source], bytes, static_cast<unsigned char*>(lanes[l].result));
    if (l != int(lane)) make_ready(lanes[l]);
  }
}

void spin(Where where) {
  trace::settle();
  ++launch->spinning;
  wait(State::spinning, where);
}

void fence(Scope scope) { trace::fence(scope); }
void trap(Where where) { throw Fault("__trap at " + at(where)); }
void refuse_width(int width, Where where) {
  throw Fault("a shuffle at " + at(where) + " has width " + std::to_string(width) + ", not a power of two up to 32");
}
void atomic_load(const void* address, void* value, std::size_t bytes) {
  trace::access(reinterpret_cast<std::uintptr_t>(address), bytes, Op::atomic,
                reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
  std::memcpy(value, address, bytes);
}
void atomic_store(void* address, const void* value, std::size_t bytes) { std::memcpy(address, value, bytes); }

void* shared(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
  return current->block->arena->at(launch->layout.place(key, name, bytes, alignment));
}

void* dynamic_shared() {
  if (launch->geometry.dynamic_shared == 0)
    throw Fault("SHARED_DYNAMIC in a launch that asks for no dynamic shared memory");
  return current->block->arena->at(kFirst);
}

void* in_cluster(void* address, unsigned rank, Where where) {
  const unsigned blocks = launch->geometry.cluster;
  if (rank >= blocks)
    throw Fault("map_shared_rank at " + at(where) + " asks for block " + std::to_string(rank) + " of a cluster of " +
                std::to_string(blocks));
  Block& own = *current->block;
  Block& peer = (&own)[std::int64_t(rank) - std::int64_t(own.cluster_rank)];
  if (peer.barrier.returned == launch->threads_per_block)
    throw Fault("map_shared_rank at " + at(where) + " asks for block " + std::to_string(rank) +
                " of the cluster, which has ended");
  const std::size_t offset = own.arena->offset(address);  // of any address; below the arena it wraps to a huge one
  if (offset >= launch->layout.end())
    throw Fault("map_shared_rank at " + at(where) + " of an address that is not in shared memory");
  return peer.arena->at(offset);
}

}  // namespace softmax::device::simt
