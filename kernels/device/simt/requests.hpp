#pragma once
// From the accesses of single threads to the requests of warps, and what these cost.
//
// A warp runs its lanes in lockstep, the CPU device one after the other. Accesses of one place in the code belong
// together if they are each lane's k-th there since the lanes last converged: at a barrier or an exchange of the warp.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/machine.hpp"

namespace softmax::device::simt {

// The last three are no accesses: a shuffle of half a warp and that of the other half are one instruction too.
enum class Op : unsigned char { load, store, volatile_load, volatile_store, atomic, shuffle, vote, barrier };
constexpr bool reads(Op op) { return op != Op::store && op != Op::volatile_store; }
constexpr bool writes(Op op) { return op != Op::load && op != Op::volatile_load; }
constexpr bool strong(Op op) { return op != Op::load && op != Op::store; }  // never a race with each other

// A warp instruction.
struct Request {
  unsigned lanes = 0;  // that take part
  bool shared = false;
  std::uint16_t bytes = 0;  // a lane
  std::uintptr_t at[32];
};
// Adds what a request costs.
void count(const Request&, Op, Counters&);
// Calls visit(address) for each address of a request, once for lanes that share it.
template <class Visit>
void each_address(const Request& r, Visit visit) {
  std::uintptr_t all[32], *last = all;
  bool ascending = true;
  for (unsigned lanes = r.lanes; lanes; lanes &= lanes - 1) {
    *last++ = r.at[std::countr_zero(lanes)];
    ascending &= last - all == 1 || last[-2] < last[-1];
  }
  if (!ascending) {
    std::sort(all, last);
    last = std::unique(all, last);
  }
  for (const std::uintptr_t* a = all; a != last; ++a) visit(*a);
}

// The requests of one warp that are not complete yet.
class RequestLog {
 public:
  void add(unsigned site, unsigned lane, std::uintptr_t at, std::uint16_t bytes, bool shared) {
    if (site >= sites_.size()) sites_.resize(site + 1);
    if (!sites_[site]) sites_[site] = std::make_unique<Site>();
    Site& s = *sites_[site];
    const std::size_t k = s.seen[lane]++;
    if (k >= s.used) grow(site, k + 1);
    Request& r = s.requests[k];
    if (r.lanes == 0) r.bytes = bytes, r.shared = shared;
    r.lanes |= 1u << lane;
    r.at[lane] = at;
  }
  // All lanes of the warp have converged, or are done: hands every request to done(site, request) and starts over. Not if
  // some have returned and the others went on: what these do next may belong to what those did last.
  template <class Done>
  void flush(Done done) {
    for (const unsigned site : dirty_) {
      Site& s = *sites_[site];
      for (std::size_t k = 0; k < s.used; ++k)
        if (s.requests[k].lanes) done(site, s.requests[k]);
      s.clear();
    }
    dirty_.clear();
  }
  // The lanes of `mask` alone have converged: their next accesses belong together.
  void align(unsigned mask);
  void clear();

 private:
  struct Site {
    std::vector<Request> requests;  // the first `used` of them
    std::size_t used = 0;
    std::uint32_t seen[32] = {};
    void clear();
  };
  void grow(unsigned site, std::size_t used);
  std::vector<std::unique_ptr<Site>> sites_;  // by number
  std::vector<unsigned> dirty_;
};

}  // namespace softmax::device::simt
