#include "kernels/device/simt/trace.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "kernels/device/simt/shadow.hpp"
#include "kernels/device/simt/source.hpp"
#include "kernels/device/simt/state.hpp"

extern "C" const char __executable_start, end;  // of the program, from the linker

namespace softmax::device::simt {
namespace {

// A region in bytes.
struct Span {
  std::uintptr_t first, last;  // last: behind it
  std::uintptr_t row_bytes, stride_bytes;
  unsigned shift;  // of its cells
  const Region* region;

  explicit Span(const Region& r) : region(&r) {
    const bool dense = r.stride == r.cols;  // rows follow each other: a wide access may reach from one into the next
    row_bytes = std::uintptr_t(dense ? r.rows * r.cols : r.cols) * r.element;
    stride_bytes = dense ? row_bytes : std::uintptr_t(r.stride) * r.element;
    first = reinterpret_cast<std::uintptr_t>(r.data);
    last = r.rows > 0 && r.cols > 0 ? first + std::uintptr_t(dense ? 0 : r.rows - 1) * stride_bytes + row_bytes : first;
    shift = r.element == 2 ? 1 : 2;
  }
  bool holds(std::uintptr_t at, std::size_t bytes) const {
    const std::uintptr_t offset = at - first;
    return (row_bytes == stride_bytes ? offset : offset % stride_bytes) + bytes <= row_bytes;
  }
};

// One place in kernel code.
struct Site {
  std::uintptr_t pc;
  Op op;
  Counters counters;
  SourceLine line;
  bool resolved = false;
};

// Where an access goes.
struct Target {
  bool shared = false;
  std::uint32_t owner = 0;  // of its cells
  unsigned shift = 2;       // of its cells
  bool written_at_first = true;
  const Span* span = nullptr;
};

enum class Kind { race, uninitialised };

// A write over another one that nothing orders. Harmless if it wrote what stood there.
struct Overwrite {
  std::uintptr_t at;
  std::size_t bytes = 0;  // 0: there is none
  unsigned char before[16];
  Stamp mine, other;
};

const char* verb(Op op) { return op == Op::atomic ? "updates" : reads(op) ? "loads" : "stores to"; }

class Tracer {
 public:
  Watch level = Watch::check;
  bool busy = false;
  Order order;

  void begin();
  void admit(Block&);
  void access(Thread&, std::uintptr_t at, std::size_t bytes, Op, std::uintptr_t pc);
  void settle();
  void met(Scope, Where);
  void met(Meet, unsigned warp, unsigned mask, std::size_t bytes, Where);
  void returned(Thread&);
  std::string take_findings();
  std::string resolve(const std::string& finding);
  void reset_counters();
  Profile profile();
  void within(const std::vector<Region>&, const std::function<void()>& work);

 private:
  std::uint16_t site(std::uintptr_t pc, Op);
  const SourceLine& line(std::size_t site);
  Target locate(Thread&, std::uintptr_t at, std::size_t bytes, unsigned site);
  Target locate_peer(Thread&, std::uintptr_t at, std::size_t bytes, unsigned site);
  Target in_arena(Thread&, const Block& owner, std::uintptr_t at, std::size_t bytes, unsigned site);
  void count_redundant(const Block&, const Target&, std::uintptr_t at, std::size_t bytes, Counters&);
  void check(Thread&, const Target&, std::uintptr_t at, std::size_t bytes, unsigned site, Op);
  void check_cell(Thread&, const Target&, Cell&, std::uintptr_t at, const Mark&, Op);
  void remember_read(Thread&, Cell&, const Mark&);
  void flush(Block&);
  void flush(Warp&);
  std::uint32_t take_serials(std::int64_t count);

  void find(Kind, std::uint16_t mine, std::uint16_t other, const std::function<std::string()>& text);
  void find_race(Thread&, std::uintptr_t at, const Stamp& mine, const Stamp& other);
  std::string who(const Thread& t) const { return "thread " + std::to_string(t.rank) + " of " + describe(*t.block); }
  std::string who(const Stamp&) const;
  std::string place(const Thread&, std::uintptr_t at) const;
  std::string never_written(const Span&);

  Shadow shadow_;
  std::vector<Site> sites_;
  static constexpr std::size_t kSlots = 1 << 12;
  struct Slot {
    std::uintptr_t pc = 0;
    std::uint16_t site = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::map<std::pair<std::string, int>, Counters> meetings_;  // barriers and exchanges, by line
  std::int64_t accesses_ = 0;
  std::deque<RequestLog> logs_;  // of the warps of all resident blocks

  std::uint32_t serial_ = 1;  // the next one
  std::uint32_t scope_ = 0;   // owner of all cells outside of shared memory
  std::vector<Span> spans_;
  bool enclosed_ = false;  // within regions
  bool launched_ = false;
  Overwrite overwrite_;
  std::map<std::tuple<Kind, std::uint16_t, std::uint16_t>, int> found_;  // how often
  std::vector<std::string> findings_;
};

thread_local Tracer* running = nullptr;
Tracer& tracer() {
  thread_local Tracer one;
  running = &one;
  return one;
}

std::uint16_t Tracer::site(std::uintptr_t pc, Op op) {
  std::size_t i = pc * 0x9e3779b97f4a7c15ull >> 52;
  while (slots_[i].pc != pc) {
    if (slots_[i].pc == 0) {
      if (sites_.size() >= kSlots / 2) throw Fault("more than " + std::to_string(kSlots / 2) + " places load or store");
      slots_[i] = {pc, std::uint16_t(sites_.size())};
      sites_.push_back({.pc = pc, .op = op, .counters = {}, .line = {}});
      break;
    }
    i = (i + 1) % kSlots;
  }
  return slots_[i].site;
}

// Debug information takes more stack than a thread of the CPU device has: a finding names its lines by numbers of sites
// until resolve() writes them out, on the stack of the scheduler.
constexpr char kOpen = '\1', kClose = '\2';
std::string where(unsigned site) { return kOpen + std::to_string(site) + kClose; }

const SourceLine& Tracer::line(std::size_t number) {
  Site& s = sites_[number];
  if (!s.resolved) s.line = line_of(s.pc);
  s.resolved = true;
  return s.line;
}

std::string Tracer::resolve(const std::string& finding) {
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

std::string Tracer::who(const Stamp& s) const {
  return "thread " + std::to_string(s.warp * 32 + std::countr_zero(s.lanes)) + " of block " +
         std::to_string(s.block - launch->first_serial);
}

// "row 3, column 7 of the input", "word 5 of `partial`".
std::string Tracer::place(const Thread& t, std::uintptr_t address) const {
  const auto number = [](std::uintptr_t n) { return std::to_string(n); };
  for (const Block& b : launch->blocks) {
    if (!b.arena->owns(address)) continue;
    const std::size_t offset = b.arena->offset(reinterpret_cast<const void*>(address));
    const SharedLayout::Variable* before = nullptr;
    for (const auto& v : launch->layout.variables())
      if (v.offset <= offset) before = &v;
    const std::string of = &b == t.block ? "" : " of " + describe(b);
    if (!before) return "shared memory before the first variable" + of;
    const std::size_t byte = offset - before->offset;
    const std::string name = "`" + std::string(before->name) + "`" + of;
    if (byte >= before->bytes)
      return "byte " + number(byte) + " of " + name + ", which has " + number(before->bytes) + " bytes";
    return (byte % 4 ? "byte " + number(byte) : "word " + number(byte / 4)) + " of " + name;
  }
  // The region it lies in, or the one that it misses by least.
  const Span* nearest = nullptr;
  std::uintptr_t least = std::uintptr_t{1} << 20;
  for (const Span& s : spans_) {
    const std::uintptr_t miss = address < s.first ? s.first - address : address < s.last ? 0 : address - s.last + 1;
    if (s.first != s.last && miss < least) nearest = &s, least = miss;
  }
  if (address < Page::kBytes) return "a null pointer";
  if (!nearest) return spans_.empty() ? "memory" : "memory that is not the kernel's";
  const Region& r = *nearest->region;
  const std::string shape =
      r.rows == 1 && r.element == 1
          ? r.name + ", which has " + number(std::uintptr_t(r.cols)) + " bytes"
          : r.name + ", which has " + number(std::uintptr_t(r.rows)) + " rows of " + number(std::uintptr_t(r.cols));
  if (address < nearest->first) return number(nearest->first - address) + " bytes before " + r.name;
  const std::uintptr_t element = (address - nearest->first) / r.element;
  if (r.element == 1) return "byte " + number(element) + " of " + shape;
  if (r.stride == r.cols && address >= nearest->last)
    return number(address - nearest->last) + " bytes past the end of " + shape;
  return "row " + number(element / std::uintptr_t(r.stride)) + ", column " +
         number(element % std::uintptr_t(r.stride)) + " of " + (least || !nearest->holds(address, 1) ? shape : r.name);
}

void Tracer::find(Kind kind, std::uint16_t mine, std::uint16_t other, const std::function<std::string()>& text) {
  constexpr std::size_t kMost = 16;
  if (found_[{kind, mine, other}]++ == 0 && findings_.size() < kMost) findings_.push_back(text());
}

void Tracer::find_race(Thread& t, std::uintptr_t address, const Stamp& mine, const Stamp& other) {
  find(Kind::race, mine.site, other.site, [&] {
    const Op op = sites_[mine.site].op, earlier = sites_[other.site].op;
    return "race: " + who(mine) + " " + verb(op) + " " + place(t, address) + " at " + where(mine.site) + ", and " +
           who(other) +
           (earlier == Op::atomic ? " updated"
            : reads(earlier)      ? " loaded"
                                  : " stored to") +
           " it at " + where(other.site) + "; nothing orders the two";
  });
}

Target Tracer::in_arena(Thread& t, const Block& owner, std::uintptr_t address, std::size_t bytes, unsigned site) {
  const std::size_t offset = owner.arena->offset(reinterpret_cast<const void*>(address));
  const SharedLayout::Variable* v = launch->layout.at(offset);
  if (level == Watch::check && (!v || offset + bytes > v->offset + v->bytes))
    throw Fault("out of bounds: " + who(t) + " " + verb(sites_[site].op) + " " +
                place(t, v ? address + bytes - 1 : address) + ", at " + where(site));
  return {.shared = true,
          .owner = owner.serial,
          .shift = v ? unsigned(std::countr_zero(v->granule)) : 2,
          .written_at_first = false};
}

Target Tracer::locate_peer(Thread& t, std::uintptr_t address, std::size_t bytes, unsigned site) {
  for (const Block& b : launch->blocks) {
    if (&b == t.block || !b.arena->owns(address)) continue;
    if (level == Watch::check && b.barrier.returned == launch->threads_per_block)
      throw Fault("out of bounds: " + who(t) + " " + verb(sites_[site].op) + " " + place(t, address) +
                  ", which has ended, at " + where(site));
    return in_arena(t, b, address, bytes, site);
  }
  const bool of_program = address >= reinterpret_cast<std::uintptr_t>(&__executable_start) &&
                          address < reinterpret_cast<std::uintptr_t>(&end);
  if (level == Watch::check && enclosed_ && !of_program)
    throw Fault("out of bounds: " + who(t) + " " + verb(sites_[site].op) + " " + place(t, address) + ", at " +
                where(site));
  return {.owner = scope_};
}

Target Tracer::locate(Thread& t, std::uintptr_t address, std::size_t bytes, unsigned site) {
  if (t.block->arena->owns(address)) return in_arena(t, *t.block, address, bytes, site);
  for (const Span& s : spans_) {
    if (address - s.first >= s.last - s.first) continue;
    const Op op = sites_[site].op;
    if (level == Watch::check && (!s.holds(address, bytes) || (s.region->use == Region::Use::input && writes(op)))) {
      // Of a wide access, the part that is outside.
      std::uintptr_t wrong = address;
      while (s.holds(address, bytes) ? false : s.holds(wrong, 1) && wrong < address + bytes - 1) ++wrong;
      throw Fault("out of bounds: " + who(t) + " " + verb(op) + " " + place(t, wrong) +
                  (s.holds(address, bytes) ? ", which is read only" : "") + ", at " + where(site));
    }
    return {.owner = scope_, .shift = s.shift, .written_at_first = s.region->use == Region::Use::input, .span = &s};
  }
  return locate_peer(t, address, bytes, site);
}

void Tracer::access(Thread& t, std::uintptr_t address, std::size_t bytes, Op op, std::uintptr_t pc) {
  settle();
  ++accesses_;
  const std::uint16_t number = site(pc, op);
  const Target target = locate(t, address, bytes, number);
  Site& s = sites_[number];
  t.block->warps[t.rank / 32].requests->add(number, t.rank % 32, address, std::uint16_t(bytes), target.shared);
  if (!target.shared && reads(op) && op != Op::atomic) count_redundant(*t.block, target, address, bytes, s.counters);
  if (strong(op)) order.atomic(t, address, reads(op), writes(op));
  if (level == Watch::check) check(t, target, address, bytes, number, op);
}

void Tracer::count_redundant(const Block& b, const Target& target, std::uintptr_t address, std::size_t bytes,
                             Counters& c) {
  const std::uintptr_t last = address + bytes - 1;
  for (std::uintptr_t a = address; a <= last; a = (a | 3) + 1) {
    std::uint32_t& by = shadow_.page(a, target.shift).loaded_by[a % Page::kBytes / 4];
    if (by == b.serial) c.redundant_load_bytes += std::int64_t(std::min(last, a | 3) - a + 1);
    by = b.serial;
  }
}

void Tracer::check(Thread& t, const Target& target, std::uintptr_t address, std::size_t bytes, unsigned site, Op op) {
  if (address % bytes != 0)
    throw Fault("misaligned: " + who(t) + " " + verb(op) + " " + std::to_string(bytes) + " bytes of " +
                place(t, address) + ", whose address is no multiple of that, at " + where(site));
  // The input is never written, so nobody's reads of it need be remembered.
  if (target.span && target.span->region->use == Region::Use::input) return;
  const Warp& warp = t.block->warps[t.rank / 32];
  Mark mark{.stamp = {.block = t.block->serial,
                      .epoch = t.block->epoch,
                      .age = warp.order.age,
                      .lanes = 1u << t.rank % 32,
                      .warp = std::uint16_t(t.rank / 32),
                      .site = std::uint16_t(site)},
            .strong = strong(op)};
  for (std::uintptr_t a = address, end = address + bytes; a < end;) {
    Page& page = shadow_.page(a, target.shift);
    const std::uintptr_t granule = std::uintptr_t{1} << page.shift, first = a % granule;
    const unsigned some = unsigned(std::min(end - a, granule - first));
    mark.bytes = static_cast<unsigned char>(((1u << some) - 1) << first);
    check_cell(t, target, page.cell(a), a, mark, op);
    a += some;
  }
}

void Tracer::check_cell(Thread& t, const Target& target, Cell& c, std::uintptr_t address, const Mark& mark, Op op) {
  const unsigned char bytes = mark.bytes;
  if (c.owner != target.owner) {
    shadow_.drop_reads(c);
    c = {};
    c.owner = target.owner;
    if (target.written_at_first) c.written = 0xff;
  }
  const Stamp& mine = mark.stamp;
  const auto conflicts = [&](const Mark& other) {
    const Stamp& s = other.stamp;
    if (s.block == 0 || !(other.bytes & bytes) || (mark.strong && other.strong)) return false;
    if (s.block == mine.block && (s.epoch < mine.epoch || (s.warp == mine.warp && s.lanes == mine.lanes))) return false;
    return !order.before(s, t);
  };
  if (reads(op)) {
    if ((c.written & bytes) != bytes) {
      find(Kind::uninitialised, mine.site, 0, [&] {
        return "uninitialised: " + who(t) + " " + verb(op) + " " + place(t, address) + " at " + where(mine.site) +
               ", and nobody has written it";
      });
      c.written |= bytes;  // once is enough
    }
    if (conflicts(c.write)) find_race(t, address, mine, c.write.stamp);
    if (!writes(op)) return remember_read(t, c, mark);
  }
  const auto conflicts_with_read = [&](const Mark& r) {
    if (!conflicts(r)) return false;
    Stamp other = r.stamp;
    if (other.block == mine.block && other.warp == mine.warp) other.lanes &= ~mine.lanes;
    find_race(t, address, mine, other);
    return true;
  };
  if (!conflicts_with_read(c.read) && c.more)
    for (const Mark& r : shadow_.reads(c))
      if (conflicts_with_read(r)) break;
  if (!reads(op) && overwrite_.bytes == 0 && conflicts(c.write)) {
    const std::size_t size = std::size_t(std::popcount(bytes));
    overwrite_ = {.at = address, .bytes = size, .before = {}, .mine = mine, .other = c.write.stamp};
    std::memcpy(overwrite_.before, reinterpret_cast<const void*>(address), size);
  }
  c.write = mark;
  c.written |= bytes;
  if ((c.read.bytes & ~bytes) == 0) {
    c.read = {};
    shadow_.drop_reads(c);
  }
}

void Tracer::remember_read(Thread& t, Cell& c, const Mark& mark) {
  const Stamp &mine = mark.stamp, &last = c.read.stamp;
  if (last.block == mine.block && last.epoch == mine.epoch && last.warp == mine.warp && last.age == mine.age &&
      c.read.bytes == mark.bytes && c.read.strong == mark.strong) {
    c.read.stamp.lanes |= mine.lanes;
    c.read.stamp.site = mine.site;
    return;
  }
  // What happened before this read is covered by it: who comes after this one comes after that one.
  const auto covered = [&](const Mark& r) {
    return r.stamp.block == 0 || ((r.bytes & ~mark.bytes) == 0 && order.before(r.stamp, t));
  };
  const bool last_covered = covered(c.read);
  if (c.more || !last_covered) {
    std::vector<Mark>& more = shadow_.reads(c);
    if (std::has_single_bit(more.size()) || last_covered) std::erase_if(more, covered);
    if (!last_covered) more.push_back(c.read);
  }
  c.read = mark;
}

void Tracer::settle() {
  if (overwrite_.bytes == 0) return;
  const Overwrite o = overwrite_;
  overwrite_.bytes = 0;
  if (std::memcmp(o.before, reinterpret_cast<const void*>(o.at), o.bytes) != 0)
    find_race(*current, o.at, o.mine, o.other);
}

std::uint32_t Tracer::take_serials(std::int64_t count) {
  if (count > std::int64_t(0xffffffffu - serial_)) {
    shadow_ = {};
    serial_ = 1;
  }
  const std::uint32_t first = serial_;
  serial_ += std::uint32_t(count);
  return first;
}

void Tracer::begin() {
  launch->first_serial = take_serials(launch->geometry.grid.count());
  if (!enclosed_) {
    scope_ = take_serials(1);
    shadow_.trim();
  }
  launched_ = true;
  overwrite_.bytes = 0;
  found_.clear();
  findings_.clear();
  order.begin();
}

void Tracer::admit(Block& b) {
  const std::size_t warps = b.warps.size(), first = std::size_t(&b - launch->blocks.data()) * warps;
  if (logs_.size() < first + warps) logs_.resize(first + warps);
  for (std::size_t w = 0; w < warps; ++w) {
    b.warps[w].requests = &logs_[first + w];
    logs_[first + w].clear();
  }
}

void Tracer::flush(Warp& w) {
  w.requests->flush([&](unsigned site, const Request& r) { count(r, sites_[site].op, sites_[site].counters); });
}
void Tracer::flush(Block& b) {
  for (Warp& w : b.warps) flush(w);
}

void Tracer::met(Scope scope, Where where) {
  Block& mine = *current->block;
  std::int64_t blocks = 0;
  for (Block& b : launch->blocks)
    if (scope == Scope::grid || &b == &mine || (scope == Scope::cluster && b.cluster_barrier == mine.cluster_barrier)) {
      flush(b);
      ++blocks;
    }
  meetings_[{where.file, where.line}].barriers += blocks;
  order.barrier(scope, *launch, mine);
}

void Tracer::met(Meet kind, unsigned warp, unsigned mask, std::size_t bytes, Where where) {
  Block& b = *current->block;
  Warp& w = b.warps[warp];
  const unsigned left = w.present & ~w.returned;
  if ((mask & left) == left)
    flush(w);
  else
    w.requests->align(mask);
  if (kind == Meet::sync) return order.sync_warp(b, warp, mask);
  Counters& c = meetings_[{where.file, where.line}];
  if (kind == Meet::shuffle)
    c.shuffles += std::int64_t(bytes + 3) / 4;
  else
    ++c.votes;
}

void Tracer::returned(Thread& t) {
  Warp& w = t.block->warps[t.rank / 32];
  if ((w.present & ~w.returned) == 0) flush(w);
}

std::string Tracer::take_findings() {
  std::string all;
  for (const std::string& f : findings_) all += (all.empty() ? "" : "\n") + resolve(f);
  findings_.clear();
  return all;
}

void Tracer::reset_counters() {
  for (Site& s : sites_) s.counters = {};
  meetings_.clear();
  accesses_ = 0;
}

Profile Tracer::profile() {
  std::map<std::pair<std::string, int>, Counters> lines = meetings_;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].counters == Counters{}) continue;
    lines[{line(i).file, line(i).line}] += sites_[i].counters;
  }
  Profile all;
  all.accesses = accesses_;
  for (const auto& [where, counters] : lines) {
    all.total += counters;
    all.lines.push_back({where.first, where.second, counters});
  }
  return all;
}

std::string Tracer::never_written(const Span& s) {
  const Region& r = *s.region;
  for (std::int64_t row = 0; row < r.rows; ++row)
    for (std::int64_t col = 0; col < r.cols; ++col) {
      const std::uintptr_t address = s.first + std::uintptr_t(row * r.stride + col) * r.element;
      Page& page = shadow_.page(address, s.shift);
      const Cell& c = page.cell(address);
      const unsigned all = (1u << (1u << page.shift)) - 1;  // an element's first cell stands for it
      if (c.owner != scope_ || (c.written & all) != all)
        return "never written: row " + std::to_string(row) + ", column " + std::to_string(col) + " of " + r.name;
    }
  return {};
}

void Tracer::within(const std::vector<Region>& regions, const std::function<void()>& work) {
  struct Enclosed {
    Tracer& t;
    ~Enclosed() {
      t.enclosed_ = false;
      t.spans_.clear();
    }
  } leave{*this};
  shadow_.trim();
  scope_ = take_serials(1);
  for (const Region& r : regions)
    if (r.data) spans_.emplace_back(r);
  enclosed_ = true;
  work();
  if (level != Watch::check) return;
  for (const Span& s : spans_)
    if (s.region->use == Region::Use::output)
      if (const std::string finding = never_written(s); !finding.empty()) throw Fault(finding);
}

// A thread that does atomic or volatile accesses alone may wait for another one.
void give_way() {
  constexpr int kPatience = 64;
  if (++current->strong_in_a_row > kPatience) spin();
}

}  // namespace

void set_watch(Watch level) {
  tracer().level = level;
  tracer().reset_counters();
}
Profile profile() { return tracer().profile(); }
void run_within(const std::vector<Region>& regions, const std::function<void()>& work) {
  tracer().within(regions, work);
}

namespace trace {
namespace {
bool watching() { return running->level != Watch::off; }
}  // namespace

void begin() { tracer().begin(); }
void admit(Block& b) { running->admit(b); }
void access(std::uintptr_t address, std::size_t bytes, Op op, std::uintptr_t pc) {
  Thread* const t = current;
  if (!t || t->fiber.owns(address)) return;  // the host's side of a kernel file, or a variable of the thread
  if (strong(op)) give_way();
  // A program may hold but one copy of a function of the library, a kernel file's: then the tracer's own calls come here.
  if (!watching() || running->busy) return;
  running->busy = true;
  try {
    running->access(*t, address, bytes, op, pc);
  } catch (...) {
    launch->error = std::current_exception();
  }
  running->busy = false;
  if (!launch->error) return;
  // The access would touch what is not the kernel's, or trap. g++ takes its call for one that does not throw, so the
  // thread stops here and for good.
  t->state = State::returned;
  t->fiber.suspend();
}
void settle() { running->settle(); }
void met(Scope scope, Where where) {
  if (watching()) running->met(scope, where);
}
void met(Meet kind, unsigned warp, unsigned mask, std::size_t bytes, Where where) {
  if (watching()) running->met(kind, warp, mask, bytes, where);
}
void fence(Scope scope) {
  if (watching()) running->order.fence(*current, scope);
}
void returned(Thread& t) {
  if (watching()) running->returned(t);
}
void end() {
  if (const std::string all = running->take_findings(); !all.empty()) throw Fault(all);
}
void end(const std::string& fault) {
  const std::string all = running->take_findings(), last = running->resolve(fault);
  throw Fault(all.empty() ? last : all + "\n" + last);
}
}  // namespace trace

}  // namespace softmax::device::simt

// What g++ calls for each access, because kernel files are compiled with -fsanitize=thread; this file stands in for the
// sanitizer's own library.
namespace {

using softmax::device::simt::Op;
namespace trace = softmax::device::simt::trace;
std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// More than any vector: a struct, word by word.
void range(void* p, unsigned long bytes, Op op, void* pc) {
  for (std::uintptr_t at = number(p), last = at + bytes; at < last; at += 4)
    trace::access(at, std::min<std::uintptr_t>(4, last - at), op, number(pc));
}

}  // namespace

#define ACCESS(name, bytes, op) \
  extern "C" void name(void* p) { trace::access(number(p), bytes, Op::op, number(__builtin_return_address(0))); }
#define SIZES(name, op) \
  ACCESS(name##1, 1, op) ACCESS(name##2, 2, op) ACCESS(name##4, 4, op) ACCESS(name##8, 8, op) ACCESS(name##16, 16, op)

SIZES(__tsan_read, load)
SIZES(__tsan_write, store)
SIZES(__tsan_unaligned_read, load)
SIZES(__tsan_unaligned_write, store)
SIZES(__tsan_volatile_read, volatile_load)
SIZES(__tsan_volatile_write, volatile_store)
SIZES(__tsan_unaligned_volatile_read, volatile_load)
SIZES(__tsan_unaligned_volatile_write, volatile_store)
extern "C" void __tsan_read_range(void* p, unsigned long bytes) {
  range(p, bytes, Op::load, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void* p, unsigned long bytes) {
  range(p, bytes, Op::store, __builtin_return_address(0));
}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit(void*) {}
extern "C" void __tsan_init() {}
