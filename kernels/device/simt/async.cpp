// Copies that go on while their thread does. Here they are made as late as the rules allow, so that a kernel which does
// not wait finds what was there before.

#include <algorithm>
#include <cstring>

#include "kernels/device/simt/state.hpp"
#include "kernels/device/simt/trace.hpp"

namespace softmax::device::simt {
namespace {

#define SIMT_CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// The load and the store of a copy, which need a place each in the program: both are in the call.
void trace_copy(void* to, const void* from, std::size_t bytes, std::uintptr_t pc, const trace::Copier* by = nullptr) {
  trace::access(number(from), bytes, Op::load, pc, by);
  trace::access(number(to), bytes, Op::store, pc - 1, by);
}

// The first so many copies of a thread; an access may stop it for good.
void make_copies(Thread& t, std::ptrdiff_t count) {
  for (auto c = t.copies.begin(); c != t.copies.begin() + count; ++c) {
    trace_copy(c->to, c->from, c->bytes, c->pc);
    std::memcpy(c->to, c->from, c->bytes);
  }
  t.copies.erase(t.copies.begin(), t.copies.begin() + count);
}

Block* owner(const void* address) {
  for (Block& b : launch->blocks)
    if (b.arena->owns(number(address))) return &b;
  return nullptr;
}

// Where a barrier was not initialised, or not so that this thread knows of it, the load of it is at fault.
MbarrierState& use(std::uint64_t* barrier, std::uintptr_t pc, const char* word, Where where) {
  trace::settle();
  trace::access(number(barrier), sizeof *barrier, Op::load, pc);
  const auto found = launch->mbarriers.find(barrier);
  if (found == launch->mbarriers.end())
    throw Fault(std::string(word) + " at " + at(where) + " of an mbarrier that nobody has initialised");
  return found->second;
}

bool complete(MbarrierState& m) {
  if (m.awaited > 0 || m.bytes != 0) return false;
  m.awaited = m.arrivals;
  ++m.phase;
  return true;
}

// Starts a copy of `bytes` in parts, each with a lane of a warp that only the barrier's phase makes known.
void start(MbarrierState& m, const MbarrierState::Flight& f, std::size_t part, std::uintptr_t pc) {
  trace::release(m.released);
  trace::Copier by{.stamp = {.block = m.block->serial,
                             .epoch = ~std::uint32_t{0},
                             .age = m.phase,
                             .lanes = 1,
                             .warp = std::uint16_t(kFirstCopier + m.number)},
                   .lane = current->rank % Limits::kWarp};
  char* const to = static_cast<char*>(f.to);
  if (!f.from) trace::access(number(to), f.bytes, Op::store, pc - 1, &by);
  for (std::size_t i = 0; f.from && i < f.bytes; i += part) {
    by.lane = unsigned(i / part % Limits::kWarp);
    trace_copy(to + i, static_cast<const char*>(f.from) + i, part, pc, &by);
  }
  m.flights.push_back(f);
}

}  // namespace

void copy_async(void* to, const void* from, std::size_t bytes, Where where) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    throw Fault("__pipeline_memcpy_async of " + std::to_string(bytes) + " bytes, not 4, 8 or 16, at " + at(where));
  if (owner(to) != current->block || owner(from))
    throw Fault("__pipeline_memcpy_async not from global to the block's shared memory at " + at(where));
  current->copies.push_back({to, from, bytes, current->groups, SIMT_CALLER});
}

void commit_copies() { ++current->groups; }

void wait_copies(std::size_t groups) {
  trace::settle();
  Thread& t = *current;
  make_copies(t, std::ranges::count_if(t.copies, [&](const Copy& c) { return c.group + groups < t.groups; }));
}

void finish_copies(Thread& t) { make_copies(t, std::ssize(t.copies)); }

void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Where where) {
  trace::settle();
  Block* const b = owner(barrier);
  if (b != current->block || arrivals == 0)
    throw Fault("mbarrier_init at " + at(where) +
                (arrivals ? " outside of the block's shared memory" : " of no arrivals"));
  trace::access(number(barrier), sizeof *barrier, Op::store, SIMT_CALLER);
  const auto [found, is_new] = launch->mbarriers.try_emplace(barrier);
  if (!found->second.flights.empty())
    throw Fault("mbarrier_init at " + at(where) + " while copies are under way that the mbarrier counts");
  found->second = {.block = b, .number = launch->mbarriers_made++, .arrivals = arrivals, .awaited = arrivals};
}

void mbarrier_expect(std::uint64_t* barrier, unsigned bytes, Where where) {
  MbarrierState& m = use(barrier, SIMT_CALLER, "mbarrier_expect", where);
  if (m.awaited == 0)
    throw Fault("mbarrier_expect at " + at(where) + ": more than the " + std::to_string(m.arrivals) +
                " arrivals of a phase, which is not complete");
  trace::release(m.released);
  --m.awaited;
  m.bytes += bytes;
  complete(m);
}

void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Where where) {
  MbarrierState& m = use(barrier, SIMT_CALLER, "mbarrier_wait", where);
  while (m.phase % 2 == parity % 2) {
    if (!m.flights.empty()) {
      const MbarrierState::Flight f = m.flights.front();
      m.flights.erase(m.flights.begin());
      std::memcpy(f.to, f.from ? f.from : &f.value, f.bytes);
      m.bytes -= std::int64_t(f.bytes);
      complete(m);
    } else {
      spin(where);
    }
  }
  m.released.learn({m.block->serial, (kFirstCopier + m.number) * unsigned(Limits::kWarp), m.phase});
  trace::acquire(m.released);
}

void store_async(std::uint64_t* to, std::uint64_t value, std::uint64_t* barrier, Where where) {
  MbarrierState& m = use(barrier, SIMT_CALLER, "store_async", where);
  if (owner(to) != m.block) throw Fault("store_async at " + at(where) + " to another block than its mbarrier's");
  start(m, {.to = to, .from = nullptr, .value = value, .bytes = sizeof value}, sizeof value, SIMT_CALLER);
}

void bulk_load(void* to, const void* from, std::size_t bytes, std::uint64_t* barrier, Where where) {
  MbarrierState& m = use(barrier, SIMT_CALLER, "bulk_load", where);
  if (bytes % 16 != 0 || owner(to) != current->block || owner(from) || m.block != current->block)
    throw Fault("bulk_load at " + at(where) + " takes multiples of 16 bytes, not " + std::to_string(bytes) +
                ", from global to the block's shared memory");
  start(m, {.to = to, .from = from, .value = 0, .bytes = bytes}, 16, SIMT_CALLER);
}

void refuse_flights(const Block& b) {
  if (b.barrier.returned < launch->threads_per_block) return;
  for (const auto& [address, m] : launch->mbarriers)
    if (m.block == &b && !m.flights.empty())
      throw Fault(describe(b) + " ends while copies to its shared memory are under way: nobody has waited for them");
}

}  // namespace softmax::device::simt
