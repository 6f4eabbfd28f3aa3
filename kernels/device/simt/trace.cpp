#include "kernels/device/simt/trace.hpp"

#include <deque>
#include <map>
#include <unordered_map>

#include "kernels/device/simt/checks.hpp"
#include "kernels/device/simt/source.hpp"
#include "kernels/device/simt/state.hpp"

namespace softmax::device::simt {
namespace {

// One place in kernel code.
struct Site {
  std::uintptr_t key;  // of an access, its address in the program
  Op op;
  SourceLine line;
  bool resolved;
  Counters counters;
};

class Sites {
 public:
  // What is no access has a place in the source, and a key that no address in a program has.
  std::uint16_t number(Where where, Op op) {
    const std::uint64_t file = reinterpret_cast<std::uintptr_t>(where.file) * 0x9e3779b97f4a7c15ull;
    return number((file + std::uint64_t(where.line) * 16 + std::uint64_t(op)) | std::uint64_t{1} << 63, op, where);
  }
  std::uint16_t number(std::uintptr_t key, Op op, Where where = {"", 0}) {
    const auto [found, is_new] = numbers_.try_emplace(key, std::uint16_t(all.size()));
    if (is_new) all.push_back({key, op, {where.file, where.line}, where.line > 0, {}});
    if (all.size() > 0xffff) throw Fault("too many places load or store");
    return found->second;
  }
  const SourceLine& line(std::size_t site) {
    Site& s = all[site];
    if (!s.resolved) s.line = line_of(s.key);
    s.resolved = true;
    return s.line;
  }
  // A finding with its lines written out; not on the stack of a thread.
  std::string resolve(const std::string& finding) {
    std::string text;
    for (std::size_t i = 0; i < finding.size(); ++i) {
      if (finding[i] != kOpen) {
        text += finding[i];
        continue;
      }
      const SourceLine& l = line(std::stoul(finding.substr(i + 1)));
      text += l.file.empty() ? "an unknown line" : at({l.file.c_str(), l.line});
      i = finding.find(kClose, i);
    }
    return text;
  }
  std::vector<Site> all;

 private:
  std::unordered_map<std::uintptr_t, std::uint16_t> numbers_;
};

struct Tracer {
  Watch level = Watch::check;
  bool busy = false;
  Sites sites;
  Checks checks;
  std::deque<RequestLog> logs;  // of the warps of all resident blocks
  std::int64_t accesses = 0;
};

thread_local Tracer* tracer = nullptr;
Tracer& the_tracer() {
  thread_local Tracer one;
  return *(tracer = &one);
}

// A program may hold but one copy of a function of the library, a kernel file's: then the tracer's own calls of it look
// like accesses of the kernel, unless it is busy.
struct Busy {
  Busy() { tracer->busy = true; }
  ~Busy() { tracer->busy = false; }
};

void flush(Block& b, Warp& w) {
  w.requests->flush([&](unsigned number, const Request& r) {
    Site& s = tracer->sites.all[number];
    count(r, s.op, s.counters);
    if (!r.shared && (s.op == Op::load || s.op == Op::volatile_load))
      s.counters.redundant_load_bytes += tracer->checks.redundant(b, r);
  });
}

std::string take_findings() {
  std::string all;
  for (const std::string& f : tracer->checks.take_findings())
    all += (all.empty() ? "" : "\n") + tracer->sites.resolve(f);
  return all;
}

// A thread that does many atomic or volatile accesses may be waiting for another one.
void give_way() {
  constexpr int kPatience = 64;
  if (++current->strong_in_a_row > kPatience) spin({"", 0});
}

}  // namespace

void set_watch(Watch level) {
  the_tracer().level = level;
  for (Site& s : tracer->sites.all) s.counters = {};
  tracer->accesses = 0;
}

Profile profile() {
  std::map<std::pair<std::string, int>, Counters> lines;
  Sites& sites = the_tracer().sites;
  for (std::size_t i = 0; i < sites.all.size(); ++i)
    if (sites.all[i].counters != Counters{}) lines[{sites.line(i).file, sites.line(i).line}] += sites.all[i].counters;
  Profile all{.total = {}, .lines = {}, .accesses = tracer->accesses};
  for (const auto& [where, counters] : lines) {
    all.total += counters;
    all.lines.push_back({where.first, where.second, counters});
  }
  return all;
}

void run_within(const std::vector<Region>& regions, const std::function<void()>& work) {
  the_tracer().checks.within(regions, work, [] { return tracer->level == Watch::check; });
}

namespace trace {

bool off() { return tracer->level == Watch::off || tracer->busy; }

void begin() { the_tracer().checks.begin(); }

void admit(Block& b) {
  if (&b == launch->blocks.data()) tracer->checks.order.admit();
  std::deque<RequestLog>& logs = tracer->logs;
  const std::size_t warps = b.warps.size(), first = std::size_t(&b - launch->blocks.data()) * warps;
  if (logs.size() < first + warps) logs.resize(first + warps);
  for (std::size_t w = 0; w < warps; ++w) {
    b.warps[w].requests = &logs[first + w];
    logs[first + w].clear();
  }
}

void access(std::uintptr_t address, std::size_t bytes, Op op, std::uintptr_t pc, const Copier* by) {
  Thread* const t = current;
  if (!t || t->fiber.owns(address)) return;  // the host's side of a kernel file, or a variable of the thread
  if (strong(op)) give_way();
  if (off()) return;
  try {
    const Busy busy;
    tracer->checks.settle();
    ++tracer->accesses;
    const Access a{*t, address, bytes, op, tracer->sites.number(pc, op), by ? &by->stamp : nullptr};
    const bool strict = tracer->level == Watch::check;
    const Target target = tracer->checks.locate(a, strict);
    const unsigned lane = by ? by->lane : t->rank % 32;
    t->block->warps[t->rank / 32].requests->add(a.site, lane, address, std::uint16_t(bytes), target.shared);
    if (strong(op)) tracer->checks.order.atomic(*t, address, target.owner, reads(op), writes(op));
    if (strict) tracer->checks.check(a, target);
    return;
  } catch (...) {
    launch->error = std::current_exception();
  }
  // The access would touch what is not the kernel's, or trap. g++ takes its call for one that does not throw, so the
  // thread stops here and for good.
  t->state = State::returned;
  t->fiber.suspend();
}

void settle() {
  const Busy busy;
  tracer->checks.settle();
}

void met(Scope scope, Where where) {
  if (off()) return;
  const Busy busy;
  Block& mine = *current->block;
  Counters& c = tracer->sites.all[tracer->sites.number(where, Op::barrier)].counters;
  for (Block& b : launch->blocks)
    if (together(scope, b, mine)) {
      for (Warp& w : b.warps) flush(b, w);
      ++c.barriers;
    }
  tracer->checks.order.barrier(scope, *launch, mine);
}

void met(Meet kind, unsigned warp, unsigned mask, std::size_t bytes, Where where) {
  if (off()) return;
  const Busy busy;
  Block& b = *current->block;
  Warp& w = b.warps[warp];
  if (kind != Meet::sync) {
    const std::uint16_t site = tracer->sites.number(where, kind == Meet::shuffle ? Op::shuffle : Op::vote);
    for (unsigned m = mask; m; m &= m - 1)
      w.requests->add(site, unsigned(std::countr_zero(m)), 0, std::uint16_t(bytes), false);
  }
  if (mask == w.present)
    flush(b, w);
  else
    w.requests->align(mask);
  if (kind == Meet::sync) tracer->checks.order.sync_warp(b, warp, mask);
}

void fence(Scope scope) {
  if (off()) return;
  const Busy busy;
  tracer->checks.order.fence(*current, scope);
}

void release(Knowledge& to) {
  if (off()) return;
  const Busy busy;
  tracer->checks.order.release(*current, to);
}
void acquire(const Knowledge& from) {
  if (off()) return;
  const Busy busy;
  tracer->checks.order.acquire(*current, from);
}

void returned(Thread& t) {
  if (off()) return;
  const Busy busy;
  Warp& w = t.block->warps[t.rank / 32];
  if (w.present == w.returned) flush(*t.block, w);
}

void end() {
  if (const std::string all = take_findings(); !all.empty()) throw Fault(all);
}
void end(const std::string& fault) {
  const std::string all = take_findings(), last = tracer->sites.resolve(fault);
  throw Fault(all.empty() ? last : all + "\n" + last);
}

}  // namespace trace

namespace {

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// What is no vector: a struct, in such parts as its address allows.
void range(void* p, unsigned long bytes, Op op, void* pc) {
  for (std::uintptr_t at = number(p), last = at + bytes, part; at < last; at += part) {
    for (part = 4; at % part != 0 || part > last - at; part /= 2) continue;
    trace::access(at, part, op, number(pc));
  }
}

}  // namespace
}  // namespace softmax::device::simt

// What g++ calls for each access, because kernel files are compiled with -fsanitize=thread; this file stands in for the
// sanitizer's own library.
using namespace softmax::device::simt;

#define ACCESS(name, bytes, op) \
  extern "C" void name(void* p) { trace::access(number(p), bytes, Op::op, number(__builtin_return_address(0))); }
#define SIZES(name, op) \
  ACCESS(name##1, 1, op) ACCESS(name##2, 2, op) ACCESS(name##4, 4, op) ACCESS(name##8, 8, op) ACCESS(name##16, 16, op)
#define RANGE(name, op) \
  extern "C" void name(void* p, unsigned long bytes) { range(p, bytes, Op::op, __builtin_return_address(0)); }

SIZES(__tsan_read, load)
SIZES(__tsan_write, store)
SIZES(__tsan_volatile_read, volatile_load)
SIZES(__tsan_volatile_write, volatile_store)
RANGE(__tsan_read_range, load)
RANGE(__tsan_write_range, store)
// g++ copies a struct of two shorts as four bytes: its address is a multiple of two, and that is no fault of the kernel's.
#define PARTS(name, bytes, op) \
  extern "C" void name##bytes(void* p) { range(p, bytes, Op::op, __builtin_return_address(0)); }
#define UNALIGNED(name, op) \
  PARTS(name, 1, op) PARTS(name, 2, op) PARTS(name, 4, op) PARTS(name, 8, op) PARTS(name, 16, op)
UNALIGNED(__tsan_unaligned_read, load)
UNALIGNED(__tsan_unaligned_write, store)
UNALIGNED(__tsan_unaligned_volatile_read, volatile_load)
UNALIGNED(__tsan_unaligned_volatile_write, volatile_store)
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit(void*) {}
extern "C" void __tsan_init() {}
