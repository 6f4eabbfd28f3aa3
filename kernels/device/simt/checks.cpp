#include "kernels/device/simt/checks.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/device/simt/state.hpp"

namespace softmax::device::simt {
namespace {

std::string number(std::uintptr_t n) { return std::to_string(n); }
std::string where(unsigned site) { return kOpen + std::to_string(site) + kClose; }
std::string who(const Thread& t) { return "thread " + number(t.rank) + " of " + describe(*t.block); }
std::string who(const Stamp& s) {
  if (s.warp >= kFirstCopier)
    return "a copy that an mbarrier of block " + number(s.block - launch->first_serial) + " counts";
  return "thread " + std::to_string(s.warp * 32 + std::countr_zero(s.lanes)) + " of block " +
         number(s.block - launch->first_serial);
}
const char* verb(Op op) { return op == Op::atomic ? "updates" : reads(op) ? "loads" : "stores to"; }

// Is it a variable of the program, or of a module that it has loaded?
bool of_program(std::uintptr_t at) {
  dl_find_object object;
  return _dl_find_object(reinterpret_cast<void*>(at), &object) == 0;
}

[[noreturn]] void outside(const Access& a, const std::string& place) {
  throw Fault("out of bounds: " + who(a.thread) + " " + verb(a.op) + " " + place + ", at " + where(a.site));
}

}  // namespace

Span::Span(const Region& r) : region(&r) {
  const bool dense = r.stride == r.cols;  // rows follow each other: a wide access may reach from one into the next
  row_bytes = std::uintptr_t(dense ? r.rows * r.cols : r.cols) * r.element;
  stride_bytes = dense ? row_bytes : std::uintptr_t(r.stride) * r.element;
  first = reinterpret_cast<std::uintptr_t>(r.data);
  last = r.rows > 0 && r.cols > 0 ? first + std::uintptr_t(dense ? 0 : r.rows - 1) * stride_bytes + row_bytes : first;
  shift = r.element == 2 ? 1 : 2;
}

// "row 3, column 7 of the input", "word 5 of `partial`".
std::string Checks::place(const Thread& t, std::uintptr_t address) const {
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
  // The region that it lies in, or the one that it misses by least.
  const Span* nearest = nullptr;
  std::uintptr_t least = std::uintptr_t{1} << 20;
  for (const Span& s : spans_) {
    const std::uintptr_t miss = address < s.first ? s.first - address : address < s.last ? 0 : address - s.last + 1;
    if (s.first != s.last && miss < least) nearest = &s, least = miss;
  }
  if (address < Page::kBytes) return "a null pointer";
  if (of_program(address)) return "a variable outside of the kernel";
  if (!nearest) return spans_.empty() ? "memory" : "memory that is not the kernel's";
  const Region& r = *nearest->region;
  const bool outside = least > 0 || !nearest->holds(address, 1);
  const std::string rows = r.element == 1 ? "" : number(std::uintptr_t(r.rows)) + " rows of ";
  const std::string name =
      outside ? r.name + ", which has " + rows + number(std::uintptr_t(r.cols)) + (rows.empty() ? " bytes" : "")
              : r.name;
  if (address < nearest->first) return number(nearest->first - address) + " bytes before " + r.name;
  const std::uintptr_t element = (address - nearest->first) / r.element, stride = std::uintptr_t(r.stride);
  if (rows.empty()) return "byte " + number(element) + " of " + name;
  if (r.stride == r.cols && outside) return number(address - nearest->last) + " bytes past the end of " + name;
  return "row " + number(element / stride) + ", column " + number(element % stride) + " of " + name;
}

Target Checks::in_arena(const Access& a, const Block& owner, bool strict) const {
  const std::size_t offset = owner.arena->offset(reinterpret_cast<const void*>(a.at));
  const SharedLayout::Variable* v = launch->layout.at(offset);
  if (strict && &owner != a.thread.block && owner.barrier.returned == launch->threads_per_block)
    outside(a, place(a.thread, a.at) + ", which has ended");
  if (strict && (!v || offset + a.bytes > v->offset + v->bytes))
    outside(a, place(a.thread, v ? a.at + a.bytes - 1 : a.at));
  const unsigned shift = v ? unsigned(std::countr_zero(v->granule)) : 2;
  return {.shared = true, .owner = owner.serial, .shift = shift, .written_at_first = false};
}

Target Checks::locate(const Access& a, bool strict) const {
  if (a.thread.block->arena->owns(a.at)) return in_arena(a, *a.thread.block, strict);
  for (const Span& s : spans_) {
    if (a.at - s.first >= s.last - s.first) continue;
    const Region::Use use = s.region->use;
    const bool input = use == Region::Use::input;
    if (strict && !s.holds(a.at, a.bytes)) {
      std::uintptr_t wrong = a.at;  // of a wide access, the part that is outside
      while (s.holds(wrong, 1)) ++wrong;
      outside(a, place(a.thread, wrong));
    }
    if (strict && input && writes(a.op)) outside(a, place(a.thread, a.at) + ", which is read only");
    return {
        .owner = scope_, .shift = s.shift, .written_at_first = input || use == Region::Use::state, .read_only = input};
  }
  for (const Block& b : launch->blocks)
    if (b.arena->owns(a.at)) return in_arena(a, b, strict);
  if (strict && enclosed_ && !of_program(a.at)) outside(a, place(a.thread, a.at));
  return {.owner = scope_};
}

void Checks::check(const Access& a, const Target& target) {
  const Thread& t = a.thread;
  if (a.at % a.bytes != 0)
    throw Fault("misaligned: " + who(t) + " " + verb(a.op) + " " + number(a.bytes) + " bytes at " + place(t, a.at) +
                ", whose address is no multiple of that, at " + where(a.site));
  if (target.read_only) return;  // never written, so nobody's reads need be remembered
  Mark mark{.stamp = a.by ? *a.by
                          : Stamp{.block = t.block->serial,
                                  .epoch = t.block->epoch,
                                  .age = t.block->warps[t.rank / 32].order.age,
                                  .lanes = 1u << t.rank % 32,
                                  .warp = std::uint16_t(t.rank / 32)},
            // In shared memory volatile orders nothing that a barrier would, so it excuses nothing.
            .strong = a.op == Op::atomic || (strong(a.op) && !target.shared)};
  mark.stamp.site = a.site;
  for (std::uintptr_t at = a.at, last = a.at + a.bytes; at < last;) {
    Page& page = shadow_.page(at, std::min(target.shift, unsigned(std::countr_zero(a.bytes))));
    const std::uintptr_t granule = std::uintptr_t{1} << page.shift, first = at % granule;
    const unsigned some = unsigned(std::min(last - at, granule - first));
    mark.bytes = static_cast<unsigned char>(((1u << some) - 1) << first);
    check_cell(a, target, page.cell(at), at, mark);
    at += some;
  }
}

void Checks::check_cell(const Access& a, const Target& target, Cell& c, std::uintptr_t at, const Mark& mark) {
  const Thread& t = a.thread;
  const unsigned char bytes = mark.bytes;
  if (c.owner != target.owner) {
    shadow_.drop(c.more);
    shadow_.drop(c.more_writes);
    c = {};
    c.owner = target.owner;
    if (target.written_at_first) c.written = 0xff;
  }
  // Launches follow each other: of those before, nobody need go through the lists again.
  for (std::uint32_t* index : {&c.more, &c.more_writes})
    if (*index && (shadow_.list(*index).empty() || shadow_.list(*index).back().stamp.block < launch->first_serial))
      shadow_.drop(*index);
  const Stamp& mine = mark.stamp;
  const auto conflicts = [&](const Mark& other) {
    const Stamp& s = other.stamp;
    if (s.block == 0 || !(other.bytes & bytes) || (mark.strong && other.strong)) return false;
    if (!a.by && s.block == mine.block && (s.epoch < mine.epoch || (s.warp == mine.warp && s.lanes == mine.lanes)))
      return false;
    return !order.before(s, t);
  };
  const auto conflicts_with = [&](const Mark& r) {
    if (!conflicts(r)) return false;
    Stamp other = r.stamp;
    if (other.block == mine.block && other.warp == mine.warp) other.lanes &= ~mine.lanes;
    find_race(t, at, a.op, mine, other);
    return true;
  };
  if (reads(a.op)) {
    if ((c.written & bytes) != bytes) {
      find(mine.site, -1, [&] {
        return "uninitialised: " + who(t) + " " + verb(a.op) + " " + place(t, at) + " at " + where(a.site) +
               ", and nobody has written it";
      });
      c.written |= bytes;  // once is enough
    }
    conflicts_with(c.write);
  }
  const auto any_conflicts = [&](std::uint32_t& index) {
    return index && std::ranges::any_of(shadow_.list(index), conflicts_with);
  };
  if (!mark.strong) any_conflicts(c.more_writes);
  if (!writes(a.op)) return remember(t, c.read, c.more, mark);
  if (!conflicts_with(c.read)) any_conflicts(c.more);
  if (a.by) {
    conflicts_with(c.write);  // it lands later: what it stores is not there to be compared
  } else if (!reads(a.op) && conflicts(c.write)) {
    if (overwrite_.bytes == 0) {
      overwrite_ = {.bytes = 0, .at = a.at, .before = {}, .mine = mine, .other = c.write.stamp, .op = a.op};
      std::memcpy(overwrite_.before, reinterpret_cast<const void*>(a.at), a.bytes);
    }
    overwrite_.bytes |= ((1u << std::popcount(bytes)) - 1) << (at - a.at);
  }
  c.written |= bytes;
  // Strong writes do not conflict with each other, so each must be remembered for whoever reads plainly.
  if (mark.strong && c.write.strong) {
    remember(t, c.write, c.more_writes, mark);
  } else {
    c.write = mark;
    shadow_.drop(c.more_writes);
  }
  if ((c.read.bytes & ~bytes) == 0) {
    c.read = {};
    shadow_.drop(c.more);
  }
}

// Makes `mark` the last of its kind, and keeps of the others what it does not stand for.
void Checks::remember(const Thread& t, Mark& last, std::uint32_t& more, const Mark& mark) {
  const Stamp &mine = mark.stamp, &s = last.stamp;
  if (s.block == mine.block && s.epoch == mine.epoch && s.warp == mine.warp && s.age == mine.age &&
      last.bytes == mark.bytes && last.strong == mark.strong) {
    last.stamp.lanes |= mine.lanes;
    last.stamp.site = mine.site;
    return;
  }
  // What happened before this access is covered by it: who comes after this one comes after that one.
  const auto covered = [&](const Mark& m) {
    const bool as_much = (m.bytes & ~mark.bytes) == 0 && (m.strong || !mark.strong);
    return m.stamp.block == 0 || (as_much && order.before(m.stamp, t));
  };
  const bool last_covered = covered(last);
  if (more || !last_covered) {
    std::vector<Mark>& others = shadow_.list(more);
    if (std::has_single_bit(others.size()) || (last_covered && others.size() < 64)) std::erase_if(others, covered);
    if (!last_covered) others.push_back(last);
  }
  last = mark;
}

void Checks::settle() {
  if (overwrite_.bytes == 0) return;
  const Overwrite o = overwrite_;
  overwrite_.bytes = 0;
  for (std::uintptr_t b = 0; o.bytes >> b; ++b)
    if (o.bytes >> b & 1 && o.before[b] != *reinterpret_cast<const unsigned char*>(o.at + b))
      return find_race(*current, o.at + b, o.op, o.mine, o.other);
}

template <class Text>
void Checks::find(std::uint16_t mine, int other, Text text) {
  constexpr std::size_t kMost = 16;
  if (found_.insert({mine, other}).second && findings_.size() < kMost) findings_.push_back(text());
}

void Checks::find_race(const Thread& t, std::uintptr_t at, Op op, const Stamp& mine, const Stamp& other) {
  find(mine.site, other.site, [&] {
    return "race: " + who(mine) + " " + verb(op) + " " + place(t, at) + " at " + where(mine.site) + ", after " +
           who(other) + " was there at " + where(other.site) + "; nothing orders the two";
  });
}

std::vector<std::string> Checks::take_findings() {
  found_.clear();
  return std::exchange(findings_, {});
}

std::uint32_t Checks::take_serials(std::int64_t count) {
  if (count > std::int64_t(0xffffffffu - serial_)) {
    shadow_ = {};
    serial_ = 1;
  }
  return std::exchange(serial_, serial_ + std::uint32_t(count));
}

void Checks::begin() {
  launch->first_serial = take_serials(launch->geometry.grid.count());
  if (!enclosed_) {
    scope_ = take_serials(1);
    shadow_.trim();
  }
  overwrite_.bytes = 0;
  take_findings();
  order.begin();
}

std::int64_t Checks::redundant(const Block& b, const Request& r) {
  std::int64_t bytes = 0;
  each_address(r, [&](std::uintptr_t first) {
    const std::uintptr_t last = first + r.bytes - 1;
    for (std::uintptr_t a = first; a <= last; a = (a | 1) + 1) {
      std::uint32_t& by = shadow_.page(a, 2).loaded_by[a % Page::kBytes / 2];
      if (by == b.serial) bytes += std::int64_t(std::min(last, a | 1) - a + 1);
      by = b.serial;
    }
  });
  return bytes;
}

std::string Checks::never_written(const Span& s) {
  const Region& r = *s.region;
  for (std::int64_t row = 0; row < r.rows; ++row)
    for (std::int64_t col = 0; col < r.cols; ++col) {
      const std::uintptr_t at = s.first + std::uintptr_t(row * r.stride + col) * r.element;
      Page& page = shadow_.page(at, s.shift);
      const Cell& c = page.cell(at);
      const unsigned all = (1u << (1u << page.shift)) - 1;  // an element's first cell stands for it
      if (c.owner != scope_ || (c.written & all) != all)
        return "never written: row " + std::to_string(row) + ", column " + std::to_string(col) + " of " + r.name;
    }
  return {};
}

void Checks::within(const std::vector<Region>& regions, const std::function<void()>& work, bool (*strict)()) {
  struct Enclosed {
    Checks& c;
    ~Enclosed() {
      c.enclosed_ = false;
      c.spans_.clear();
    }
  } leave{*this};
  shadow_.trim();
  scope_ = take_serials(1);
  for (const Region& r : regions)
    if (r.data) spans_.emplace_back(r);
  enclosed_ = true;
  work();
  if (!strict()) return;
  for (const Span& s : spans_)
    if (s.region->use == Region::Use::output)
      if (const std::string finding = never_written(s); !finding.empty()) throw Fault(finding);
}

}  // namespace softmax::device::simt
