#include "kernels/device/simt/requests.hpp"

namespace softmax::device::simt {
namespace {

constexpr std::uintptr_t kSector = 32;

template <class Visit>
void each_lane(unsigned lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1) visit(std::countr_zero(lanes));
}

int count_distinct(std::uintptr_t* first, std::uintptr_t* last) {
  std::sort(first, last);
  return int(std::unique(first, last) - first);
}

// Distinct sectors of all lanes.
int sectors(const Request& r) {
  std::uintptr_t low = ~std::uintptr_t{0}, high = 0;
  each_lane(r.lanes, [&](int l) {
    low = std::min(low, r.at[l] / kSector);
    high = std::max(high, (r.at[l] + r.bytes - 1) / kSector);
  });
  if (high - low < 64) {
    std::uint64_t touched = 0;
    each_lane(r.lanes, [&](int l) {
      for (std::uintptr_t s = r.at[l] / kSector; s <= (r.at[l] + r.bytes - 1) / kSector; ++s)
        touched |= std::uint64_t{1} << (s - low);
    });
    return std::popcount(touched);
  }
  std::uintptr_t all[64], *end = all;  // at most 16 bytes a lane: two sectors
  each_lane(r.lanes, [&](int l) {
    *end++ = r.at[l] / kSector;
    if ((r.at[l] + r.bytes - 1) / kSector != r.at[l] / kSector) *end++ = (r.at[l] + r.bytes - 1) / kSector;
  });
  return count_distinct(all, end);
}

// Passes over shared memory for some lanes at once: the most distinct words that fall into one of 32 banks.
int wavefronts(const Request& r, unsigned lanes) {
  constexpr std::uintptr_t kBanks = 32, kWord = 4;
  std::uintptr_t words[128], *end = words;
  each_lane(lanes, [&](int l) {
    for (std::uintptr_t w = r.at[l] / kWord; w <= (r.at[l] + r.bytes - 1) / kWord; ++w) *end++ = w;
  });
  std::uintptr_t first[kBanks];
  unsigned used = 0;
  bool conflict = false;
  for (const std::uintptr_t* w = words; w != end; ++w) {
    const unsigned bank = unsigned(*w % kBanks);
    if (!(used >> bank & 1)) first[bank] = *w;
    conflict |= first[bank] != *w;
    used |= 1u << bank;
  }
  if (!conflict) return lanes != 0;
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
    each_lane(mask, [&](int l) { most = std::max(most, s.seen[l]); });
    each_lane(mask, [&](int l) { s.seen[l] = most; });
  }
}

void RequestLog::clear() {
  for (const unsigned site : dirty_) sites_[site]->clear();
  dirty_.clear();
}

}  // namespace softmax::device::simt
