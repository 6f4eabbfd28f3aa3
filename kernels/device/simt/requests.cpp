#include "kernels/device/simt/requests.hpp"

namespace softmax::device::simt {
namespace {

constexpr std::uintptr_t kSector = 32;

// Distinct sectors of all lanes.
int sectors(const Request& r) {
  std::uintptr_t next = 0;
  int count = 0;
  each_address(r, [&](std::uintptr_t first) {
    const std::uintptr_t last = (first + r.bytes - 1) / kSector;
    if (last < next) return;
    count += int(last - std::max(first / kSector, next)) + 1;
    next = last + 1;
  });
  return count;
}

// Passes over shared memory for some lanes at once: the most distinct words that fall into one of 32 banks.
int wavefronts(const Request& r, unsigned lanes) {
  constexpr std::uintptr_t kBanks = 32, kWord = 4;
  std::uintptr_t words[128], *end = words;
  for (; lanes; lanes &= lanes - 1)
    for (std::uintptr_t at = r.at[std::countr_zero(lanes)], w = at / kWord; w <= (at + r.bytes - 1) / kWord; ++w)
      *end++ = w;
  std::uintptr_t first[kBanks];
  unsigned used = 0;
  bool conflict = false;
  for (const std::uintptr_t* w = words; w != end; ++w) {
    const unsigned bank = unsigned(*w % kBanks);
    if (!(used >> bank & 1)) first[bank] = *w;
    conflict |= first[bank] != *w;
    used |= 1u << bank;
  }
  if (!conflict) return words != end;
  std::sort(words, end);
  end = std::unique(words, end);
  int in_bank[kBanks] = {}, most = 0;
  for (const std::uintptr_t* w = words; w != end; ++w) most = std::max(most, ++in_bank[*w % kBanks]);
  return most;
}

}  // namespace

void count(const Request& r, Op op, Counters& c) {
  if (op == Op::shuffle || op == Op::vote) {
    (op == Op::vote ? c.votes : c.shuffles) += (r.bytes + 3) / 4;
    return;
  }
  c.partial_requests += r.lanes != ~0u;
  if (op == Op::atomic) {
    ++c.atomics;
  } else if (!r.shared) {
    (reads(op) ? c.global_load_requests : c.global_store_requests) += 1;
    (reads(op) ? c.global_load_sectors : c.global_store_sectors) += sectors(r);
    each_address(r, [&](std::uintptr_t) { (reads(op) ? c.global_load_bytes : c.global_store_bytes) += r.bytes; });
  } else {
    // 8 bytes go in two passes of half the lanes, 16 bytes in four of a quarter.
    const int phases = r.bytes <= 4 ? 1 : r.bytes <= 8 ? 2 : 4, width = 32 / phases;
    int passes = 0, least = 0;
    for (int p = 0; p < phases; ++p) {
      const unsigned some = r.lanes & unsigned(((std::uint64_t{1} << width) - 1) << (p * width));
      passes += wavefronts(r, some);
      least += some != 0;
    }
    (reads(op) ? c.shared_load_requests : c.shared_store_requests) += 1;
    (reads(op) ? c.shared_load_wavefronts : c.shared_store_wavefronts) += passes;
    (reads(op) ? c.shared_load_conflicts : c.shared_store_conflicts) += passes - least;
  }
}

void RequestLog::Site::clear() {
  constexpr std::size_t kKeep = 1 << 12;  // a long walk of one thread should not keep its memory for good
  if (requests.size() > kKeep) requests = {};
  used = 0;
  std::fill(std::begin(seen), std::end(seen), 0);
}

void RequestLog::grow(unsigned site, std::size_t used) {
  Site& s = *sites_[site];
  if (s.used == 0) dirty_.push_back(site);
  if (s.requests.size() < used) s.requests.resize(std::max(used, 2 * s.requests.size()));
  for (std::size_t k = s.used; k < used; ++k) s.requests[k].lanes = 0;
  s.used = used;
}

void RequestLog::align(unsigned mask) {
  for (const unsigned site : dirty_) {
    Site& s = *sites_[site];
    std::uint32_t most = 0;
    for (unsigned m = mask; m; m &= m - 1) most = std::max(most, s.seen[std::countr_zero(m)]);
    for (unsigned m = mask; m; m &= m - 1) s.seen[std::countr_zero(m)] = most;
  }
}

void RequestLog::clear() {
  for (const unsigned site : dirty_) sites_[site]->clear();
  dirty_.clear();
}

}  // namespace softmax::device::simt
